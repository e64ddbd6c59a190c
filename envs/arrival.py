"""Clicks that arrive late, in batches, or never (the argument ``arrival``).

The feedback that is still to come lies in slots, which are linked in lists. One list has all slots by display, to drop the
oldest if there are too many. One list has those that are due and wait for a free row. The others are in W lists, each for the
sessions with the same remainder by W at whose end they are due. In every session one of these W lists is searched.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ..core.checks import MOST, check_at_least, check_count, check_share
from ..core.files import check_memory
from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints, first_arrays
from .options import Options

IMMEDIATE, BATCH, DELAY, GEOMETRIC = range(4)
MAX_OPEN, MAX_ARRIVALS = 1_000_000, 64
MAX_BYTES = 500_000_000
"""Of the features of open displays, where ``max_open`` is not given."""
EXPECTED = "immediate, batch:B, delay:D or delay:geometric:m, each with :lost=q if wanted"


class ArrivalState(NamedTuple):
    """The feedback of S streams that is still to come, in C slots each, and the feedback that arrived last."""

    kind: int
    size: int  # B or D
    log_stay: float  # log(1 - ρ) of geometric delays
    lost: float
    uniforms: Annotated[Floats, "S 2"]  # of the present session: delay, loss
    counts: Annotated[Ints, "S 3", (0, 0, -1)]  # how many are open, slots ever used, the first free slot (-1: none)
    displayed: Annotated[NDArray[np.int32], "S 2", -1]  # the first and the last of all, by display (-1: none)
    waiting: Annotated[NDArray[np.int32], "S 2", -1]  # of those that are due
    wheel: Annotated[NDArray[np.int32], "S W 2", -1]  # of the others
    # The slots of the displays before and after; those in the same list before and after.
    links: Annotated[NDArray[np.int32], "S C 4"]
    due: Annotated[Ints, "S C"]
    display: Annotated[Ints, "S C"]
    ranking: Annotated[NDArray[np.int32], "S C K"]
    click: Annotated[NDArray[np.int8], "S C K"]
    reward: Annotated[Floats, "S C"]
    dropped: Annotated[Ints, "S"]  # displays that were given up
    n_arrived: Annotated[Ints, "S"]  # how many rows of the following count
    slots: Annotated[NDArray[np.int32], "S M"]  # in which they were until now
    displays: Annotated[Ints, "S M"]
    rankings: Annotated[Ints, "S M K"]
    clicks: Annotated[NDArray[np.int8], "S M K"]
    void: Annotated[Flags, "S M K"]  # whether the item was replaced since
    rewards: Annotated[Floats, "S M"]


class Arrival:
    """The argument ``arrival`` of an environment: when clicks arrive.

    Args:
        value: ``"immediate"``; ``"batch:B"``, with the next session whose number is a multiple of B; ``"delay:D"``, D sessions
            later; or ``"delay:geometric:m"``, m sessions later on average. Options follow: ``:lost=q``, the share of sessions
            whose clicks never arrive. ``:max_open=n``: of more than n displays that wait for clicks the oldest are given up (of
            all streams together; default 1,000,000, or what 500 MB hold if that is less and features are kept for each
            display). ``:max_arrivals=n``, for geometric delays: at most n arrive with one session, and the others with the next
            (64).

    Attributes:
        max_arrivals: M, the most that arrive with one session.

    Raises:
        ValueError: naming the part of the value and what was expected.

    Example:
        >>> Arrival("batch:1000").max_arrivals, Arrival("delay:0").is_immediate
        (1000, True)
    """

    def __init__(self, value: str) -> None:
        options = Options("arrival", value, EXPECTED)
        self.text = options.text
        form = (options.kind, len(options.values))
        geometric = form == ("delay", 2) and options.values[0] == "geometric"
        if form not in (("immediate", 0), ("batch", 1), ("delay", 1)) and not geometric:
            raise options.refusal()
        self.size, self.mean, self.log_stay, self.max_arrivals = 0, 0.0, 0.0, 1
        if geometric:
            self.kind = GEOMETRIC
            mean = options.checked("m", options.values[1], lambda name, m: check_at_least(name, m, 0, strictly=True))
            self.mean = mean
            self.log_stay = -math.log1p(1 / mean) if mean > 1e-300 else -math.inf
            self.max_arrivals = MAX_ARRIVALS
        elif options.kind == "batch":
            self.kind = BATCH
            self.size = self.max_arrivals = options.checked("B", options.values[0], check_count)
        elif options.kind == "delay":
            self.kind = DELAY
            self.size = options.checked("D", options.values[0], lambda name, number: check_count(name, number, 0))
        else:
            self.kind = IMMEDIATE
        checks: dict[str, Any] = {"lost": check_share, "max_open": check_count}
        values = options.read(**checks, **({"max_arrivals": check_count} if geometric else {}))
        self.lost = values.get("lost", 0.0)
        self.max_open = values.get("max_open")
        self.max_arrivals = values.get("max_arrivals", self.max_arrivals)

    @property
    def is_immediate(self) -> bool:
        """Whether all clicks arrive with their session."""
        at_once = self.kind == IMMEDIATE or (self.kind, self.size) in ((BATCH, 1), (DELAY, 0))
        return at_once and self.lost == 0

    def spaces(self, n_items: int, n_positions: int, n_streams: int) -> dict[str, Any]:
        """The observation spaces of the feedback that has arrived.

        Raises:
            ValueError: so many rows do not fit into memory.
        """
        m = self.max_arrivals
        check_memory(f"an observation of {m:,} arrivals", 32 * n_streams * m * (n_positions + 1))
        return {
            "display": Box(0, MOST, (1,), np.int64),
            "n_arrived": Discrete(m + 1),
            "displays": Box(-1, MOST, (m,), np.int64),
            "rankings": Box(-1, n_items - 1, (m, n_positions), np.int64),
            "clicks": Box(-1, 1, (m, n_positions), np.int8),
        }

    def state(self, n_streams: int, n_positions: int, n_features: int = 0) -> ArrivalState:
        """The state at the start of S streams; ``n_features`` numbers are kept for each display beside its list."""
        max_open = self.max_open or min(MAX_OPEN, MAX_BYTES // max(1, 8 * n_features))
        needed = {IMMEDIATE: 1, BATCH: self.size, DELAY: self.size + 1}.get(self.kind, max_open)
        slots = max(1, min(needed, max_open // n_streams))
        longest = needed if self.kind != GEOMETRIC else 4 * self.mean
        turns = 1 << max(0, math.ceil(math.log2(max(1.0, min(longest, MAX_OPEN / n_streams)))))
        sizes = {"S": n_streams, "C": slots, "K": n_positions, "M": self.max_arrivals, "W": turns}
        return ArrivalState(self.kind, self.size, self.log_stay, self.lost, **first_arrays(ArrivalState, sizes))


OPEN, USED, FREE = range(3)
BY_DISPLAY, BY_TURN = 0, 2
"""Where the links of a list begin."""
LATEST = 2.0**62
"""Beyond all sessions."""


@inner
def append(links, ends, slot, of):  # type: ignore[no-untyped-def]
    """Put a slot at the end of a list; ``ends`` ``(2,)`` are its first and last slot."""
    last = ends[1]
    links[slot, of], links[slot, of + 1] = last, -1
    if last >= 0:
        links[last, of + 1] = slot
    else:
        ends[0] = slot
    ends[1] = slot


@inner
def unlink(links, ends, slot, of):  # type: ignore[no-untyped-def]
    """Take a slot out of a list."""
    before, after = links[slot, of], links[slot, of + 1]
    if before >= 0:
        links[before, of + 1] = after
    else:
        ends[0] = after
    if after >= 0:
        links[after, of] = before
    else:
        ends[1] = before


@inner
def free(arrival, stream, slot):  # type: ignore[no-untyped-def]
    """Let another display have the slot."""
    counts, links = arrival.counts[stream], arrival.links[stream]
    unlink(links, arrival.displayed[stream], slot, BY_DISPLAY)
    links[slot, BY_TURN] = counts[FREE]
    counts[FREE] = slot
    counts[OPEN] -= 1


@kernel
def schedule(arrival, stream, session, ranking, clicks, reward):  # type: ignore[no-untyped-def]
    """Keep the feedback of session number ``session`` until it is due.

    ``arrival.uniforms[stream]`` holds the session's two uniforms.
    """
    if arrival.uniforms[stream, 1] < arrival.lost:
        return
    due, latest = session, arrival.displayed[stream, 1]
    if arrival.kind == BATCH:
        if latest >= 0 and arrival.due[stream, latest] >= session:  # of the same batch: spares a division
            due = arrival.due[stream, latest]
        else:
            due += -session % arrival.size
    elif arrival.kind == DELAY:
        due += arrival.size
    elif arrival.kind == GEOMETRIC:
        due += int(min(np.floor(np.log(1.0 - arrival.uniforms[stream, 0]) / arrival.log_stay), LATEST))
    counts, links, wheel = arrival.counts[stream], arrival.links[stream], arrival.wheel[stream]
    turns = len(wheel) - 1  # W is a power of two
    if counts[OPEN] == len(links):
        oldest = arrival.displayed[stream, 0]
        then = arrival.due[stream, oldest]
        unlink(links, arrival.waiting[stream] if then < session else wheel[then & turns], oldest, BY_TURN)
        free(arrival, stream, oldest)
        arrival.dropped[stream] += 1
    slot = counts[FREE]
    if slot >= 0:
        counts[FREE] = links[slot, BY_TURN]
    else:
        slot = counts[USED]
        counts[USED] += 1
    append(links, arrival.displayed[stream], slot, BY_DISPLAY)
    append(links, wheel[due & turns], slot, BY_TURN)
    counts[OPEN] += 1
    arrival.due[stream, slot], arrival.display[stream, slot], arrival.reward[stream, slot] = due, session, reward
    for k in range(len(ranking)):
        arrival.ranking[stream, slot, k] = ranking[k]
        arrival.click[stream, slot, k] = clicks[k]


@inner
def give(arrival, stream, slot, n, last):  # type: ignore[no-untyped-def]
    """Write the feedback of a slot into row n, and free the slot."""
    display = arrival.display[stream, slot]
    arrival.slots[stream, n], arrival.displays[stream, n] = slot, display
    arrival.rewards[stream, n] = arrival.reward[stream, slot]
    for k in range(arrival.ranking.shape[2]):
        item = arrival.ranking[stream, slot, k]
        arrival.rankings[stream, n, k] = item
        arrival.clicks[stream, n, k] = arrival.click[stream, slot, k]
        arrival.void[stream, n, k] = last[item] >= display
    free(arrival, stream, slot)


@kernel
def deliver(arrival, stream, session, last):  # type: ignore[no-untyped-def]
    """Remove the feedback that is due at the end of session number ``session``, as far as there are free rows.

    ``last`` ``(L,)`` says after which session each item was last replaced: what was displayed by then showed another item.
    """
    links, waiting, wheel = arrival.links[stream], arrival.waiting[stream], arrival.wheel[stream]
    n, most = 0, arrival.displays.shape[1]
    while n < most and waiting[0] >= 0:
        slot = waiting[0]
        unlink(links, waiting, slot, BY_TURN)
        give(arrival, stream, slot, n, last)
        n += 1
    ends = wheel[session & (len(wheel) - 1)]
    slot = ends[0]
    while slot >= 0:
        after = links[slot, BY_TURN + 1]
        if arrival.due[stream, slot] == session:
            unlink(links, ends, slot, BY_TURN)
            if n < most:
                give(arrival, stream, slot, n, last)
                n += 1
            else:
                append(links, waiting, slot, BY_TURN)
        slot = after
    arrival.n_arrived[stream] = n


@kernel
def arrive(arrival, stream, session, ranking, clicks, reward, last):  # type: ignore[no-untyped-def]
    """`schedule` and `deliver`; returns the sum of the rewards that arrived."""
    schedule(arrival, stream, session, ranking, clicks, reward)
    deliver(arrival, stream, session, last)
    total = 0.0
    for n in range(arrival.n_arrived[stream]):
        total += arrival.rewards[stream, n]
    return total


@kernel
def arrive_all(arrival, sessions, rankings, clicks, rewards, last, arrived):  # type: ignore[no-untyped-def]
    """`arrive` on every stream; ``arrived`` ``(S,)`` is written."""
    for stream in range(len(rankings)):
        arrived[stream] = arrive(
            arrival, stream, sessions[stream], rankings[stream], clicks[stream], rewards[stream], last[stream]
        )
