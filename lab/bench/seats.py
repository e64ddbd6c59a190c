"""Agents in processes of their own, without access to the environment: only arrays are exchanged.

A seat is a confined process (`confine`) with the code of one agent, for one run. The process that asks for the seat contains
the environment. Between them is a host process, which has loaded the package and no foreign code. Each seat is a fork of the
host, so it contains no data of other seats. Data from a seat are never unpickled.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import polars
from numpy.typing import NDArray

from ...agents import Agent, CascadeTS, CompiledAgent, Learner
from ...core.kernels import cache_folder, cause
from ...envs.spaces import check_ranking
from ...runner.callback import Callback
from ...runner.make import agent_maker, is_required
from ...runner.results import Trial
from .confinement import confine, end_children
from .play import play
from .protocol import Protocol
from .task import Task

__all__ = ["SeatError", "SeatMaker", "play_in_seat", "serve", "sit_down"]

PASSED_ON = ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "OMP_NUM_THREADS")
"""Of the environment variables; others may be secrets."""
SYSTEM = ("/usr", "/lib", "/lib64", "/dev/urandom")
GOOD, BAD, GOING_ON = b"=", b"!", b"+"
MOST_BYTES = 1 << 30
PATIENCE = 60.0
"""Seconds that a process has to end, once it has answered."""


class SeatError(RuntimeError):
    """An agent or its process failed; the message is one line."""


# ---------------------------------------------------------------------------------------------------- those who ask for one


@cache
def _host() -> socket.socket:
    """The way to the host of this process, which ends with it."""
    ours, theirs = socket.socketpair()
    code = f"from clickgym.lab.bench.seats import serve; serve({theirs.fileno()})"
    given = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    command = [sys.executable, "-P", "-c", code]
    # In a session of its own, it has no terminal, and hears of no Ctrl-C.
    subprocess.Popen(command, cwd="/", env=given, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    return ours


def _ask(folder: Path, order: str, *given: Any, life: int | None = None) -> Connection:
    """A new seat, which was told what to do; ``life`` is a descriptor that stays open there until nothing of it lives."""
    ours, theirs = socket.socketpair()
    socket.send_fds(_host(), [b"seat"], [theirs.fileno(), *([] if life is None else [life])])
    theirs.close()
    seat = Connection(ours.detach())
    seat.send_bytes(cloudpickle.dumps((folder, order, given)))
    return seat


def _answer(seat: Connection, on_sessions: Callable[[int], None] = lambda count: None) -> bytes:
    """What a seat answers; before that it may tell how many more sessions it has played."""
    try:
        while (answer := seat.recv_bytes(MOST_BYTES))[:1] == GOING_ON:
            on_sessions(int.from_bytes(answer[1:9]))
    except (EOFError, OSError):
        raise SeatError("its process has ended") from None
    if answer[:1] != GOOD:
        raise SeatError(" ".join(answer[1:2000].decode(errors="replace").split()))
    return answer[1:]


@dataclass(frozen=True)
class SeatMaker:
    """A maker of agents, each in a seat of its own; what the class says of itself was asked for in another.

    Attributes:
        agent: as it can be typed, ``"agent:MyAgent"``.
        folder: where its module is looked for.
        name: of the class.
        parameters: the names of the arguments that are left to give, and whether each must be given.
        told: as in `CompiledAgent`, without what is given.
        same_candidates: as in agents that rank by features.
        learns_from, takes_candidates, can_replace: as in `Agent`.
        compiled, learns: whether it is a `CompiledAgent`, and a `Learner`.
        click_models: those that it says it is made for.
    """

    agent: str
    folder: Path
    name: str
    parameters: dict[str, bool]
    told: dict[str, str]
    same_candidates: bool
    learns_from: str
    takes_candidates: bool
    can_replace: bool
    compiled: bool
    learns: bool
    click_models: str
    search_space: ClassVar[dict[str, Any]] = {}

    @cached_property
    def __signature__(self) -> inspect.Signature:
        kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        return inspect.Signature(
            [inspect.Parameter(name, kind, default=empty if must else None) for name, must in self.parameters.items()]
        )

    def __call__(self, **given: Any) -> Agent:
        """The agent, built in a seat."""
        return type(self.name, (_Seated,), {"maker": self, "learns_from": self.learns_from})(given)

    def to_dict(self) -> dict[str, Any]:
        """What identifies it."""
        return {"agent": self.agent, "folder": str(self.folder)}


def sit_down(agent: str, folder: Path) -> SeatMaker:
    """Make agents in seats.

    Args:
        agent: as it can be typed.
        folder: where its module is looked for.

    Raises:
        SeatError: there is no such agent, or its module cannot be imported.
    """
    seat = _ask(folder, "describe", agent)
    try:
        about = json.loads(_answer(seat))
    finally:
        seat.close()
    return SeatMaker(agent, folder, **about)


class _Seated(Agent):
    """An agent in a seat, for the process that holds the environment."""

    maker: ClassVar[SeatMaker]

    def __init__(self, given: dict[str, Any]) -> None:
        self._untold: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._seat = _ask(self.maker.folder, "rank", self.maker.agent, given)
        self.display = int(_answer(self._seat))

    @classmethod
    def takes_candidates(cls) -> bool:
        return cls.maker.takes_candidates

    @classmethod
    def can_replace(cls) -> bool:
        return cls.maker.can_replace

    def _ask(self, method: str, *arguments: Any, **keywords: Any) -> bytes:
        """Send what was to be told since the last time, and a question: one message, for each costs two changes of process."""
        self._untold.append((method, arguments, keywords))
        with suppress(OSError):  # why it has ended it may have said
            self._seat.send_bytes(pickle.dumps(self._untold, 5))
        self._untold.clear()
        return _answer(self._seat)

    def _tell(self, method: str, *arguments: Any, **keywords: Any) -> None:
        # The arguments are the agent's own: the loop hands out no array that anybody writes into again.
        self._untold.append((method, arguments, keywords))

    def rank(self, observation: Any, **candidates: Any) -> NDArray[np.int64]:
        return np.frombuffer(self._ask("rank", observation, **candidates), np.int64)

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float, **which: Any) -> None:
        self._tell("update", observation, ranking, clicks, reward, **which)

    def replace(self, item: int) -> None:
        self._tell("replace", item)

    def leave(self) -> None:
        self._tell("leave")

    def learn(self, log: Any) -> None:
        """As `CompiledAgent.learn`."""
        self.display = int(self._ask("learn", log))

    def __del__(self) -> None:
        if hasattr(self, "_seat"):
            self._seat.close()


def play_in_seat(
    maker: SeatMaker,
    protocol: Protocol,
    label: str,
    tasks: Sequence[Task],
    runs: int,
    on_sessions: Callable[[int], None],
) -> polars.DataFrame:
    """Play tasks at full speed in a process that holds agent and environment alike: what it says is to be looked into.

    Args:
        maker: of the agent.
        protocol, label, tasks, runs: as in `play`.
        on_sessions: called with the number of sessions that it says it has played since the last time.

    Returns:
        As `play` does.

    Raises:
        SeatError: the agent failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        names, (living, life) = [task.name for task in tasks], os.pipe()
        seat = _ask(maker.folder, "play", Path(folder), maker.agent, protocol, label, names, runs, life=life)
        os.close(life)
        try:
            return polars.read_parquet(io.BytesIO(_answer(seat, on_sessions)))
        except polars.exceptions.PolarsError:
            raise SeatError("its process returned no table") from None
        finally:
            seat.close()
            ended, _, _ = select.select([living], [], [], PATIENCE)
            os.close(living)
            if not ended:
                raise SeatError("its process did not end")


