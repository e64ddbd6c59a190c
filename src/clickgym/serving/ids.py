"""Ids: checks of the user's own ids, and ids of impressions, which may be public and cannot be guessed."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from ..core.checks import short

Id = str | int
LONGEST = 1000
"""Characters of an id."""
NUMBER, MARK = 6, 6
"""Bytes of an impression's id: its number, and what only the store can compute of it."""
COLUMN = 2**63
"""Integers below fit into a column of SQLite."""


def check_id(name: str, value: Any) -> Id:
    """Check that an id is a text or an integer that the store can hold; the error names the argument."""
    if not isinstance(value, str):
        return _whole(name, value)
    value = str(value)  # of a subclass
    if not 0 < len(value) <= LONGEST:
        what = "an empty text" if not value else f"a text of {len(value):,} characters"
        raise ValueError(f"{name} is {what}; expected an id of 1 to {LONGEST:,} characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} is {short(value)}, which holds half a character; expected Unicode") from None
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {short(value)}; expected an id: a text or an integer")
    value = int(value)
    if not -COLUMN <= value < COLUMN:
        raise ValueError(f"{name} is {short(value)}; expected an integer of 64 bits")
    return value


def check_ids(name: str, values: Any, most: int | None = None) -> tuple[Id, ...]:
    """Check that ids are distinct, in an order and, if ``most`` is given, not too many; the error names the argument."""
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {short(values)}; expected a list of ids")
    ids = tuple(
        check_id(f"{name}[{place}]", value) for place, value in enumerate(islice(values, None if most is None else most + 1))
    )
    if most is not None and len(ids) > most:
        raise ValueError(f"{name} has more than most_candidates = {most:,} items")
    if len(set(ids)) < len(ids):
        twice = next(each for each, times in Counter(ids).items() if times > 1)
        raise ValueError(f"{name} holds {short(twice)} twice; expected each id once")
    return ids


def _mark(secret: bytes, number: bytes) -> bytes:
    return hashlib.blake2b(number, digest_size=MARK, key=secret).digest()


def impression_id(secret: bytes, number: int) -> str:
    """The id of an impression: sixteen letters, digits, - and _.

    Example:
        >>> impression_id(b"secret", 7)
        'AAAAAAAH8WogUghM'
    """
    packed = number.to_bytes(NUMBER, "big")
    return base64.urlsafe_b64encode(packed + _mark(secret, packed)).decode()


def impression_number(secret: bytes, token: Any) -> int | None:
    """The number of the impression with this id; None if this store did not make the id."""
    try:
        packed = base64.urlsafe_b64decode(token) if type(token) is str and len(token) == 16 else b""
    except (binascii.Error, ValueError):
        return None
    number = packed[:NUMBER]
    genuine = len(packed) == NUMBER + MARK and _mark(secret, number) == packed[NUMBER:]
    return int.from_bytes(number, "big") if genuine else None


def lot(secret: bytes, key: tuple[int, ...], what: bytes = b"lot") -> float:
    """A pseudo-random number in [0, 1) that depends only on the secret, the impression's key, and what it decides."""
    digest = hashlib.blake2b(b"".join(part.to_bytes(8, "big") for part in key), digest_size=8, key=secret, person=what).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def seed_of(seed: int, query: Id | None) -> np.random.SeedSequence:
    """The seed of a query's agent; it depends only on the seed of the store and the query's id."""
    digest = hashlib.sha256(repr(query).encode()).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest[:16], "<u4").tolist()])
