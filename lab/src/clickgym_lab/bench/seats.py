"""Agents in processes of their own, without access to the environment: only numbers are exchanged.

A seat is a process with the code of one agent, for one run, in a sandbox of its own (`clickgym_lab.bench.sandbox`). The process
that asks for the seat contains the environment. Between them is a host process, which has loaded the package and no foreign
code. Each seat is a fork of the host, so it contains no data of other seats. Data from a seat are never unpickled.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, Literal

import cloudpickle
import numba
import numpy as np
import polars
from numpy.typing import NDArray

from clickgym import make_agent, run
from clickgym.agents import Agent, CascadeTS, CompiledAgent, Learner
from clickgym.core.formats import one_line
from clickgym.core.kernels import cache_folder, cause, keep_kernels
from clickgym.envs import check_ranking
from clickgym.runner import player_of

from .equipment import equipped
from .play import play_run, suited
from .protocol import Protocol
from .sandbox import Sandbox, enter, restrict
from .submission import RESULTS, Submission, read_submission
from .task import Task

PASSED_ON = re.compile("LD_LIBRARY_PATH|OMP_NUM_THREADS|(?:OPENBLAS|MKL|BLIS|NPY|NUMBA)_[A-Z0-9_]+")
"""Of the environment only what decides which libraries and which of their kernels compute, for the last digits depend on them;
and where compiled kernels are."""
GOOD, BAD = b"=", b"!"
MOST_BYTES = 1 << 28
"""Of an answer."""
SECONDS, PER_SESSION = 300.0, 0.01
"""How long a seat may take, and how much longer for each session."""
WARM_UP = 3
"""Sessions that compile what an agent needs."""


class SeatError(RuntimeError):
    """An agent or its process failed; the message is one line."""


# ---------------------------------------------------------------------------------------------------- those who ask for one


@cache
def _host() -> socket.socket:
    """The way to the host of this process, which ends with it."""
    ours, theirs = socket.socketpair()
    path = [each for each in sys.path if each]
    given = f"{theirs.fileno()}, {str(cache_folder())!r}"
    code = f"import sys; sys.path[:] = {path!r}; from clickgym_lab.bench.seats import serve; serve({given})"
    variables = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    command = [sys.executable, "-P", "-c", code]
    # In a session of its own, it has no terminal, and hears of no Ctrl-C.
    subprocess.Popen(
        command, cwd="/", env=variables, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
    )
    theirs.close()
    return ours


class _Seat:
    """A new seat, which was told what to do."""

    def __init__(self, sandbox: Sandbox, order: str, *given: Any, seconds: float = SECONDS) -> None:
        self._seconds, self._is_late = seconds, False
        self._opened = sandbox.open() if sandbox.confined else None
        self._socket, theirs = socket.socketpair()
        self._way = Connection(os.dup(self._socket.fileno()))
        sent = [theirs.fileno(), *([] if self._opened is None else [self._opened.first])]
        socket.send_fds(_host(), [b"seat"], sent)
        theirs.close()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()
        self._way.send_bytes(cloudpickle.dumps((*sandbox.inside, seconds, order, given)))

    def _end(self) -> None:
        self._is_late = True
        self._socket.shutdown(socket.SHUT_RDWR)

    def tell(self, what: Any) -> None:
        """Send it something; why it has ended it may have said."""
        with suppress(OSError):
            self._way.send_bytes(pickle.dumps(what, 5))

    def answer(self) -> bytes:
        """What it answers; one that does not answer well is ended."""
        try:
            answer = self._way.recv_bytes(MOST_BYTES)
        except (EOFError, OSError):
            late = f"it took more than {self._seconds:,.0f} s"
            ended = "its process has ended, or needed more memory or processor than there is for it"
            answer = BAD + (late if self._is_late else ended).encode()
        if answer[:1] != GOOD:
            self.close()
            raise SeatError(one_line(answer[1:2000].decode(errors="replace")))
        return answer[1:]

    def close(self) -> None:
        """End it, and all that it has started."""
        self._timer.cancel()
        self._way.close()
        self._socket.close()
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> _Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class SeatMaker:
    """A maker of agents, each in a seat of its own; what the class says of itself was asked for in another.

    Attributes:
        agent: as it can be typed, ``"agent:MyAgent"``.
        sandbox: with its module.
        name: of the class.
        parameters: the names of the arguments that are left to give, and whether each must be given.
        told: as in `CompiledAgent`, without what is given.
        same_candidates: as in agents that rank by features.
        learns_from, takes_candidates, can_replace: as in `Agent`.
        compiled, learns: whether it is a `CompiledAgent`, and a `Learner`.
        click_models: those that it says it is made for.
        seconds: how long a seat may take.
    """

    agent: str
    sandbox: Sandbox
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
    seconds: float = SECONDS

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
        return {"agent": self.agent, "folder": str(self.sandbox.folder)}

    def for_run(self, task: Task) -> SeatMaker:
        """A maker of agents that have as much time as a run of a task."""
        return replace(self, seconds=SECONDS + PER_SESSION * task.horizon)


def sit_down(agent: str, sandbox: Sandbox) -> SeatMaker:
    """Make agents in seats.

    Args:
        agent: as it can be typed.
        sandbox: with its module.

    Raises:
        SeatError: there is no such agent, or its module cannot be imported.
    """
    with _Seat(sandbox, "describe", agent) as seat:
        about = json.loads(seat.answer())
    return SeatMaker(agent, sandbox, **about)


class _Seated(Agent):
    """An agent in a seat, for the process that holds the environment."""

    maker: ClassVar[SeatMaker]

    def __init__(self, given: dict[str, Any]) -> None:
        self._untold: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._seat = _Seat(self.maker.sandbox, "rank", self.maker.agent, given, seconds=self.maker.seconds)
        self.display = int(self._seat.answer())

    @classmethod
    def takes_candidates(cls) -> bool:
        return cls.maker.takes_candidates

    @classmethod
    def can_replace(cls) -> bool:
        return cls.maker.can_replace

    def _ask(self, method: str, *arguments: Any, **keywords: Any) -> bytes:
        """Send what was to be told since the last time, and a question: one message, for each costs two changes of process."""
        self._untold.append((method, arguments, keywords))
        self._seat.tell(self._untold)
        self._untold.clear()
        return self._seat.answer()

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


def play_in_seat(maker: SeatMaker, task: Task, seed: int, agent_seed: int, steps: Sequence[int]) -> polars.DataFrame:
    """As `play_run`, at full speed in a process that holds agent and environment alike: what it says is to be looked into."""
    with _Seat(maker.sandbox, "play", maker.agent, task, seed, agent_seed, steps, seconds=maker.seconds) as seat:
        values = np.frombuffer(seat.answer()[: 16 * len(steps)].ljust(16 * len(steps), b"\xff"))  # nan where it says less
    return polars.DataFrame({"step": steps, "regret": values[: len(steps)], "loss": values[len(steps) :]})


def compiled_kernels(agent: str, sandbox: Sandbox, tasks: Sequence[Task]) -> dict[str, bytes]:
    """What a submission compiles, before any task of a set is known.

    Args:
        agent: as it can be typed.
        sandbox: with its module.
        tasks: neutral ones; those that it cannot play do not matter.

    Returns:
        The files, by name.

    Raises:
        SeatError: the agent failed, or returned other files.
    """
    with _Seat(sandbox, "compile", agent, tasks, seconds=10 * SECONDS) as seat:
        answer = json.loads(seat.answer())
    files = {str(name): base64.b64decode(content) for name, content in answer.items()}
    if not all(re.fullmatch(r"[\w-]{1,100}\.nbc", name, re.ASCII) for name in files):
        raise SeatError("its process returned files that are no kernels")
    return files


def read_in_seat(sandbox: Sandbox, protocol: Protocol) -> Submission:
    """The results of a submission, read in a seat.

    Raises:
        SeatError: they are not as they should be; the message says what is wrong.
        ValueError: the seat has answered something else.
    """
    with _Seat(sandbox, "read", protocol) as seat:
        return Submission.from_json(json.loads(seat.answer()), protocol)


# ------------------------------------------------------------------------------------------------------------ host and seat


def serve(way: int, kernels: str) -> None:
    """The host process: fork a seat for each request, until all clients have closed their connection.

    Args:
        way: the descriptor of the socket from which it is asked.
        kernels: the folder of compiled kernels.
    """
    keep_kernels(Path(kernels), Path(kernels))
    control, agent = socket.socket(fileno=way), CascadeTS(3, 2, seed=0)
    agent.update(None, agent.rank(), [0, 1])
    numba.njit(lambda: 0)()  # the compiler is loaded once, and not by every seat
    while True:
        _, given, _, _ = socket.recv_fds(control, 16, 2)
        if not given:
            return
        if os.fork() == 0:
            control.close()
            _sit(Connection(given[0]), given[1:])
        for descriptor in given:
            os.close(descriptor)
        _reap()


def _reap() -> None:
    """Take notice of the seats that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _sit(seat: Connection, sandbox: Sequence[int]) -> None:
    """Enter the sandbox, do what was ordered, and end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for shown in (1, 2):  # what an agent prints could pass for a verdict
        os.dup2(nowhere, shown)
    try:
        for first in sandbox:
            enter(first)
        folder, kernels, seconds, order, given = cloudpickle.loads(seat.recv_bytes())
        restrict(seconds)
        os.environ.clear()
        os.chdir(folder)
        keep_kernels(kernels, folder)
        warnings.simplefilter("ignore")  # that kernels are not kept
        ORDERS[order](seat, *given)
    except EOFError:
        pass
    except BaseException as error:  # also what ends a process
        seat.send_bytes(BAD + cause(error).encode() if isinstance(error, Exception) else BAD + repr(error).encode())
    finally:
        os._exit(0)


def _describe(seat: Connection, agent: str) -> None:
    """Answer what the class of an agent says of itself."""
    player = player_of(agent)
    own: Any = player.maker
    kind = own if isinstance(own, type) else Agent
    ranks: Any = kind if issubclass(kind, Agent) else Agent
    parameters = player.parameters.items()
    named = [name for name, each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    about = {
        "name": str(player.name),
        "parameters": {name: name in player.required for name in named if name not in player.hyperparameters},
        "told": {str(key): str(source) for key, source in player.asks.items()},
        "same_candidates": bool(getattr(own, "same_candidates", False)),
        "learns_from": str(getattr(own, "learns_from", Agent.learns_from)),
        "click_models": str(player.click_models),
        "takes_candidates": bool(ranks.takes_candidates()),
        "can_replace": bool(ranks.can_replace()),
        "compiled": issubclass(kind, CompiledAgent),
        "learns": issubclass(kind, Learner),
    }
    seat.send_bytes(GOOD + json.dumps(about).encode())


def _rank(seat: Connection, agent: str, given: dict[str, Any]) -> None:
    """Build an agent, and let it answer until nobody asks any more."""
    recipe = player_of(agent)
    player: Any = recipe.maker(**given, **recipe.hyperparameters)
    seat.send_bytes(GOOD + str(getattr(player, "display", 0)).encode())
    n_items, n_positions = given["n_items"], given["n_positions"]
    while True:
        for method, arguments, keywords in pickle.loads(seat.recv_bytes()):
            result = getattr(player, method)(*arguments, **keywords)
        answer = check_ranking(result, n_items, n_positions).tobytes() if method == "rank" else str(player.display).encode()
        seat.send_bytes(GOOD + answer)


def _play(seat: Connection, agent: str, task: Task, seed: int, agent_seed: int, steps: Sequence[int]) -> None:
    """Play a run, and answer regret and loss at its steps."""
    result = play_run(agent, task, seed, agent_seed, steps)
    seat.send_bytes(GOOD + result.select("regret", "loss").to_numpy(order="fortran").tobytes("F"))


def _compile(seat: Connection, agent: str, tasks: Sequence[Task]) -> None:
    """Play some sessions of each task with both engines, and answer what was compiled."""
    with tempfile.TemporaryDirectory() as folder:
        before = {file.name: file for file in cache_folder().iterdir()}
        for name, file in before.items():
            Path(folder, name).symlink_to(file)
        keep_kernels(Path(folder), Path.cwd())
        for task in suited(agent, tasks):
            for engine in ENGINES:
                env = task.make()
                built = make_agent(equipped(agent, task), env, horizon=task.horizon, seed=0)
                run(built, env, WARM_UP, seed=0, engine=engine)
        made = [file for file in Path(folder).glob("*.nbc") if file.name not in before]
        content = {file.name: base64.b64encode(file.read_bytes()).decode() for file in made}
    seat.send_bytes(GOOD + json.dumps(content).encode())


def _read(seat: Connection, protocol: Protocol) -> None:
    """Read the results of a submission, and answer them."""
    seat.send_bytes(GOOD + read_submission(Path(RESULTS), protocol).to_json().encode())


ENGINES: tuple[Literal["auto", "python"], ...] = ("auto", "python")
ORDERS: dict[str, Callable[..., None]] = {
    "describe": _describe, "rank": _rank, "play": _play, "compile": _compile, "read": _read,
}  # fmt: skip
"""What a seat can be told to do."""
