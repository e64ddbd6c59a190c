"""Compile the kernels of agents and environments ahead of time, into a folder that other machines read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from ..agents import Learner
from ..core.files import make_folder
from ..core.kernels import GIVEN, PORTABLE, check_private, keep_kernels
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from .labels import PUBLISHED, UnsuitedError
from .make import Place, Player
from .pairs import pair_of
from .run import run
from .sweep import places_of, players_of

SESSIONS = 100
"""Of each pair: kernels are compiled in the first ones."""
BOTH: tuple[Literal["auto", "python"], ...] = ("auto", "python")


def precompile(
    out: Path,
    agents: Sequence[str] = (),
    envs: Sequence[str] = (),
    *,
    portable: bool = False,
    callback: Callable[[str, list[str]], object] = lambda env, agents: None,
) -> list[Path]:
    """Compile what `run` and `sweep` need for every agent in every environment where it can play; what is there already stays.

    Args:
        out: the folder, made if missing; everybody may read it and its files.
        agents: names, with arguments if any; none means all but generic RL.
        envs: ids, with arguments if any; none means all.
        portable: compile for all processors of this architecture with `FEATURES` instead of for this one.
        callback: is called with each environment that is done and the agents that play there.

    Returns:
        All compiled kernels of the folder.

    Raises:
        ValueError: on an unknown name; an agent or environment that is not of the package, whose kernels are not kept; an agent
            that can play in none of the environments.
        OSError: others may write the folder, or it cannot be written.
    """
    ours = [name for name, agent in PUBLISHED.items() if not issubclass(agent, Learner)]
    players = list(players_of(agents or ours).values())
    places = list(places_of(envs or ENVIRONMENTS | CONTEXTUAL | MEMORY).values())
    pairs = _pairs(places, players, strict=bool(agents))
    if out.exists():
        check_private(out, out.stat())
    make_folder(out)
    out.chmod(0o755)
    for env, able in pairs.items():
        _compile(out, env, able, PORTABLE if portable else {})
        callback(env, able)
    return list(out.glob("*.nbc"))


def _pairs(places: Iterable[Place], players: Sequence[Player], *, strict: bool) -> dict[str, list[str]]:
    """The agents that can play in each environment; if ``strict``, each must be able to play in one at least."""
    for player in players:
        _check_ours("agent", player.given, player.maker in PUBLISHED.values())
        if player.kind is Learner:
            raise ValueError(f"agent {player.given!r} learns by a library of its own, and has no kernels to compile")
    pairs: dict[str, list[str]] = {}
    unable: dict[Player, UnsuitedError] = {}
    for place in places:
        _check_ours("environment", place.given, getattr(place.maker, "id", None) in ENVIRONMENTS | CONTEXTUAL | MEMORY)
        able: list[Any] = []
        for player in players:
            try:
                pair_of(player.make(place, SESSIONS, 0), place)
                able.append(player.given)
            except UnsuitedError as error:
                unable[player] = error
        pairs[str(place.given)] = able
    if strict:
        for player, reason in unable.items():
            if not any(player.given in able for able in pairs.values()):
                raise reason
    return pairs


def _check_ours(what: str, given: Any, is_ours: bool) -> None:
    if not is_ours:
        raise ValueError(f"{what} {given!r} is not of the package: only kernels of the package are kept on disk")


def _compile(out: Path, env: str, agents: list[str], variables: dict[str, str]) -> None:
    """Compile for one environment, in a new process: this one has loaded much already, and compiles for its own processor."""
    code = f"from {__name__} import fill; fill()"
    others = {name: value for name, value in os.environ.items() if name != GIVEN}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, json.dumps([str(out.resolve()), env, agents])],
        env=others | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
        raise OSError(f"kernels of {env} could not be compiled: {said[-1]}")
    for file in out.glob("*.nbc"):
        file.chmod(0o644)


def fill() -> None:
    """Compile into the folder that the command names, and end the process with a message if they cannot be kept."""
    folder, env, agents = json.loads(sys.argv[1])
    keep_kernels(Path(folder))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for agent in agents:
            for engine in BOTH:
                run(agent, env, SESSIONS, seed=0, engine=engine)
    lost = [str(each.message) for each in caught if str(each.message).startswith("compiled kernels are not kept")]
    sys.exit(lost[0].partition(";")[0] if lost else None)
