"""Three published algorithms on a real search query, in your own loop and by the runner.

python examples/quickstart.py --horizon 1e6
"""

from __future__ import annotations

import argparse

import gymnasium as gym

import clickgym


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=float, default=1e6, help="sessions per run")
    horizon = parser.parse_args().horizon

    # One session step by step: show a list, and print the user's behaviour.
    env = gym.make("PBMRank-v0", render_mode="ansi")
    env.reset(seed=1)
    env.step([4, 8, 0, 1, 2])
    print(env.render())

    # Complete runs, compiled. Regret is the expected number of clicks lost against the best list.
    for name in ("BatchRank", "TopRank", "CascadeKLUCB"):
        agent = clickgym.make_agent(name, env, horizon=int(horizon), seed=0)
        result = clickgym.run(agent, gym.make("PBMRank-v0"), horizon, seed=0)
        clicks = result.clicks[-1] / horizon
        print(f"{name:13}regret {result.regret[-1]:7.0f}   clicks per session {clicks:.3f}")


if __name__ == "__main__":
    main()
