"""Saving and loading of compiled agents, as files of arrays and JSON. A loaded agent continues
exactly from where it was saved.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from ..core.checks import check_path
from ..core.files import FORMAT, check_format, one_line_errors, write_whole

if TYPE_CHECKING:
    from .compiled_agent import CompiledAgent

Saved = TypeVar("Saved", bound="CompiledAgent")


def save_agent(agent: CompiledAgent, path: str | Path | BinaryIO) -> None:
    """Save an agent to a file; see `CompiledAgent.save`."""
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
    arrays: dict[str, Any] = {name: getattr(agent, name) for name in agent.session}
    arrays |= {f"state_{name}": value for name, value in agent.arrays.items()}
    file = io.BytesIO()
    np.savez(file, description=np.array(json.dumps(description)), **arrays)
    if hasattr(path, "write"):
        path.write(file.getvalue())
    else:
        write_whole(check_path("path", path), file.getvalue())


def load_agent(agent_class: type[Saved], path: str | Path | BinaryIO) -> Saved:
    """Load an agent of a class from a file; see `CompiledAgent.load`."""
    if not hasattr(path, "read"):
        path = check_path("path", path)
    cure = "pass a file that save wrote, or restore this file from a backup"
    fault = "is not a saved agent, or is damaged", cure
    with one_line_errors(path, *fault), np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
        description = json.loads(str(arrays["description"]))
        name = str(description["agent"])
    check_format(path, description.get("format"))
    if name != agent_class.__qualname__:
        raise ValueError(
            f"{path} holds a saved {name}, not a {agent_class.__qualname__}; load it with "
            f"{name}.load"
        )
    with one_line_errors(path, *fault):
        sizes = description["n_items"], description["n_positions"]
        agent = agent_class(*sizes, seed=0, **description["hyperparameters"])
        agent.rng.bit_generator.state = description["generator"]
        for name in agent.session:
            getattr(agent, name)[:] = arrays[name]
        state: dict[str, Any] = {}
        for name, value in agent.arrays.items():
            state[name] = array = arrays[f"state_{name}"]
            n_free = 1 if name in agent.growing else 0  # their length may differ
            if (array.dtype, array.shape[n_free:]) != (value.dtype, value.shape[n_free:]):
                raise ValueError(
                    f"{name} is {array.dtype}{array.shape}; expected {value.dtype}{value.shape}"
                )
        agent.state = agent.state._replace(**state)
    return agent
