"""The RL algorithms PPO, A2C, DQN and SAC of stable-baselines3, with defaults for ranking.

All ``n_envs`` streams step together, so one pass through the network serves all streams, and
updates are frequent. The library's documentation describes the algorithms themselves.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .learner import Learner


class PPO(Learner):
    """PPO: an agent that learns by proximal policy optimisation (stable-baselines3).

    Idea:
        PPO knows nothing about users and positions: a list is an action, and the clicks are its
        reward. A neural network gives each item a score, and a list is drawn from the top down,
        each item in proportion to exp(score) among the remaining items (`PlackettLuceActorCritic`).
        A second output estimates the expected reward. After ``n_steps`` sessions of each stream,
        gradient steps increase the probabilities of lists that earned more than expected. Each
        change of a probability is clipped, so the same sessions can be used for several steps. PPO
        works with any reward and click model, but it needs many more sessions than a bandit, and it
        may settle on a suboptimal list.

    Source: Schulman, Wolski, Dhariwal, Radford, Klimov, *Proximal policy optimization algorithms*,
    arXiv 2017; implemented by the library of `Learner`.

    Example:
        >>> import stable_baselines3, clickgym
        >>> result = clickgym.run("PPO:n_envs=16,batch_size=64", "PBMRank-v0", 256, seed=0)
        >>> result.agent, result.engine, int(result.steps[-1])
        ('PPO', 'stable-baselines3', 256)
    """

    paper = "Schulman et al. 2017; stable-baselines3"
    bibtex_keys = ["ppo", "sb3"]
    actions = "rankings"
    defaults: ClassVar = {
        "n_envs": 64,
        "n_steps": 4,
        "batch_size": 128,
        "n_epochs": 4,
        "learning_rate": 1e-3,
        "ent_coef": 0.0,
        "clip_range": 0.2,
        "net_arch": (64, 64),
    }
    with_features: ClassVar = {"batch_size": 256, "n_epochs": 10, "learning_rate": 3e-3}

    def arguments(self, discount: float | None = None) -> dict[str, Any]:
        arguments = super().arguments(discount)
        n_sessions = arguments["n_steps"] * self.n_envs  # from one update to the next
        if 1 < n_sessions < arguments["batch_size"]:  # the library would warn, and do the same
            arguments["batch_size"] = n_sessions
        return arguments


class A2C(Learner):
    """A2C: an agent that learns by the advantage actor-critic method (stable-baselines3).

    Idea:
        A2C draws lists by the scores of a neural network, as `PPO` does, and a second output of the
        network estimates the expected reward. After every step of many parallel streams, one
        gradient step increases the probabilities of lists that earned more than expected. The
        gradient is unbiased and needs no clipping, because the policy that is updated has drawn the
        lists itself. Each session is used only once and gradients are noisy, so A2C needs many
        sessions. It may settle on a suboptimal list, because a probability that has reached 0 does
        not recover.

    Source: Mnih, Badia, Mirza, Graves, Harley, Lillicrap, Silver, Kavukcuoglu, *Asynchronous
    methods for deep reinforcement learning*, ICML 2016, in its synchronous form; implemented by the
    library of `Learner`.

    Example:
        >>> import stable_baselines3, clickgym
        >>> result = clickgym.run("A2C:n_envs=16,learning_rate=0.01", "PBMRank-v0", 256, seed=0)
        >>> result.agent, result.engine, int(result.steps[-1])
        ('A2C', 'stable-baselines3', 256)
    """

    paper = "Mnih et al. 2016; stable-baselines3"
    bibtex_keys = ["a3c", "sb3"]
    actions = "rankings"
    defaults: ClassVar = {
        "n_envs": 64,
        "n_steps": 1,
        "learning_rate": 1e-3,
        "ent_coef": 0.0,
        "net_arch": (64, 64),
    }
    with_features: ClassVar = {"learning_rate": 5e-3}


class DQN(Learner):
    """DQN: an agent that chooses lists item by item and learns by deep Q-learning
    (stable-baselines3).

    Idea:
        DQN chooses each list item by item. It observes the clicks of the last session and the items
        placed so far. A neural network estimates, for each item, the reward of the list if this
        item comes next, and DQN places the item with the highest estimate. With a probability that
        decreases over time, it places a random item instead. DQN stores all choices in a replay
        memory. Random batches from this memory train the network, with targets from an older copy
        of the network, which stabilises training. The library's DQN cannot mask actions, so if it
        chooses an item that is already in the list, the next free item in a random order replaces
        it. DQN learns values of single choices, not a ranking, and its random choices cost regret
        as long as it runs.

    Source: Mnih et al., *Human-level control through deep reinforcement learning*, Nature 2015;
    implemented by the library of `Learner`.

    Example:
        >>> import stable_baselines3, clickgym
        >>> result = clickgym.run("DQN:n_envs=16,learning_starts=64", "PBMRank-v0", 256, seed=0)
        >>> result.agent, result.engine, int(result.steps[-1])
        ('DQN', 'stable-baselines3', 256)
    """

    paper = "Mnih et al. 2015; stable-baselines3"
    bibtex_keys = ["dqn", "sb3"]
    actions = "items"
    defaults: ClassVar = {
        "n_envs": 64,
        "n_steps": 5,
        "train_freq": 5,
        "gradient_steps": 5,
        "batch_size": 256,
        "learning_rate": 1e-3,
        "learning_starts": 1000,
        "buffer_size": 100_000,
        "target_update_interval": 640,
        "exploration_fraction": 0.1,
        "exploration_final_eps": 0.01,
        "net_arch": (64, 64),
    }


class SAC(Learner):
    """SAC: an agent that learns by the soft actor-critic method (stable-baselines3). Its actions
    are scores of items, or weights of features.

    Idea:
        SAC is made for actions that are real numbers. Its action is a score for each item, or, if
        items have features, a weight for each feature, as in `ScoresAction`. Two neural networks,
        the critics, estimate the reward of an action from a memory of past sessions. A third
        network, the actor, draws actions that the more pessimistic critic rates highly. The actor
        explores because it is also rewarded for randomness. The reward jumps where two scores
        cross, and the critics can only approximate these jumps by smooth functions. With one
        gradient step per session, 10⁵ sessions would take hours, so the defaults make only a few
        gradient steps for each step of all streams. This costs regret.

    Source: Haarnoja, Zhou, Abbeel, Levine, *Soft actor-critic: off-policy maximum entropy deep
    reinforcement learning with a stochastic actor*, ICML 2018; implemented by the library of
    `Learner`.

    Example:
        >>> import stable_baselines3, clickgym
        >>> result = clickgym.run("SAC:n_envs=16,learning_starts=64", "PBMRank-v0", 256, seed=0)
        >>> result.agent, result.engine, int(result.steps[-1])
        ('SAC', 'stable-baselines3', 256)
    """

    paper = "Haarnoja et al. 2018; stable-baselines3"
    bibtex_keys = ["sac", "sb3"]
    actions = "scores"
    defaults: ClassVar = {
        "n_envs": 64,
        "batch_size": 256,
        "learning_starts": 1000,
        "buffer_size": 100_000,
        "net_arch": (64, 64),
        "gradient_steps": 4,
        "learning_rate": 1e-3,
        "ent_coef": 0.01,
    }
