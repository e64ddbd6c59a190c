"""The class `CascadeMDP`: the cascading Markov decision process (Du, Srikant and Chen 2024), with
its exact optimum and the exact value of any policy.

A user is in one of S states, which the agent observes. The user scans a list from the top until the
first click. A click on item i in state s earns ``r(s, i)``, and moves the user to state s' with
probability ``p(s' | s, i)``. A session without a click earns nothing, and moves the user to s' with
probability ``p(s' | s, ⊥)``. The attraction is q, and the discount is γ = 1 - 1/H. The worth of a
click on item i is ``w(i) = r(s, i) + γ Σ p(s' | s, i) V(s')``, and the worth of no click is
``w(⊥) = γ Σ p(s' | s, ⊥) V(s')``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    as_integers,
    as_numbers,
    check_count,
    check_number,
    check_positions,
    probabilities,
)
from ...core.state import Floats
from ...core.sums import solve, weighted_sums
from ..simulation.scan import best_scan
from ..simulation.user_model import UserModel
from ..spaces import named_ranking
from .memory_kernels import MemoryConstants, MemoryTask

Lists = NDArray[np.int64]

TOLERANCE = 1e-13
"""The smallest improvement for which policy iteration continues, relative to the largest possible
total reward of a user.
"""


class CascadeMDP(UserModel):
    """Users with memory, who read a list from the top, click at most once, and return in a state
    that depends on the click.

    By default, each session is the user's last session with probability 1/H. The user then leaves
    for good, the environment reports ``terminated``, and another user follows. With ``n_sessions``,
    each user stays for exactly this number of sessions, and the observation also contains the
    number of sessions left.

    ⚠ Every list has exactly K items. The paper also allows shorter lists, which are better in some
    states, so the paper's optimum may be higher than the optimum that clickgym computes.

    Click law:
        ::

            P(click on d_k | s, R) = q(s, d_k) Π_{i<k} (1 - q(s, d_i))

        ⊥ stands for no click, with r(s, ⊥) = 0. The discount is γ = 1 - 1/H. An outcome i of a
        session is an item or ⊥. The values of an outcome i, a list R and a state s are

        ::

            w(s, i) = r(s, i) + γ Σ_{s'} p(s' | s, i) V*(s')
            Q*(s, R) = Σ_k P(click on d_k | s, R) w(s, d_k) + Π_k (1 - q(s, d_k)) w(s, ⊥)
            V*(s) = max over R of Q*(s, R)

    User:
        state s → examine k: 1
        examine k → click: q(s, d_k)
        examine k → examine k + 1: 1 - q(s, d_k)
        click → leave for good: 1/H
        click → next state s': 1 - 1/H

    Args:
        attraction: ``(S, L)`` probabilities that an examined item is clicked, in each state.
        transition: ``(S, L + 1, S)`` probabilities of the next state, given the current state and
            the click. In the second axis, entry i < L is a click on item i, and the last entry is
            no click.
        first: ``(S,)`` probabilities of a new user's first state; by default, all states are
            equally likely.
        click_rewards: ``(S, L)`` the reward of a click on each item in each state, finite and at
            least 0; by default 1.
        mean_sessions: H, the mean number of sessions of a user, at least 1; by default 20. Each
            session is the user's last session with probability 1/H.
        n_sessions: the exact number of sessions of each user, which replaces ``mean_sessions``; by
            default, the number is random.
        n_positions: K, the length of a list.

    Attributes:
        attraction, transition, first, click_rewards: the arguments, as arrays.
        n_states: S, the number of states.
        value: ``(S,)`` V*, the highest expected total reward of a user from each state on; with
            ``n_sessions``, an array ``(n_sessions, S)``, whose row d is for d + 1 sessions left.
        best: ``(S, K)`` the best list in each state; with ``n_sessions``, an array ``(n_sessions,
            S, K)``, whose first index d is for d + 1 sessions left.

    Raises:
        ValueError: an argument is invalid; the message names the parameter and what was expected.

    Source:
        Du, Srikant, Chen, *Cascading reinforcement learning*, ICLR 2024.

    Example:
        >>> bait = [[[0, 1], [1, 0], [1, 0]], [[0, 1]] * 3]  # item 0 spoils a user for good
        >>> sizes = {"n_positions": 1, "first": [1, 0], "mean_sessions": 10}
        >>> users = CascadeMDP([[0.6, 0.5], [0.1, 0.1]], bait, **sizes)
        >>> users.best[:, 0], users.value.round(2)
        (array([1, 0]), array([5., 1.]))
    """

    title = "cascading Markov decision process"
    paper = "Du et al. 2024"
    bibtex_keys = ["cascadingrl"]
    default_instance = "clickbait"
    max_episode_steps = None
    may_leave = True

    def __init__(
        self,
        attraction: ArrayLike,
        transition: ArrayLike,
        *,
        n_positions: int,
        first: ArrayLike | None = None,
        click_rewards: ArrayLike | None = None,
        mean_sessions: float = 20.0,
        n_sessions: int | None = None,
    ) -> None:
        self.attraction = probabilities("attraction", attraction, (None, None))
        n_states, n_items = self.attraction.shape
        self.n_positions = check_positions(n_positions, n_items)
        self.transition = _laws("transition", transition, (n_states, n_items + 1, n_states))
        alike = np.full(n_states, 1 / n_states)
        self.first = alike if first is None else _laws("first", first, (n_states,))
        rewards = np.ones((n_states, n_items)) if click_rewards is None else click_rewards
        self.click_rewards = as_numbers(
            "click_rewards", rewards, (n_states, n_items), 0.0, expected="a finite number from 0"
        )
        self.mean_sessions = check_number("mean_sessions", mean_sessions, 1)
        self.n_sessions = None if n_sessions is None else check_count("n_sessions", n_sessions)
        self.value, self.best = self._optimum()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, and make its attractions read-only again, as `ClickModel` does."""
        vars(self).update(state)
        self.attraction.flags.writeable = False

    @classmethod
    def about(cls) -> str:
        return f"users with memory ({cls.title}): their clicks change their next state"

    @property
    def n_items(self) -> int:
        """L, the number of items."""
        return self.attraction.shape[1]

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return len(self.attraction)

    @property
    def discount(self) -> float:  # type: ignore[override]
        """γ, the probability that the same user comes back for another session; 1 if the number of
        sessions is fixed.
        """
        return 1.0 if self.n_sessions is not None else 1.0 - 1.0 / self.mean_sessions

    def knowledge(self, source: str, production: Lists | None = None) -> Any:
        sources = {
            "mean_sessions": self.n_sessions or self.mean_sessions,
            "click_rewards": self.click_rewards,
        }
        return sources.get(source)

    def to_dict(self) -> dict[str, Any]:
        arrays = ("attraction", "transition", "first", "click_rewards")
        numbers = ("mean_sessions", "n_sessions", "n_positions")
        lists = {name: getattr(self, name).tolist() for name in arrays}
        return {"model": self.name(), **lists, **{name: getattr(self, name) for name in numbers}}

    def with_positions(self, n_positions: int) -> CascadeMDP:
        return self.from_dict(self.to_dict() | {"n_positions": n_positions})

    def relabelled(self, order: Lists) -> CascadeMDP:
        order = named_ranking("order", order, self.n_items, self.n_items)
        arguments = self.to_dict() | {
            "attraction": self.attraction[:, order],
            "transition": self.transition[:, np.append(order, self.n_items)],
            "click_rewards": self.click_rewards[:, order],
        }
        return self.from_dict(arguments)

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[MemoryTask]:
        """Return the only task, in a list (see `UserModel.tasks`).

        Raises:
            ValueError: the cutoff is below K, or a reference list is given. Neither is possible,
                because clicks at every position change the user, and each state has its own best
                list.
        """
        if self.check_reward(reward, cutoff)[1] < self.n_positions:
            expected = (
                f"expected {self.n_positions}, because clicks at every position change the user"
            )
            raise ValueError(f"cutoff is {cutoff}; {expected}")
        if reference is not None:
            raise ValueError(
                "reference is a list; leave reference out, because each user state has its "
                "own best list"
            )
        has_fixed_length = self.n_sessions is not None
        values = np.atleast_2d(self.value)
        # The value of each state after the next session, when one session fewer is left.
        later = np.vstack([np.zeros(self.n_states), values[:-1]]) if has_fixed_length else values
        constants = MemoryConstants(
            self.attraction,
            self.click_rewards,
            worth=np.array([self.worth(value) for value in later]),
            value=values,
            first=self.first.cumsum(),
            transition=self.transition.cumsum(axis=-1),
            leaving=0.0 if has_fixed_length else 1.0 / self.mean_sessions,
            n_sessions=self.n_sessions or 0,
        )
        best = self.best.reshape(len(values), self.n_states, self.n_positions)
        return [MemoryTask(self, constants, best)]

    # --------------------------------------------------------------------------------- exact values

    def worth(self, value: ArrayLike) -> Floats:
        """Return the worth w of each outcome of a session: the outcome's reward plus the discounted
        expected value of the next state.

        Args:
            value: ``(S,)`` the value of each state in the next session.

        Returns:
            ``(S, L + 1)`` the worth of a click on each item, and in the last column the worth of no
            click, in each state.
        """
        later = self.discount * weighted_sums(
            self.transition, as_numbers("value", value, (self.n_states,))
        )
        later[:, :-1] += self.click_rewards
        return later

    def policy_value(self, lists: ArrayLike) -> Floats:
        """Return the expected total reward of a user under a policy with a fixed list for each
        state.

        Args:
            lists: ``(S, K)`` the list in each state.

        Returns:
            ``(S,)`` the value of each first state, over ``n_sessions`` sessions if their number is
            fixed.
        """
        policy = as_integers("lists", lists, (self.n_states, self.n_positions), 0, self.n_items)
        clicked = np.zeros((self.n_states, self.n_items + 1))
        for state, ranking in enumerate(policy):
            q = self.attraction[state, ranking]
            clicked[state, ranking] = q * np.concatenate([[1.0], np.cumprod(1.0 - q)[:-1]])
            clicked[state, -1] = np.prod(1.0 - q)
        rewards = (clicked[:, :-1] * self.click_rewards).sum(axis=1)
        moves = weighted_sums(self.transition.swapaxes(1, 2), clicked[:, None])
        if self.n_sessions is None:
            return solve(np.eye(self.n_states) - self.discount * moves, rewards)
        value = np.zeros(self.n_states)
        for _ in range(self.n_sessions):
            value = rewards + weighted_sums(moves, value)
        return value

    def _optimum(self) -> tuple[Floats, Lists]:
        if self.n_sessions is not None:
            value, values, lists = np.zeros(self.n_states), [], []
            for _ in range(self.n_sessions):
                value, best = self._improve(value)
                values.append(value)
                lists.append(best)
            return np.array(values), np.array(lists)
        _, best = self._improve(np.zeros(self.n_states))
        largest = max(float(self.click_rewards.max(initial=0.0)), 1e-300) * self.mean_sessions
        value = np.full(self.n_states, -math.inf)
        while True:  # ends, because each policy is better than the last, and policies are finite
            better = self.policy_value(best)
            if (better <= value + TOLERANCE * largest).all():
                return self._improve(value)[0], best
            value = better
            best = self._improve(value)[1]

    def _improve(self, value: Floats) -> tuple[Floats, Lists]:
        """Return the value ``(S,)`` of the best list in each state, and these lists ``(S, K)``,
        given the value of each state in the next session.
        """
        worth = self.worth(value)
        lists = np.empty((self.n_states, self.n_positions), np.int64)
        for state, (q, w) in enumerate(zip(self.attraction, worth, strict=True)):
            lists[state] = best_scan(q * w[:-1], 1.0 - q, self.n_positions, w[-1])
        rows = zip(self.attraction, worth, lists, strict=True)
        return np.array([_list_value(*row) for row in rows]), lists


def _list_value(attraction: Floats, worth: Floats, ranking: Lists) -> float:
    """Return the value of a list in a state,
    ``Σ_k Π_{j<k} (1 - q(d_j)) q(d_k) w(d_k) + Π_j (1 - q(d_j)) w(⊥)``.
    """
    q = attraction[ranking]
    examination = np.concatenate([[1.0], np.cumprod(1.0 - q)])
    return float(weighted_sums(examination[:-1] * q, worth[ranking]) + examination[-1] * worth[-1])


def _laws(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return probability distributions along the last axis, after checking that each adds up to 1.
    Errors call the argument ``name``.
    """
    laws = probabilities(name, values, shape)
    sums = laws.sum(axis=-1, keepdims=True)
    for index in np.argwhere(np.abs(sums[..., 0] - 1.0) > 1e-9)[:1].tolist():
        total = float(sums[(*index, 0)])
        raise ValueError(f"{name}{index or ''} adds up to {total:.6g}; expected 1")
    return laws / sums
