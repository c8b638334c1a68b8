"""PPO of Stable-Baselines3 on MiniGrid DoorKey: no bonus, a raw bonus, and the same bonus repaid by GRM.

    python examples/sb3_ppo_minigrid.py --steps 100000      three runs, some minutes; draws sb3_ppo_minigrid.svg

The bonus, `EpisodicCount`, pays for observations that are new in this episode. One seed shows what may happen;
`payback-lab run curiosity` trains several seeds and every bonus. Needs '.[sb3]' and minigrid, and altair and
vl-convert-python for the picture.
"""

import argparse
from collections import deque

import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import payback
from payback.bonuses import EpisodicCount
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward

GAMMA = 0.99
SCHEMES = {"no bonus": None, "raw bonus": payback.scale(1.0), "GRM, D = 30": payback.grm(GAMMA, delay=30)}


def grid(name: str) -> gym.Env:
    """The agent's view of 7×7 cells, flattened."""
    return gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(name)))


class Curve(BaseCallback):
    """Records the mean extrinsic return of the last hundred episodes, once per rollout."""

    def __init__(self):
        super().__init__()
        self.late, self.points = deque(maxlen=100), []

    def _on_step(self) -> bool:
        self.late.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
        return True

    def _on_rollout_end(self) -> None:
        if self.late:
            self.points.append({"steps": self.num_timesteps, "return": float(np.mean(self.late))})


def train(
    transform: payback.RewardTransform | None,
    steps: int,
    seed: int = 0,
    name: str = "MiniGrid-DoorKey-6x6-v0",
    callbacks: tuple[BaseCallback, ...] = (),
) -> PPO:
    """Train with the bonus under this transform, without a bonus for None."""
    env = make_vec_env(lambda: grid(name), n_envs=8, seed=seed)  # Monitor inside: it reports the extrinsic return
    check = []
    if transform is not None:
        env = ShapeVectorReward(env, EpisodicCount(), transform)
        check = [CheckShaping(strict=False)]  # not strict, because the raw bonus would be refused
    options = {"n_steps": 128, "batch_size": 256, "n_epochs": 10, "learning_rate": 1e-3, "ent_coef": 0.01}
    model = PPO("MlpPolicy", env, gamma=GAMMA, seed=seed, device="cpu", **options)
    return model.learn(steps, callback=[*check, *callbacks])


def draw(points: list[dict], path: str) -> None:
    """Draw the return against the steps, one line per scheme."""
    import altair

    scheme = altair.Color("scheme:N", title=None, sort=list(SCHEMES), legend=altair.Legend(orient="top"))
    y = altair.Y("return:Q", title="return without the bonus, last 100 episodes")
    lines = altair.Chart(altair.Data(values=points), width=420, height=260).mark_line()
    lines.encode(altair.X("steps:Q", title="environment steps"), y, scheme).save(path)


def main(line: list[str] | None = None) -> None:
    """Train three agents, print what they reach, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="MiniGrid-DoorKey-6x6-v0", help="any MiniGrid environment")
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps of each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="sb3_ppo_minigrid.svg", help="the picture: .svg, .png or .html")
    args = parser.parse_args(line)
    points = []
    for name, transform in SCHEMES.items():
        curve = Curve()
        train(transform, args.steps, args.seed, args.env, (curve,))
        points += [{**point, "scheme": name} for point in curve.points]
        last = f"{curve.points[-1]['return']:.2f}" if curve.points else "no episode has ended"
        print(f"{name:12} return of the last 100 episodes: {last}")
    draw(points, args.out)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
