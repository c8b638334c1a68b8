"""PPO of TorchRL on CartPole with RND, whose bonus is a loan and cannot change the task.

python examples/torchrl_ppo.py
"""

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import Compose, GymEnv, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import RNDTransform
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import payback
from payback.integrations.torchrl import ShapeReward

GAMMA, ENVS, BATCH = 0.99, 8, 1024


def network(inputs: int, outputs: int, width: int = 64) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
    )


def cart_pole() -> GymEnv:
    return GymEnv("CartPole-v1", categorical_action_encoding=True)


def main(frames: int = 30 * BATCH, seed: int = 0, keep=None) -> float:
    """Train, and return the mean extrinsic return of the last batch's episodes; `keep` is given every batch."""
    torch.manual_seed(seed)
    target, predictor = network(4, 16), network(4, 16)
    bonus = RNDTransform(target, predictor, normalize_obs=False, normalize_reward=False)
    shaping = ShapeReward(payback.chain(payback.scale(0.5), payback.grm(GAMMA, delay=10)), learner_gamma=GAMMA)
    env = TransformedEnv(SerialEnv(ENVS, cart_pole), Compose(StepCounter(200), bonus, shaping))
    env.set_seed(seed)

    actor = TensorDictModule(network(4, 2), in_keys=["observation"], out_keys=["logits"])
    actor = ProbabilisticActor(
        actor, in_keys=["logits"], distribution_class=torch.distributions.Categorical, return_log_prob=True
    )
    critic = ValueOperator(network(4, 1), in_keys=["observation"])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    advantage = GAE(gamma=GAMMA, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam([*loss.parameters(), *predictor.parameters()], lr=1e-3)

    late = 0.0
    for batch in Collector(env, actor, frames_per_batch=BATCH, total_frames=frames):
        if keep is not None:
            keep(batch)
        done = batch["next", "done"]
        if done.any():
            late = float(batch["next", "step_count"][done].float().mean())  # CartPole pays 1 a step
        with torch.no_grad():
            advantage(batch)
        flat = batch.reshape(-1)
        for _ in range(6):
            for rows in torch.randperm(len(flat)).split(256):
                part = flat[rows]
                losses = loss(part)
                novelty = (predictor(part["next", "observation"]) - target(part["next", "observation"])).pow(2).mean()
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"] + novelty
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
    print(f"mean extrinsic return of the last episodes: {late:.0f}")
    return late


if __name__ == "__main__":
    main()
