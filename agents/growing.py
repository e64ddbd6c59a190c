"""Agents whose state keeps all samples, in arrays that grow with the sessions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count
from .agent import ContextualAgent, doubled

FEW = 64  # rows for which there is room at first


class GrowingAgent(ContextualAgent):
    """Base class of agents whose arrays of samples grow; ``state.n_learned`` counts the sessions that were learned."""

    counts: ClassVar[Mapping[str, str]]
    """For each growing array the field of the state that counts its rows."""

    @abstractmethod
    def _rows(self) -> Mapping[str, int]:
        """How many rows of each growing array a session needs at most."""

    def make_room(self, n_sessions: int) -> None:
        """Grow, if need be, so that there is room for the next sessions, and for displays that wait for clicks."""
        sessions = check_count("n_sessions", n_sessions, 0) + self.display - int(self.state.n_learned[0])
        for name, most in self._rows().items():
            array, count = getattr(self.state, name), int(getattr(self.state, self.counts[name])[0])
            if (needed := count + sessions * most) > len(array):
                longer = np.zeros((doubled(len(array), needed), *array.shape[1:]), array.dtype)
                longer[:count] = array[:count]
                self.state = self.state._replace(**{name: longer})

    def _arrays(self) -> dict[str, Any]:
        arrays = super()._arrays()
        return arrays | {
            name: arrays[name][: max(FEW, int(getattr(self.state, count)[0]))] for name, count in self.counts.items()
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.make_room(0)
