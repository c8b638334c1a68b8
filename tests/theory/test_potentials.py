import jax.numpy as jnp
import numpy as np
import pytest
import torch

from payback import theory as potential
from payback_lab.prior_work import methods as valued

GAMMA = 0.9
RNG = np.random.default_rng(0)
PHI = RNG.normal(size=7)
LAST = np.arange(6) == 5


def total(F) -> float:
    return float(GAMMA ** np.arange(len(F)) @ F)


def test_what_is_left_over_is_what_the_papers_say() -> None:
    assert total(potential.shape_by_potential(PHI[:-1], PHI[1:], GAMMA)) == pytest.approx(GAMMA**6 * PHI[6] - PHI[0])
    assert total(potential.shape_episodic(PHI[:-1], PHI[1:], LAST, GAMMA)) == pytest.approx(-PHI[0])
    back = potential.look_back(PHI[:-1], np.roll(PHI, 1)[:-1], np.arange(6) == 0, GAMMA)
    assert total(back) == pytest.approx(GAMMA**5 * PHI[5])


def test_look_back_is_grm_1_but_for_the_settlement() -> None:
    back = potential.look_back(PHI[:-1], np.roll(PHI, 1)[:-1], np.arange(6) == 0, GAMMA)
    grm = potential.match_episode(PHI[:-1], lambda t, i, N: float(t == min(i + 1, N - 1)), GAMMA)
    np.testing.assert_allclose(back[:-1], grm[:-1])
    assert back[-1] - grm[-1] == pytest.approx(PHI[5])


def test_dpba_at_its_fixed_point_pays_the_advice() -> None:
    advice, phi = RNG.normal(size=6), np.zeros(7)
    for _ in range(2000):
        phi[:6] = potential.advise(phi[:6], phi[1:], advice, LAST, GAMMA, rate=0.5)
    np.testing.assert_allclose(potential.shape_episodic(phi[:6], phi[1:], LAST, GAMMA), advice, atol=1e-9)


def test_a_potential_may_be_of_the_belief() -> None:
    b = RNG.dirichlet([1, 1, 1], size=7)
    phi = b @ np.array([1.0, -2.0, 3.0])
    assert total(potential.shape_episodic(phi[:-1], phi[1:], LAST, GAMMA)) == pytest.approx(-phi[0])


def test_adops_masks_terminal_values_and_keeps_the_order() -> None:
    reward, q, v = np.array([9.0, 9.0]), np.array([0.0, 0.0]), np.array([1.0, 1.0])
    v_i, after = np.array([2.0, 2.0]), np.array([100.0, 100.0])
    shaped = valued.keep_preference(reward, q, v, v_i, after, np.array([False, True]), GAMMA, epsilon=0.1)
    np.testing.assert_allclose(q + shaped + GAMMA * np.array([100.0, 0.0]), v + v_i - 0.1)
    best = valued.keep_preference(reward - 9, v, v, v_i, after * 0, np.array([False, True]), GAMMA)
    np.testing.assert_allclose(best, v_i)


def test_adopes_goes_from_the_raw_bonus_to_adops() -> None:
    reward, kept = RNG.normal(size=5), RNG.normal(size=5)
    np.testing.assert_array_equal(valued.approach_preference(reward, kept, 0.0), reward)
    np.testing.assert_allclose(valued.approach_preference(reward, kept, 1.0), kept)
    np.testing.assert_allclose(valued.approach_preference(reward, kept, 0.25), 0.75 * reward + 0.25 * kept)
    with pytest.raises(ValueError, match="between 0 and 1"):
        valued.approach_preference(reward, kept, 1.5)


def test_pies_without_advice_is_the_environments_own_choice() -> None:
    q = RNG.normal(size=4)
    np.testing.assert_array_equal(valued.bias_choice(q, RNG.normal(size=4), 0.0), q)
    with pytest.raises(ValueError, match="negative"):
        valued.bias_choice(q, q, -1.0)


@pytest.mark.parametrize("asarray", [torch.asarray, jnp.asarray])
def test_other_libraries(asarray) -> None:
    phi, after, done = (asarray(x) for x in (PHI[:-1].astype(np.float32), PHI[1:].astype(np.float32), LAST))
    expected = potential.shape_episodic(PHI[:-1], PHI[1:], LAST, GAMMA)
    np.testing.assert_allclose(
        np.asarray(potential.shape_episodic(phi, after, done, GAMMA)), expected, rtol=1e-5, atol=1e-6
    )
    valued.approach_preference(phi, valued.keep_preference(phi, phi, after, phi, after, done, GAMMA), 0.5)
    potential.look_back(phi, after, done, GAMMA)
