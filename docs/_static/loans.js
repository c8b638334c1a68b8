// The loans of one episode, as the equations of the paper have them. tests/docs/test_playground.py holds every number
// against payback itself.
"use strict";
const loans = (() => {
  // m_k: which share of a loan is repaid k steps after it, while the episode goes on.
  function shares(matching, parameter, ages) {
    const share = {
      after: (k) => (k === parameter ? 1 : 0),
      evenly: (k) => (k >= 1 && k <= parameter ? 1 / parameter : 0),
      geometric: (k) => (k >= 1 ? (1 - parameter) * parameter ** (k - 1) : 0),
      end: () => 0,
    }[matching];
    return Array.from({ length: ages }, (_, k) => share(k));
  }

  function bonuses(pattern, N) {
    const bonus = {
      constant: () => 1,
      once: (t) => (t === Math.min(2, N - 1) ? 1 : 0),
      fading: (t) => 1 / Math.sqrt(t + 1),
    }[pattern];
    return Array.from({ length: N }, (_, t) => bonus(t));
  }

  // F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i), and the debt after each step, valued at the next one.
  function episode(F, m, gamma) {
    const N = F.length;
    const left = F.map(() => 1);
    return F.map((paid, t) => {
      let shaped = paid;
      let debt = 0;
      for (let i = 0; i <= t; i++) {
        const share = t === N - 1 ? left[i] : m[t - i];
        shaped -= gamma ** (i - t) * F[i] * share;
        left[i] -= share;
        debt += gamma ** (i - t - 1) * F[i] * left[i];
      }
      return { step: t, F: paid, shaped, debt };
    });
  }

  // η = 1 − Σ_k m_k λᵏ; whole returns (λ = 1) reach every repayment, and nothing of the bonus is left.
  function feltShare(matching, parameter, lambda) {
    if (lambda === 1) return 0;
    if (matching === "end") return 1;
    if (matching === "geometric") return (1 - lambda) / (1 - parameter * lambda);
    return 1 - shares(matching, parameter, parameter + 1).reduce((sum, m, k) => sum + m * lambda ** k, 0);
  }

  // The same in episodes of N steps, whose last one settles, on average over the step at which the loan is made.
  function feltShareWithin(N, m, lambda) {
    if (lambda === 1) return 0;
    let left = 1;
    let charged = 0;
    for (let k = 0; k < N; k++) {
      charged += (lambda ** k * (m[k] * (N - 1 - k) + left)) / N;
      left -= m[k];
    }
    return 1 - charged;
  }

  // The largest γ⁻ᴷ while the episode goes on; infinity where a loan may wait without a bound.
  function interest(matching, parameter, gamma) {
    if (gamma === 1) return 1;
    if (matching === "after" || matching === "evenly") return gamma ** -parameter;
    return matching === "geometric" && parameter === 0 ? 1 / gamma : Infinity;
  }

  // One loan of 1, age by age: what is left of it in the advantage of its own action, and what a repayment costs.
  function byAge(m, gamma, lambda) {
    let felt = 1;
    return m.map((share, age) => {
      felt -= share * lambda ** age;
      return { age, felt, interest: gamma ** -age };
    });
  }

  // GAE(λ) of F′ with a critic that is 0, at every step: signal − noise. A bonus adds to the advantages of its own and
  // of earlier actions what λ leaves of it (signal); to those of later ones, until it is repaid, its repayments (noise).
  function decomposition(F, m, gamma, lambda) {
    const N = F.length;
    const rows = F.map((_, step) => ({ step, signal: 0, noise: 0 }));
    F.forEach((bonus, i) => {
      let left = 1;
      let open = 0; // Σ over the repayments at t or later of m_k λ^(repaid − t), for t from the last step back
      const repaid = [];
      for (let t = i; t < N; t++) {
        repaid.push(t === N - 1 ? left : m[t - i]);
        left -= repaid[t - i];
      }
      for (let t = N - 1; t >= i; t--) {
        open = repaid[t - i] + lambda * open;
        if (t > i) rows[t].noise += bonus * gamma ** (i - t) * open;
      }
      for (let t = 0; t <= i; t++) rows[t].signal += (gamma * lambda) ** (i - t) * bonus * (1 - open);
    });
    return rows.map((row) => ({ ...row, advantage: row.signal - row.noise }));
  }

  return { shares, bonuses, episode, decomposition, feltShare, feltShareWithin, interest, byAge };
})();