# ------------------------------------------------------------------------------------------------------------ host and seat


def serve(way: int) -> None:
    """The host process: fork a seat for each request, until all clients have closed their connection.

    Args:
        way: the descriptor of the socket from which it is asked.
    """
    control, agent = socket.socket(fileno=way), CascadeTS(3, 2, seed=0)
    agent.update(None, agent.rank(), [0, 1])  # the compiler is loaded once, and not by every seat
    while True:
        _, given, _, _ = socket.recv_fds(control, 16, 2)
        if not given:
            return
        if os.fork() == 0:
            control.close()
            _watch(Connection(given[0]), given[1:])
        for descriptor in given:
            os.close(descriptor)
        _reap()


def _reap() -> None:
    """Take notice of the seats that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(seat: Connection, life: Sequence[int]) -> None:
    """The first half of a seat: wait for the other, the agent's, and end whatever that leaves behind."""
    child = os.fork()
    if child == 0:
        for descriptor in life:
            os.close(descriptor)
        _sit(seat)
    seat.close()
    end_children(child)
    os._exit(0)


def _sit(seat: Connection) -> None:
    """The other half: do what was ordered, confined, and end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for shown in (1, 2):  # what an agent prints could pass for a verdict
        os.dup2(nowhere, shown)
    try:
        folder, order, given = cloudpickle.loads(seat.recv_bytes())
        os.chdir(folder)
        ours = [path for name, module in sys.modules.items() if name.startswith("clickgym") for path in _folders_of(module)]
        readable = [*SYSTEM, sys.prefix, sys.base_prefix, *filter(None, sys.path), *ours, cache_folder(), folder]
        confine(readable, given[0] if order == "play" else None)
        warnings.simplefilter("ignore")  # that kernels are not kept
        ORDERS[order](seat, *given)
    except EOFError:
        pass
    except BaseException as error:  # also what ends a process
        seat.send_bytes(BAD + cause(error).encode() if isinstance(error, Exception) else BAD + repr(error).encode())
    finally:
        os._exit(0)


def _folders_of(module: Any) -> list[str]:
    return list(getattr(module, "__path__", ()))


def _describe(seat: Connection, agent: str) -> None:
    """Answer what the class of an agent says of itself."""
    maker, given = agent_maker(agent)
    own: Any = maker
    parameters = inspect.signature(maker).parameters.items()
    named = [(name, each) for name, each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    about = {
        "name": str(getattr(own, "__name__", type(own).__name__)),
        "parameters": {name: is_required(each) for name, each in named if name not in given},
        "told": {str(key): str(source) for key, source in getattr(own, "told", {}).items() if key not in given},
        "same_candidates": bool(getattr(own, "same_candidates", False)),
        "learns_from": str(getattr(own, "learns_from", Agent.learns_from)),
        "click_models": str(getattr(own, "click_models", "any")),
    }
    seat.send_bytes(GOOD + json.dumps(about | _abilities(own if isinstance(own, type) else Agent)).encode())


def _abilities(kind: type) -> dict[str, bool]:
    """What agents of a class can do, or how they play."""
    ranks: Any = kind if issubclass(kind, Agent) else Agent
    return {
        "takes_candidates": bool(ranks.takes_candidates()),
        "can_replace": bool(ranks.can_replace()),
        "compiled": issubclass(kind, CompiledAgent),
        "learns": issubclass(kind, Learner),
    }


def _rank(seat: Connection, agent: str, given: dict[str, Any]) -> None:
    """Build an agent, and let it answer until nobody asks any more."""
    maker, hyperparameters = agent_maker(agent)
    player: Any = maker(**given, **hyperparameters)
    seat.send_bytes(GOOD + str(getattr(player, "display", 0)).encode())
    n_items, n_positions = given["n_items"], given["n_positions"]
    while True:
        for method, arguments, keywords in pickle.loads(seat.recv_bytes()):
            result = getattr(player, method)(*arguments, **keywords)
        answer = check_ranking(result, n_items, n_positions).tobytes() if method == "rank" else str(player.display).encode()
        seat.send_bytes(GOOD + answer)


def _play(seat: Connection, out: Path, agent: str, protocol: Protocol, label: str, names: Sequence[str], runs: int) -> None:
    """Play tasks, and answer the table."""
    tempfile.tempdir = str(out)
    tasks = [protocol.by_name[name] for name in names]
    # Confined, it may make no semaphores, so that it has one worker.
    table = play(protocol, label, agent, tasks, runs, out / "plays", n_jobs=1, callback=_Teller(seat))
    content = io.BytesIO()
    table.write_parquet(content)
    seat.send_bytes(GOOD + content.getvalue())


class _Teller(Callback):
    """Tells how many sessions were played."""

    def __init__(self, seat: Connection) -> None:
        self._seat = seat

    def sessions(self, count: int) -> None:
        self._seat.send_bytes(GOING_ON + count.to_bytes(8))

    def finished(self, trial: Trial, frame: polars.DataFrame, counted: bool) -> None:
        if not counted:
            self.sessions(frame["step"][-1])


ORDERS: dict[str, Callable[..., None]] = {"describe": _describe, "rank": _rank, "play": _play}
"""What a seat can be told to do."""
