"""The named learners: algorithms of stable-baselines3 with other defaults.

``n_envs`` streams are stepped together, because one pass through the network serves all of them,
and updates follow after few sessions.
"""

from __future__ import annotations

from typing import ClassVar

from .learner import Learner


class PPO(Learner):
    """Proximal policy optimisation (stable-baselines3) on the stream of sessions.

    Idea:
        Proximal policy optimisation (PPO) knows nothing about users and positions: a list is an
        action, and the clicks are its reward. A neural network gives a score of each item, and
        another output estimates the expected reward. A list is drawn from the top down: each item
        in proportion to exp(score), among the remaining items (`PlackettLuceActorCritic`).
        After every few sessions of many parallel streams, gradient steps make lists more likely
        that earned more than expected. The change is clipped, so the same sessions can serve for
        several gradient steps before they are out of date. It works with any reward and click
        model, and with masks, but needs many more sessions than a bandit algorithm, and may settle
        on a suboptimal list.

    Algorithm:
        ::

            draw the weights of policy π and value V
            repeat until the horizon:
                n_steps times, in each of n_envs streams:
                    observe o, the clicks of the stream's last session
                    draw the list a = (a_1 … a_K) from π(·|o), in proportion to exp(score);  show it
                    observe the clicks and the reward r;  keep (o, a, r, π_old = π(a|o))
                Â = r − V(o) for each session, the advantage (discount 0: sessions are independent)
                n_epochs times, for each random batch of batch_size of these sessions:
                    Â is normalised to mean 0 and deviation 1 in the batch
                    ρ = π(a|o) / π_old,  ρ' = clip(ρ, 1 − ε, 1 + ε)        (ε: clip_range)
                    step of Adam up mean min(ρ Â, ρ' Â) + ent_coef entropy(π) − ½ (r − V(o))²

    Source: Schulman, Wolski, Dhariwal, Radford, Klimov, *Proximal policy optimization algorithms*,
    arXiv 2017; implemented as for `Learner`.
    """

    paper = "Schulman et al. 2017; stable-baselines3"
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


class A2C(Learner):
    """Advantage actor-critic (stable-baselines3) on the stream of sessions.

    Idea:
        Advantage actor-critic (A2C) knows nothing about users and positions: a list is an action,
        and the clicks are its reward. A neural network gives scores, by which lists are drawn as in
        `PPO`, and another output estimates the expected reward. After every step of many parallel
        streams, one gradient step makes lists more likely that earned more than expected. The
        gradient is unbiased and needs no clipping, because the updated policy itself has drawn the
        lists. Each session is used only once and gradients are noisy, so it
        needs many sessions. It may settle on a suboptimal list, because a probability that has gone
        to 0 does not come back.

    Algorithm:
        ::

            draw the weights of policy π and value V
            repeat until the horizon:
                n_steps times, in each of n_envs streams:
                    observe o, the clicks of the stream's last session
                    draw the list a = (a_1 … a_K) from π(·|o), in proportion to exp(score);  show it
                    observe the clicks and the reward r
                Â = r − V(o) for each of them, the advantage (discount 0: sessions are independent)
                one step of RMSProp up mean Â log π(a|o) + ent_coef entropy(π) − ½ (r − V(o))²
                forget the sessions

    Source: Mnih, Badia, Mirza, Graves, Harley, Lillicrap, Silver, Kavukcuoglu, *Asynchronous
    methods for deep reinforcement learning*, ICML 2016, in its synchronous form; implemented as for
    `Learner`.
    """

    paper = "Mnih et al. 2016; stable-baselines3"
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
    """Deep Q-learning (stable-baselines3) on the stream of sessions.

    Idea:
        Deep Q-learning (DQN) knows nothing about users and positions, and chooses each list item by
        item. A neural network Q estimates, for each item, the reward of the list if this item comes
        next, and the best item is placed. In a share ε of the choices, which falls over time, a
        random item is placed instead. All choices go into a replay memory, and random batches of
        them fit the network to targets from an older copy, which stabilises the fit. The library
        has no masks, so an item that is already on the list is replaced by the next one, in a
        random order, that is not. It learns values of choices and not a ranking, and its random
        choices cost regret as long as it runs.

    Algorithm:
        ::

            put the items in a random order;  empty the memory
            draw the weights of Q;  Q' = Q (the older copy)
            repeat until the horizon, in all n_envs streams at once:
                observe o: the clicks of the stream's last session, and the items placed so far
                with probability ε: choose a random item;  else the item i of largest Q(o, i)
                place it; if it is on the list already, the next item in the order that is not
                if the list has K items: show it, observe the clicks and the reward r;  else r = 0
                put (o, i, the rewards of n_steps choices, the o after them) into the memory
                every train_freq choices, after the first learning_starts: gradient_steps times
                    draw batch_size entries
                    y = their rewards, plus max_j Q'(o after, j) unless the list ended: the target
                    descend the Huber loss of Q(o, i) − y by a step of Adam
                every target_update_interval choices: Q' = Q
                ε falls to exploration_final_eps in the first exploration_fraction of the choices

    Source: Mnih et al., *Human-level control through deep reinforcement learning*, Nature 2015;
    implemented as for `Learner`.
    """

    paper = "Mnih et al. 2015; stable-baselines3"
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
    """Soft actor-critic (stable-baselines3) on the stream of sessions: a score for each item, or a
    weight for each feature.

    Idea:
        Soft actor-critic (SAC) is made for actions that are real numbers, and knows nothing about
        users and positions. Its action is one score for each item, and the list has the items by
        decreasing score. Two neural networks, the critics, estimate the reward of scores from a
        memory of past sessions. A third network, the actor, draws scores that the more pessimistic
        critic rates highly, and explores because it is also rewarded for randomness. Similar scores
        make similar lists, but the reward jumps where two scores cross, and the critics must smooth
        these jumps. One gradient step per session would take hours for 10⁵ sessions; the defaults
        take few steps for all streams together, which costs regret. Where candidates have features
        the action is one weight for each feature, and the score of a candidate is the weighted sum
        of its features: a score for each row would mean another candidate in every session.

    Algorithm:
        ::

            put the items in a random order;  the memory is empty
            draw the weights of the actor π and of the critics Q_1 and Q_2
            repeat until the horizon, in all n_envs streams at once:
                observe o, the clicks of the stream's last session
                draw scores a in (−1, 1)^L from π(·|o);  in the first learning_starts at random
                show the K items of largest score, in decreasing order
                observe the clicks and the reward r;  put (o, a, r) into the memory
                after each step of the streams, gradient_steps times:
                    draw batch_size entries
                    descend (Q_1(o, a) − r)² + (Q_2(o, a) − r)²  (discount 0: independent sessions)
                    draw fresh scores ã from π(·|o)
                    ascend min(Q_1(o, ã), Q_2(o, ã)) − ent_coef log π(ã|o) in the weights of π

    Source: Haarnoja, Zhou, Abbeel, Levine, *Soft actor-critic: off-policy maximum entropy deep
    reinforcement learning with a stochastic actor*, ICML 2018; implemented as for `Learner`.
    """

    paper = "Haarnoja et al. 2018; stable-baselines3"
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
