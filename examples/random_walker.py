"""Shape the novelty bonus of a seeded random walker under all eight schemes, and print whether F′ sums to zero.

The walker moves on a ring of 20 places; its bonus is 1/√n for the n-th visit of a place over all of training.
Residual: the largest |Σ_t γ^t F'_t| / Σ_t γ^t |F'_t| over all finished episodes; 0 means that no policy's return
has changed.
"""

import numpy as np

import payback

GAMMA, ENVIRONMENTS, STEPS, LIMIT = 0.99, 16, 4096, 200

SCHEMES = {
    "none": payback.scale(0),
    "im": payback.scale(1),
    "pbim": payback.pbim(GAMMA),
    "pbim-raw": payback.pbim(GAMMA, center=False),
    "grm-1": payback.grm(GAMMA, 1),
    "grm-1-raw": payback.grm(GAMMA, 1, center=False),
    "grm-10": payback.grm(GAMMA, 10),
    "grm-10-raw": payback.grm(GAMMA, 10, center=False),
}


def walk(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bonuses and ends, (STEPS, ENVIRONMENTS) each."""
    rng = np.random.default_rng(seed)
    place, age, visits = np.zeros(ENVIRONMENTS, int), np.zeros(ENVIRONMENTS, int), np.zeros(20)
    rewards, dones = np.empty((STEPS, ENVIRONMENTS)), np.empty((STEPS, ENVIRONMENTS), bool)
    for t in range(STEPS):
        place, age = (place + rng.choice([-1, 1], ENVIRONMENTS)) % 20, age + 1
        np.add.at(visits, place, 1)
        rewards[t] = 1 / np.sqrt(visits[place])
        dones[t] = (place == 10) | (age == LIMIT)
        place[dones[t]], age[dones[t]] = 0, 0
    return rewards, dones


def residuals(shaped: np.ndarray, dones: np.ndarray) -> list[float]:
    """Return each finished episode's relative residual."""
    found = []
    for column, ends in zip(shaped.T, dones.T, strict=True):
        for episode in np.split(column, np.flatnonzero(ends) + 1)[:-1]:
            discounted = GAMMA ** np.arange(len(episode)) * episode
            found.append(abs(discounted.sum()) / max(np.abs(discounted).sum(), 1e-300))
    return found


def main() -> None:
    rewards, dones = walk(seed=0)
    print(f"{dones.sum()} episodes of a random walker, γ = {GAMMA}\n")
    print(f"{'scheme':<12}{'mean F′':>10}{'largest residual':>20}   zero sum")
    for name, transform in SCHEMES.items():
        _, shaped = payback.shape_rollout(transform, transform.init(rewards[0]), rewards, dones)
        worst = max(residuals(shaped, dones))
        verdict = "yes" if worst < 1e-9 else "no: the bonus may change the optimal policy"
        print(f"{name:<12}{shaped.mean():>10.4f}{worst:>20.1e}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
