"""The base code's side of the comparison: its network in Torch, torch-ac's PPO, and the way between the two."""

import numpy as np
import torch
from torch import nn

from payback_lab.learners.ppo.actor_critic import Parameters
from payback_lab.learners.ppo.config import PPO


class SerialEnvironments:
    """Stand in for torch-ac's ParallelEnv, without processes."""

    def __init__(self, envs):
        self.envs = envs
        self.observation_space, self.action_space = envs[0].observation_space, envs[0].action_space

    def reset(self):
        return [env.reset()[0] for env in self.envs]

    def step(self, actions):
        results = []
        for env, action in zip(self.envs, actions, strict=True):
            observation, reward, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                observation, _ = env.reset()
            results.append((observation, reward, terminated, truncated, info))
        return zip(*results, strict=True)


def torch_network():
    import torch_ac

    class Network(nn.Module, torch_ac.RecurrentACModel):
        recurrent, memory_size = True, 128

        def __init__(self):
            super().__init__()
            self.convolutions = nn.Sequential(
                *(nn.Conv2d(3, 16, 2), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(16, 32, 2), nn.ReLU()),
                *(nn.Conv2d(32, 64, 2), nn.ReLU()),
            )
            self.lstm = nn.LSTMCell(64, 64)
            self.actor = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 7))
            self.critic = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

        def forward(self, obs, memory):
            features = self.convolutions(obs.image.permute(0, 3, 1, 2)).flatten(1)
            hidden, cell = self.lstm(features, (memory[:, :64], memory[:, 64:]))
            logits = torch.log_softmax(self.actor(hidden), dim=1)
            value = self.critic(hidden).squeeze(1)
            return torch.distributions.Categorical(logits=logits), value, torch.cat([hidden, cell], dim=1)

    return Network()


def parameters_of(network) -> Parameters:
    """Read a Torch network's parameters, in our layout."""
    w = {name: value.detach().numpy().copy() for name, value in network.named_parameters()}

    def column(name):
        return w[name][:, None]

    return Parameters(
        conv1=w["convolutions.0.weight"].transpose(0, 2, 3, 1).reshape(16, 12),
        conv1_bias=column("convolutions.0.bias"),
        conv2=w["convolutions.3.weight"].reshape(32, 64),
        conv2_bias=column("convolutions.3.bias"),
        conv3=w["convolutions.5.weight"].reshape(64, 128),
        conv3_bias=column("convolutions.5.bias"),
        input=w["lstm.weight_ih"],
        input_bias=column("lstm.bias_ih"),
        hidden=w["lstm.weight_hh"],
        hidden_bias=column("lstm.bias_hh"),
        tops=np.concatenate([w["actor.0.weight"], w["critic.0.weight"]]),
        tops_bias=np.concatenate([column("actor.0.bias"), column("critic.0.bias")]),
        policy=w["actor.2.weight"],
        policy_bias=column("actor.2.bias"),
        value=w["critic.2.weight"],
        value_bias=column("critic.2.bias"),
    )


def load_parameters(network, p: Parameters) -> None:
    """Write parameters in our layout into a Torch network."""
    arrays = {
        "convolutions.0.weight": np.reshape(p.conv1, (16, 2, 2, 3)).transpose(0, 3, 1, 2),
        "convolutions.3.weight": np.reshape(p.conv2, (32, 16, 2, 2)),
        "convolutions.5.weight": np.reshape(p.conv3, (64, 32, 2, 2)),
        "lstm.weight_ih": p.input,
        "lstm.weight_hh": p.hidden,
        "actor.0.weight": p.tops[:64],
        "critic.0.weight": p.tops[64:],
        "actor.2.weight": p.policy,
        "critic.2.weight": p.value,
        "convolutions.0.bias": p.conv1_bias,
        "convolutions.3.bias": p.conv2_bias,
        "convolutions.5.bias": p.conv3_bias,
        "lstm.bias_ih": p.input_bias,
        "lstm.bias_hh": p.hidden_bias,
        "actor.0.bias": p.tops_bias[:64],
        "critic.0.bias": p.tops_bias[64:],
        "actor.2.bias": p.policy_bias,
        "critic.2.bias": p.value_bias,
    }
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.tensor(np.asarray(arrays[name])).reshape(parameter.shape))


def torch_algorithm(config: PPO, network, envs, reshape_reward=None):
    """Return torch-ac's PPO with our numbers, environments side by side in one process."""
    import torch_ac.algos.base

    torch_ac.algos.base.ParallelEnv = SerialEnvironments

    def preprocess(observations, device=None):
        images = np.array([observation["image"] for observation in observations])
        return torch_ac.DictList({"image": torch.tensor(images, dtype=torch.get_default_dtype())})

    return torch_ac.PPOAlgo(
        envs,
        network,
        num_frames_per_proc=config.steps,
        discount=config.gamma,
        lr=config.learning_rate,
        gae_lambda=config.gae_lambda,
        entropy_coef=config.entropy_weight,
        value_loss_coef=config.value_weight,
        max_grad_norm=config.largest_norm,
        recurrence=config.recurrence,
        adam_eps=config.adam_epsilon,
        clip_eps=config.clip,
        epochs=config.epochs,
        batch_size=config.batch,
        preprocess_obss=preprocess,
        reshape_reward=reshape_reward,
    )
