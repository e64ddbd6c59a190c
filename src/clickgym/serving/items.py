"""The items of a `Ranker`: their numbers in the journal, the users' own ids, and what a click on each earns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.checks import check_at_least, short
from .ids import Id, check_id
from .journal import Item, Journal


class Items:
    """The items of a journal, as far as this process has met them.

    Args:
        journal: where they are.
        values: what a click on each earns, by id, brought up to date from the journal; empty where items have no values.

    Attributes:
        numbers, ids: of each id its number, and of each number its id.

    Raises:
        ValueError: an item has another value in the journal.
    """

    def __init__(self, journal: Journal, values: dict[Id, float]) -> None:
        self._journal, self.values = journal, values
        self.numbers: dict[Id, int] = {}
        self.ids: dict[int, Id] = {}
        self._remember(journal.items())

    def _remember(self, items: Iterable[Item]) -> None:
        """Keep items of the journal in memory; refuse them where ``values`` has another value."""
        for number, identity, value in items:
            if value is not None and self.values.setdefault(identity, value) != value:
                raise ValueError(
                    f"item_values has {self.values[identity]:g} for {short(identity)}, of which "
                    f"{self._journal.name} has {value:g}; an item keeps its value, or gets another id"
                )
            self.ids[number] = identity
            self.numbers[identity] = number

    def numbers_of(self, candidates: Sequence[Id]) -> list[int]:
        """The numbers of items, new ones if need be."""
        new = [identity for identity in candidates if identity not in self.numbers]
        if new:
            self._remember(self._journal.find_items(new))
            new = [identity for identity in new if identity not in self.numbers]
        if new:
            self._remember(self._journal.add_items(new, [self.values.get(identity) for identity in new]))
        return [self.numbers[identity] for identity in candidates]

    def find(self, identity: Id) -> int | None:
        """The number of an item; None if it was never a candidate."""
        if identity not in self.numbers:
            self._remember(self._journal.find_items([identity]))
        return self.numbers.get(identity)

    def ids_of(self, numbers: Sequence[int]) -> list[Id]:
        """The ids of items."""
        try:
            return [self.ids[number] for number in numbers]
        except KeyError:
            self._remember(self._journal.items_of([number for number in numbers if number not in self.ids]))
            return [self.ids[number] for number in numbers]

    def check(self, name: str, ids: tuple[Id, ...]) -> tuple[Id, ...]:
        """Refuse items without a value, if items have any; the error names the argument."""
        for identity in ids if self.values else ():
            if identity not in self.values and self.find(identity) is None:
                raise ValueError(f"{name} holds {short(identity)}, of which item_values has no value")
        return ids


def checked_values(item_values: Any) -> dict[Id, float]:
    """The values by item; none if none are given."""
    if item_values is None:
        return {}
    if not isinstance(item_values, Mapping):
        raise TypeError(f"item_values is {short(item_values)}; expected the value of each item, by its id")
    values = {
        check_id("an item of item_values", item): check_at_least(f"item_values[{short(item)}]", value, 0.0)
        for item, value in item_values.items()
    }
    if not any(values.values()):
        raise ValueError(f"item_values {'are all 0' if values else 'is empty'}; expected at least one above 0")
    return values
