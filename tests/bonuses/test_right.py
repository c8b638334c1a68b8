"""What is known of the network bonuses: where their errors fall, and what attracts them."""

import numpy as np
import pytest

import payback
from payback.bonuses.torch import E3B, ICM, RND

RNG = np.random.default_rng


def test_the_error_of_rnd_falls_on_what_was_seen_and_stays_on_what_was_not():
    rng, bonus = RNG(0), RND(width=64, latent=32, learn_every=0, normalise=False, whiten=False)
    side = np.where(np.arange(8) < 4, 1.0, 0.0)
    seen, unseen = (rng.normal(size=(64, 8)) * mask for mask in (side, 1 - side))
    before = [bonus(None, None, rows, {}).mean() for rows in (seen, unseen)]
    for _ in range(100):
        bonus.learn((None, None, seen))
    after = [bonus(None, None, rows, {}).mean() for rows in (seen, unseen)]
    assert after[0] < 0.05 * before[0]
    assert after[1] > 0.3 * before[1]


def test_e3b_still_pays_for_new_views_late_in_an_episode():
    """Its memory has as many directions as features: with 64, some of these views pay a ten-thousandth of F_0."""
    views = RNG(0).integers(0, 11, size=(100, 1, 147)).astype(np.float32)
    bonus, action = E3B(7, learn_every=0, normalise=False, whiten=False), np.zeros(1, int)
    F = np.array([bonus(view, action, view, {})[0] for view in views])
    assert F[64:].min() > 0.005 * F[0]


# ------------------------------------------------------------------ noise that no action influences

NOISE, PLACES = 4, 5


def walk(rng, rows):
    """Transitions on a ring of five places, seen beside four channels of noise; three actions move."""
    place, action = rng.integers(PLACES, size=rows), rng.integers(3, size=rows)
    onehot = np.eye(PLACES)
    ahead = onehot[(place + action - 1) % PLACES]
    noise = rng.normal(size=(2, rows, NOISE))
    return np.hstack([onehot[place], noise[0]]), action, np.hstack([ahead, noise[1]])


def influence_of_noise(bonus, rng):
    """How much F moves when only the noise in s′ is drawn again, as a share of F where s′ is a wrong place."""
    obs, action, next_obs = walk(rng, 512)
    again, wrong = next_obs.copy(), next_obs.copy()
    again[:, PLACES:] = rng.normal(size=(512, NOISE))
    wrong[:, :PLACES] = np.roll(wrong[:, :PLACES], 2, axis=1)
    F, with_noise, surprise = (bonus(obs, action, seen, {}) for seen in (next_obs, again, wrong))
    return np.abs(with_noise - F).mean() / surprise.mean()


def test_icm_ignores_a_noise_channel_that_actions_do_not_influence():
    rng = RNG(0)
    icm = ICM(3, width=64, latent=8, rate=1e-3, learn_every=0, normalise=False, whiten=False)
    rnd = RND(width=64, latent=8, learn_every=0, normalise=False, whiten=False)
    untrained = influence_of_noise(icm, RNG(1))
    for _ in range(300):
        batch = walk(rng, 256)
        icm.learn(batch)
        rnd.learn(batch)
    assert untrained > 0.3
    assert influence_of_noise(icm, RNG(1)) < 0.1
    assert influence_of_noise(rnd, RNG(1)) > 0.3


# ------------------------------------------------------------------ the noisy television

TELEVISION, START, GOAL, HORIZON = 0, 2, 4, 12
"""A corridor of five places, the television at one end, the goal (reward 1, the end) at the other."""


def see(rng, place):
    """One-hot places; the television shows sixteen channels of noise, which all others show as 0."""
    noise = rng.normal(size=(len(place), 16)) * (place == TELEVISION)[:, None]
    return np.hstack([np.eye(5)[place], noise]).astype(np.float32)


def watch(transform, gamma=0.9, steps=1500, B=8, seed=0):
    """Let tabular Q-learning learn from r + F′: return the late steps' share at the television, and of goals."""
    rng, bonus = RNG(seed), RND(2.0, width=32, latent=16, learn_every=8, share=1.0, warmup=64, seed=seed)
    state, Q = transform.init(np.zeros(B)), np.zeros((5, 2))
    place, age, obs = np.full(B, START), np.zeros(B, int), see(rng, np.full(B, START))
    watched, reached, ended = 0, 0, 0
    for t in range(steps):
        greedy = (Q[place, 1] + 1e-9 * rng.normal(size=B) > Q[place, 0]).astype(int)
        action = np.where(rng.random(B) < 0.15, rng.integers(2, size=B), greedy)
        ahead = np.clip(place + 2 * action - 1, TELEVISION, GOAL)
        next_obs, age = see(rng, ahead), age + 1
        reward, done = (ahead == GOAL).astype(float), (ahead == GOAL) | (age >= HORIZON)
        state, shaped = transform.update(state, bonus(obs, action, next_obs, {}), done)
        target = reward + shaped + gamma * np.where(done, 0.0, Q[ahead].max(axis=1))
        np.add.at(Q, (place, action), 0.1 * (target - Q[place, action]))
        if t >= steps // 2:
            watched, reached, ended = watched + (ahead == TELEVISION).sum(), reached + reward.sum(), ended + done.sum()
        place, age = np.where(done, START, ahead), np.where(done, 0, age)
        obs = np.where(done[:, None], see(rng, place), next_obs).astype(np.float32)
    return watched / (B * (steps - steps // 2)), reached / ended


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_noisy_television_attracts_rnd_and_its_conversion_lets_the_agent_go(seed):
    watched, reached = watch(payback.scale(1.0), seed=seed)
    assert watched > 0.5
    assert reached < 0.5
    watched, reached = watch(payback.grm(0.9, delay=3), seed=seed)
    assert watched < 0.15
    assert reached > 0.9
