"""PPO in a single file, in the form of CleanRL's ppo.py, with only torch and Gymnasium's interface.

What differs from CleanRL is the agent, which draws a list, and `clickgym.RecordVectorRegret`:

    python examples/cleanrl_style_ppo.py --sessions 1e5 --seed 0
    python examples/cleanrl_style_ppo.py --env ContextualPBMRank-v0 --instance personal \\
        --learning-rate 3e-3 --epochs 10 --sessions 3e4
    python examples/cleanrl_style_ppo.py --env CascadeMDPRank-v0 --gamma 0.967
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import clickgym

NUM_ENVS, NUM_STEPS, NUM_MINIBATCHES = 64, 4, 2
GAE_LAMBDA, CLIP_COEF, VF_COEF, MAX_GRAD_NORM = 0.95, 0.2, 0.5, 0.5


def make_env(env_id: str, instance: str | None) -> Callable[[], gym.Env]:
    """Return a function that makes the environment of one stream."""

    def thunk() -> gym.Env:
        env = gym.make(env_id) if instance is None else gym.make(env_id, instance=instance)
        return gym.wrappers.RecordEpisodeStatistics(env)

    return thunk


def layer_init(layer: nn.Linear, std: float = np.sqrt(2)) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    """An actor network, which gives each item a score, and a critic network. The agent draws a list
    from the top down: each position gets one of the remaining items, with a probability
    proportional to exp(score) (Plackett–Luce). If items have features, both networks read the row
    of each item, and the value is the critic's mean over the rows. Otherwise, the networks read the
    clicks, and the user's state if there is one.
    """

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        super().__init__()
        space = envs.single_observation_space
        self.by_row = isinstance(space, gym.spaces.Dict) and "features" in space.spaces
        n_inputs = space["features"].shape[1] if self.by_row else gym.spaces.flatdim(space)
        self.n_positions = len(envs.single_action_space.nvec)
        self.n_items = int(envs.single_action_space.nvec[0])
        self.critic = nn.Sequential(
            layer_init(nn.Linear(n_inputs, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(n_inputs, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 1 if self.by_row else self.n_items), std=0.01),
        )

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        value = self.critic(x).squeeze(-1)
        return value.mean(1) if self.by_row else value

    def get_action_and_value(
        self, x: torch.Tensor, action: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return a list (drawn, or the given action), its log-probability, and the value."""
        scores = self.actor(x).squeeze(-1) if self.by_row else self.actor(x)
        if action is None:  # Plackett–Luce: the largest sums of score and Gumbel noise
            noise = -torch.empty_like(scores).exponential_().log()
            action = (scores + noise).topk(self.n_positions).indices
        shown = nn.functional.one_hot(action, self.n_items)
        placed = (shown.cumsum(1) - shown).bool()  # items above each position
        logs = scores[:, None].masked_fill(placed, -torch.inf).log_softmax(2)
        log_prob = logs.gather(2, action[..., None])[..., 0].sum(1)
        return action, log_prob, self.get_value(x)


def as_tensor(observation: Any, space: gym.Space) -> torch.Tensor:
    """Return the part of an observation that the networks read: features, or clicks and state."""
    if isinstance(observation, dict) and "state" in observation:
        state = nn.functional.one_hot(torch.tensor(observation["state"]), int(space["state"].n))
        return torch.cat([torch.tensor(observation["clicks"]), state], 1).float()
    seen = observation["features"] if isinstance(observation, dict) else observation
    return torch.tensor(seen, dtype=torch.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="PBMRank-v0")
    parser.add_argument("--instance", help="instance; by default, the environment's own")
    parser.add_argument("--sessions", type=float, default=1e5)
    about_seeds = "stream i gets the seed SEED + i, so train with 0, 1000 and 2000"
    parser.add_argument("--seed", type=int, default=0, help=about_seeds)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument(
        "--gamma",
        type=float,
        default=0.0,
        help="discount factor; 0 by default, because sessions are independent; set it if users "
        "have a state",
    )
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    # These functions also work with your own wrappers. Without any, compiled code steps all
    # streams of gym.make_vec(args.env, NUM_ENVS, autoreset_mode="SameStep") together.
    thunks = [make_env(args.env, args.instance) for _ in range(NUM_ENVS)]
    streams = gym.vector.SyncVectorEnv(thunks, autoreset_mode="SameStep")
    envs = clickgym.RecordVectorRegret(streams)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    space, shape = envs.single_observation_space, (NUM_STEPS, NUM_ENVS)
    next_obs, next_done = as_tensor(envs.reset(seed=args.seed)[0], space), torch.zeros(NUM_ENVS)
    obs = torch.zeros((NUM_STEPS, *next_obs.shape))
    actions = torch.zeros((*shape, *envs.single_action_space.shape), dtype=torch.int64)
    logprobs, rewards, dones, values = torch.zeros((4, *shape))

    for _ in range(max(1, int(args.sessions) // (NUM_STEPS * NUM_ENVS))):
        for step in range(NUM_STEPS):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprobs[step], values[step] = agent.get_action_and_value(next_obs)
            actions[step] = action
            raw, reward, terminations, truncations, infos = envs.step(action.numpy())
            next_obs, rewards[step] = as_tensor(raw, space), torch.tensor(reward)
            next_done = torch.tensor(terminations | truncations, dtype=torch.float32)
            if "final_info" in infos:
                returns = infos["final_info"]["episode"]["r"][infos["_final_info"]]
                print(f"global_step={envs.meter.step:,}, episodic_return={returns.mean():,.0f}")

        with torch.no_grad():
            next_value = agent.get_value(next_obs)
            advantages, lastgaelam = torch.zeros_like(rewards), 0.0
            for t in reversed(range(NUM_STEPS)):
                if t == NUM_STEPS - 1:
                    nextnonterminal, nextvalues = 1.0 - next_done, next_value
                else:
                    nextnonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
                lastgaelam = delta + args.gamma * GAE_LAMBDA * nextnonterminal * lastgaelam
                advantages[t] = lastgaelam
            returns = advantages + values

        b_obs, b_actions, b_logprobs, b_advantages, b_returns = (
            data.flatten(0, 1) for data in (obs, actions, logprobs, advantages, returns)
        )
        for _ in range(args.epochs):
            for mb_inds in torch.randperm(NUM_STEPS * NUM_ENVS).chunk(NUM_MINIBATCHES):
                _, newlogprob, newvalue = agent.get_action_and_value(
                    b_obs[mb_inds], b_actions[mb_inds]
                )
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()
                gain = b_advantages[mb_inds]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                pg_loss1 = -gain * ratio
                pg_loss2 = -gain * ratio.clamp(1 - CLIP_COEF, 1 + CLIP_COEF)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                v_loss = 0.5 * (newvalue - b_returns[mb_inds]).square().mean()
                loss = pg_loss + VF_COEF * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
                optimizer.step()

    runs = [envs.result("PPO", trained=0)]
    sessions, env = int(runs[0].steps[-1]), make_env(args.env, args.instance)()
    for name in ("LinearTS" if agent.by_row else "CascadeKLUCB", "Random"):
        runs.append(clickgym.run(name, env, sessions, seed=args.seed))
    for name, regret in clickgym.Results(runs).table().select("agent", "regret").iter_rows():
        print(f"{name:12} regret {regret:9,.0f} in {sessions:,} sessions")


if __name__ == "__main__":
    main()
