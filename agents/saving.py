"""Saving and loading of compiled agents, as files of arrays and JSON; a loaded agent continues
exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from ..core.files import FORMAT, check_format, parse_json, read_arrays, reading, write_whole
from ..core.state import declared, length_of
from ..envs.spaces import check_ranking

MOST = 2**53
"""What integers without an upper end stay below: counts are exact as floats, and never overflow."""

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
        agent: Any = agent_class.__new__(agent_class)
        agent.saved = {
            name.removeprefix("state_"): array
            for name, array in arrays.items()
            if name.startswith("state_")
        }
        agent.__init__(*sizes, seed=0, **description["hyperparameters"])
        agent.rng.bit_generator.state = description["generator"]
        for name in agent.session:
            _fill(name, getattr(agent, name), arrays[name])
        if agent.ranking[0] >= 0:  # the list is pending
            check_ranking(agent.ranking, agent.n_items, agent.n_positions)
        for name, value in agent.arrays.items():
            saved = agent.saved[name]
            if name in agent.growing:
                value = np.empty((len(saved), *value.shape[1:]), value.dtype)
                agent.state = agent.state._replace(**{name: value})
            _fill(name, value, saved)
        _check_ranges(agent.state_type, _sizes(agent), agent.arrays)
        if not agent.is_consistent():
            raise ValueError("its arrays contradict each other")
        del agent.saved
    return agent


def check_shapes(agent: CompiledAgent) -> None:
    """Check the shapes of saved arrays before arrays of the state are made."""
    sizes = _sizes(agent)
    for name, _, shape, *_ in declared(agent.state_type):
        expected = tuple(length_of(text, sizes) for text in shape)
        if agent.saved[name].shape != expected:
            raise ValueError(f"{name} has shape {agent.saved[name].shape}; expected {expected}")


def _sizes(agent: CompiledAgent) -> dict[str, int]:
    """Return the sizes by their letters; those of arrays that grow are the lengths saved."""
    grown = {
        shape[0]: len(agent.saved[name])
        for name, _, shape, *_ in declared(agent.state_type)
        if name in agent.growing and shape[0].isalpha()
    }
    return agent.sizes() | grown


def _fill(name: str, array: NDArray[Any], saved: NDArray[Any]) -> None:
    if (saved.shape, saved.dtype) != (array.shape, array.dtype):
        raise ValueError(
            f"{name} is {saved.dtype}{saved.shape}; expected {array.dtype}{array.shape}"
        )
    array[...] = saved


def _check_ranges(state: type, sizes: Mapping[str, int], arrays: Mapping[str, Any]) -> None:
    """Check that the integers that index are in their ranges."""
    for name, _, _, _, spans in declared(state):
        values = arrays[name] if len(spans) > 1 else [arrays[name]]
        for span, entries in zip(spans, values, strict=bool(spans)):
            low, stop = (length_of(text, sizes) if text else MOST for text in span.split(":"))
            entries = np.atleast_1d(entries)
            wrong = entries[(entries < low) | (entries >= stop)]
            if wrong.size:
                raise ValueError(f"{name} holds {wrong.flat[0]}; expected {low} to {stop - 1}")
