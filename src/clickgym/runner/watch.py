"""One run as a sequence of moments: the agent's list at that moment, its clicks, and the totals so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..agents import Learner
from ..core.checks import check_horizon, check_seed
from ..envs.click_env import ClickEnv
from ..envs.click_model import ClickModel
from ..envs.piecewise_stationary import PiecewiseStationaryModel
from ..envs.registration import endless
from ..envs.rendering import ResultPage
from .make import kind_of, place_of, player_of
from .metrics import Metrics
from .pairs import pair_of
from .run import play_agent

MOMENTS = 66
"""So many lie evenly on a logarithmic scale; the first of them fall together."""


class Frame(NamedTuple):
    """A moment of a run.

    Attributes:
        page: the last session, with the regret so far; with attractions, where items stay the same.
        clicks: of all sessions so far.
        speed: sessions per second since the moment before; None at the first.
    """

    page: ResultPage
    clicks: int
    speed: float | None


def moments(sessions: int) -> NDArray[np.int64]:
    """The sessions that an animation shows: about 60, evenly spaced on a logarithmic scale, and the powers of ten.

    Args:
        sessions: of the run.

    Example:
        >>> steps = moments(100_000)
        >>> len(steps), steps[:8].tolist(), int(steps[-1])
        (61, [1, 2, 3, 4, 5, 6, 7, 8], 100000)
    """
    evenly = np.geomspace(1, sessions, MOMENTS).round().astype(np.int64)
    return np.union1d(evenly, powers_of_ten(sessions))


def powers_of_ten(most: int) -> list[int]:
    """The powers of ten from 1 up to a number."""
    return [10**power for power in range(len(str(most)))]


class Watching:
    """A run of an agent in an environment, ready to be played.

    Args:
        env: what `make_env` takes.
        agent: what `make_agent` takes, as ``"TopRank:delta=0.1"``.
        sessions: how many are played.
        seed: of both; the run is that of `clickgym.run` with the same seed.

    Attributes:
        pair: the agent in the environment.
        sessions: as given.

    Raises:
        ValueError, TypeError: on a bad argument; an agent that has its own loop; an environment of another origin.

    Example:
        >>> frames = Watching("PBMRank-v0", "TopRank", 100).play()
        >>> frames[-1].page.step, len(frames[-1].page.ranking)
        (100, 5)
    """

    def __init__(self, env: Any, agent: Any, sessions: int = 100_000, *, seed: int = 0) -> None:
        self.sessions, self.seed = check_horizon(sessions, name="sessions"), check_seed(seed)
        place = place_of(env)
        if place.is_guest:
            raise ValueError(
                f"{env} is a {type(place.core).__name__}; expected an environment of clickgym, whose users can be shown"
            )
        made = player_of(agent).make(place, self.sessions, self.seed)
        if kind_of(type(made)) is Learner:
            raise ValueError(f"{agent} has its own loop; expected an agent that ranks one list after the other, as TopRank")
        self.pair = pair_of(made, place)

    def play(self, on_frame: Callable[[Frame], object] = lambda frame: None) -> list[Frame]:
        """Play the run.

        Args:
            on_frame: called with each moment as it is reached; the clock of `Frame.speed` stands meanwhile.

        Returns:
            The moments.

        Raises:
            SessionError: agent or environment failed.
        """
        frames: list[Frame] = []
        with endless(self.pair.place.env) as env:
            metrics = Metrics(())
            meter = metrics.meter(moments(self.sessions), self.pair)
            observation, _ = env.reset(seed=self.seed)
            began = time.perf_counter()

            def look() -> None:
                nonlocal began
                lasted = time.perf_counter() - began
                before = frames[-1].page.step if frames else 0
                speed = (meter.step - before) / max(lasted, 1e-9) if frames else None  # the first session compiles
                frames.append(Frame(_page(self.pair.place.core), int(meter.totals[2]), speed))
                on_frame(frames[-1])
                began = time.perf_counter()

            meter.on_checkpoint = look
            play_agent(self.pair, env, meter, metrics, observation)
        return frames


def _page(click_env: ClickEnv) -> ResultPage:
    """The last session of an environment, with the attractions of its list where these belong to an item."""
    page, model = click_env.result_page(), click_env.model
    if isinstance(model, PiecewiseStationaryModel):
        model = model.at(page.step - 1)
    changes = click_env.axes is not None and click_env.axes.changes_items
    if not isinstance(model, ClickModel) or "attraction" not in model.shapes or changes or page.ranking is None:
        return page
    return replace(page, attraction=tuple(model.attraction[list(page.ranking)].tolist()))
