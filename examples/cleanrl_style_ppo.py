"""Train PPO in a single file, in the style of CleanRL, with only torch and Gymnasium's interface.

The program uses a native vector environment:

    python examples/cleanrl_style_ppo.py --sessions 1e5 --seed 0
    python examples/cleanrl_style_ppo.py --env ContextualPBMRank-v0 --instance personal \\
        --learning-rate 3e-3 --epochs 10 --sessions 3e4
    python examples/cleanrl_style_ppo.py --env CascadeMDPRank-v0 --gamma 0.967
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn

import clickgym

NUM_ENVS, NUM_STEPS, MINIBATCHES = 64, 4, 2
GAE_LAMBDA, CLIP = 0.95, 0.2


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
        self.actor = nn.Sequential(
            nn.Linear(n_inputs, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 1 if self.by_row else self.n_items),
        )
        self.critic = nn.Sequential(
            nn.Linear(n_inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)

    def forward(
        self, observation: torch.Tensor, action: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Return a list (drawn, or the given action), its log-probability, and the observation's
        value.
        """
        scores, value = self.actor(observation), self.critic(observation).squeeze(-1)
        if self.by_row:
            scores, value = scores.squeeze(-1), value.mean(1)
        if action is None:  # Plackett–Luce: the largest sums of score and Gumbel noise
            noise = -torch.empty_like(scores).exponential_().log()
            action = (scores + noise).topk(self.n_positions).indices
        shown = nn.functional.one_hot(action, self.n_items)
        placed = (shown.cumsum(1) - shown).bool()  # items above each position
        logs = scores[:, None].masked_fill(placed, -torch.inf).log_softmax(2)
        log_prob = logs.gather(2, action[..., None])[..., 0].sum(1)
        return action, log_prob, value


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
    parser.add_argument("--seed", type=int, default=0)
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
    users = {} if args.instance is None else {"instance": args.instance}
    recorded = clickgym.RecordVectorRegret(
        gym.make_vec(args.env, num_envs=NUM_ENVS, autoreset_mode="SameStep", **users)
    )
    envs = RecordEpisodeStatistics(recorded)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (NUM_STEPS, NUM_ENVS)
    space, done = envs.single_observation_space, torch.zeros(NUM_ENVS)
    observation = as_tensor(envs.reset(seed=args.seed)[0], space)
    observations = torch.zeros((NUM_STEPS, *observation.shape))
    actions = torch.zeros((*shape, *envs.single_action_space.shape), dtype=torch.int64)
    log_probs, rewards, dones, values = torch.zeros((4, *shape))

    for _ in range(max(1, int(args.sessions) // (NUM_STEPS * NUM_ENVS))):
        for t in range(NUM_STEPS):
            observations[t], dones[t] = observation, done
            with torch.no_grad():
                actions[t], log_probs[t], values[t] = agent(observation)
            raw, reward, terminations, truncations, infos = envs.step(actions[t].numpy())
            observation, rewards[t] = as_tensor(raw, space), torch.tensor(reward)
            done = torch.tensor(terminations | truncations, dtype=torch.float32)
            if "episode" in infos:
                returns = infos["episode"]["r"][infos["_episode"]]
                print(
                    f"after {recorded.meter.step:,} sessions: mean return of an episode "
                    f"{returns.mean():,.0f}"
                )

        with torch.no_grad():  # generalised advantage estimation
            next_value, next_done, advantage = (
                agent(observation)[2],
                done,
                torch.zeros(NUM_ENVS),
            )
            advantages = torch.zeros(shape)
            for t in reversed(range(NUM_STEPS)):
                going_on = args.gamma * (1 - next_done)
                advantage = (
                    rewards[t]
                    + going_on * next_value
                    - values[t]
                    + going_on * GAE_LAMBDA * advantage
                )
                advantages[t], next_value, next_done = advantage, values[t], dones[t]

        batch = [
            data.flatten(0, 1)
            for data in (observations, actions, log_probs, advantages, advantages + values)
        ]
        for _ in range(args.epochs):
            for rows in torch.randperm(NUM_STEPS * NUM_ENVS).chunk(MINIBATCHES):
                seen, chosen, old_log_prob, gain, target = (data[rows] for data in batch)
                _, log_prob, value = agent(seen, chosen)
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                ratio = (log_prob - old_log_prob).exp()
                policy_loss = -torch.min(
                    gain * ratio, gain * ratio.clamp(1 - CLIP, 1 + CLIP)
                ).mean()
                loss = policy_loss + 0.5 * (value - target).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()

    runs = [recorded.result("PPO", trained=0)]
    sessions, env = int(runs[0].steps[-1]), gym.make(args.env, **users)
    for name in ("LinearTS" if agent.by_row else "CascadeKLUCB", "Random"):
        runs.append(clickgym.run(name, env, sessions, seed=args.seed))
    for agent, regret in clickgym.Results(runs).table().select("agent", "regret").iter_rows():
        print(f"{agent:12} regret {regret:9,.0f} in {sessions:,} sessions")


if __name__ == "__main__":
    main()
