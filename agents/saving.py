"""Saving and loading of compiled agents, as files of arrays and JSON; a loaded agent continues
exactly.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from ..core.files import FORMAT, check_format, parse_json, read_arrays, reading, write_whole
from ..envs.spaces import check_ranking

if TYPE_CHECKING:
    from .compiled import CompiledAgent

Saved = TypeVar("Saved", bound="CompiledAgent")

FAULT = ("is not a saved agent, or damaged", "restore it from a backup")


def save_agent(agent: CompiledAgent, path: str | Path | BinaryIO) -> None:
    """Write an agent; see `CompiledAgent.save`."""
    target = path if hasattr(path, "write") else check_path("path", path)
    description = {
        "format": FORMAT,
        "agent": type(agent).__qualname__,
        "n_items": agent.n_items,
        "n_positions": agent.n_positions,
        "hyperparameters": {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in agent.hyperparameters.items()
        },
        "generator": agent.rng.bit_generator.state,
    }
    arrays = {name: getattr(agent, name) for name in agent.session}
    arrays |= {f"state_{name}": value for name, value in agent.arrays.items()}

    file = io.BytesIO()
    np.savez(file, description=np.array(json.dumps(description)), **arrays)
    if isinstance(target, Path):
        write_whole(target, file.getvalue())
    else:
        target.write(file.getvalue())


def load_agent(agent_class: type[Saved], path: str | Path | BinaryIO) -> Saved:
    """Read an agent of a class; see `CompiledAgent.load`."""
    source = cast(BinaryIO, path) if isinstance(path, io.IOBase) else check_path("path", path)
    with reading(source, *FAULT):
        arrays = read_arrays(source)
        description = parse_json(str(arrays["description"]))
        name = str(description["agent"])
    check_format(source, description.get("format"))
    if name != agent_class.__qualname__:
        raise ValueError(f"{source} holds a {name}, not a {agent_class.__qualname__}")

    with reading(source, *FAULT):
        sizes = description["n_items"], description["n_positions"]
        agent = agent_class(*sizes, seed=0, **description["hyperparameters"])
        agent.rng.bit_generator.state = description["generator"]
        for name in agent.session:
            _fill(name, getattr(agent, name), arrays[name])
        if agent.ranking[0] >= 0:  # the list is pending
            check_ranking(agent.ranking, agent.n_items, agent.n_positions)
        for name, value in agent.arrays.items():
            saved = arrays[f"state_{name}"]
            if name in agent.growing:
                value = np.empty((len(saved), *value.shape[1:]), value.dtype)
                agent.state = agent.state._replace(**{name: value})
            _fill(name, value, saved)
    return agent


def _fill(name: str, array: NDArray[Any], saved: NDArray[Any]) -> None:
    if (saved.shape, saved.dtype) != (array.shape, array.dtype):
        raise ValueError(
            f"{name} is {saved.dtype}{saved.shape}; expected {array.dtype}{array.shape}"
        )
    array[...] = saved
