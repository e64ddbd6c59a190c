"""How few clicks must be faked until an agent shows the worst items?

    python examples/attack.py --figure attack.png

Two published attacks change the clicks that an agent observes; regret is that of the true users. In
a cascade, removed clicks also make the agent believe that all items were examined.
"""

import argparse

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import clickgym

TARGETS = [7, 8, 9]  # three of the seven worst items


def no_attack(ranking, clicks, session):
    return clicks


def suppression(ranking, clicks, session):
    """Remove all clicks on other items (Balasubramanian et al. 2024)."""
    return clicks * np.isin(ranking, TARGETS)


def attack_then_quit(ranking, clicks, session):
    """Click on one target and on nothing else for 1,000 sessions (Wang et al. 2023)."""
    return (ranking == TARGETS[0]).astype(clicks.dtype) if session <= 1000 else clicks


class Attack(gym.Wrapper):
    """Environment that shows changed clicks; `cost` is their number.

    Reward and regret stay those of the true users.
    """

    def __init__(self, env, change):
        super().__init__(env)
        self.change, self.session, self.cost = change, 0, 0

    def step(self, action):
        true, *rest = self.env.step(action)
        self.session += 1
        clicks = self.change(action, true, self.session)
        self.cost += int((clicks != true).sum())
        return clicks, *rest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--horizon", type=int, default=5000, help="sessions")
    parser.add_argument("--figure", default="attack.png", help="a .png or .svg file")
    options = parser.parse_args()
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    agents = ["CascadeUCB1", "CascadeUCBV", "CascadeKLUCB", "CascadeTS"]
    for place, change in enumerate((no_attack, suppression, attack_then_quit)):
        label, totals = change.__name__.replace("_", "-"), []
        for name in agents:
            users = gym.make("CMRank-v0", attraction=[0.5, 0.4, 0.3, *[0.2] * 7], n_positions=3)
            env = Attack(users, change)
            result = clickgym.run(name, env, options.horizon, seed=0)
            totals.append((result.regret[-1], env.cost))
            print(f"{name:<13} {label:<17} regret {totals[-1][0]:7,.0f}, changed {env.cost:6,}")
        for axes, heights in zip(panels, zip(*totals, strict=True), strict=True):
            axes.bar(np.arange(4) + place / 4, heights, 0.22, label=label)
            axes.set_xticks(np.arange(4) + 0.25, agents)
    panels[0].set(ylabel="regret", title=f"{options.horizon:,} sessions")
    panels[1].set(ylabel="changed clicks", title="cost of the attack")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(options.figure)
