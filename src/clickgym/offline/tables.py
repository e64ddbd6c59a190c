"""Read text and tables line by line, and describe faulty lines; shared by the readers of logs and of judgements."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..core.checks import LARGEST, check_count, short
from ..core.files import in_bytes

LONGEST = 1 << 24
"""Bytes of a line."""
BLOCK = 1 << 23
"""Bytes of text that are held in memory at once, but for a line that is longer."""
PIECE = 1 << 20  # read at once
MAX_MEMORY = 4_000_000_000
"""Bytes that a reader keeps of a log, unless told otherwise."""
ROWS = 1_000_000
"""Rows of a table that are held in memory at once."""
NUMBER = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""How a number from 0 is written."""
SIGNED = re.compile(f"-?{NUMBER.pattern}")
"""How a number of either sign is written."""


Line = TypeVar("Line")
Output = TypeVar("Output")


class Fault(Exception):
    """The fault of a line: the reason under which it is counted, and a message with details."""

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.message = reason, message or reason


class Skipped(Counter[str]):
    """How many lines of a file (or rows of another source) were left out, by reason, and how many sessions went with them.

    Args:
        source: for messages.
        bad_rows: ``"strict"`` makes the first bad line an error; else see `most_bad`.
        unit: what a line is called.

    Attributes:
        first: the number of the first line of each reason.
        n_lost: sessions that were left out because of bad lines.
    """

    def __init__(self, source: object, bad_rows: str = "strict", unit: str | None = None) -> None:
        super().__init__()
        self.source, self.bad_rows, self.most = source, bad_rows, most_bad(bad_rows)
        self.unit = unit or ("row" if str(source).endswith(".parquet") else "line")
        self.first: dict[str, int] = {}
        self.n_lost = 0

    def add(self, fault: Fault, number: int, lines: int = 1, near: str = "") -> None:
        """Count lines that were left out, for what is wrong in or near the one of this number."""
        if self.most is None:
            raise ValueError(f"{self.source}, {near}{self.unit} {number}: {fault.message}") from None
        self.count(fault.reason, number, lines)

    def parsed(self, lines: Iterable[tuple[int, Line]], parse: Callable[[Line], Output]) -> Iterator[Output]:
        """What ``parse`` makes of numbered lines; those of which it raises a `Fault` are left out, each with a session."""
        for number, line in lines:
            try:
                output = parse(line)
            except Fault as fault:
                self.add(fault, number)
                self.n_lost += 1
            else:
                yield output

    def count(self, reason: str, number: int, lines: int = 1) -> None:
        """Count lines that were left out, the first of them with this number."""
        self[reason] += lines
        self.first[reason] = min(number, self.first.get(reason, number))

    def notes(self, n_kept: int) -> list[str]:
        """What was left out, one line for each reason.

        Raises:
            ValueError: more sessions were lost than is allowed.
        """
        lines = [
            f"{count:,} {self.unit}{'s' * (count > 1)}: {reason} (first: {self.unit} {self.first[reason]:,})"
            for reason, count in (+self).items()
        ]
        share = self.n_lost / max(n_kept + self.n_lost, 1)
        sessions = f"{self.n_lost:,} of {n_kept + self.n_lost:,} sessions ({share:.2%})"
        if self.most is not None and share > self.most:
            allowed = f"more than the {100 * self.most:g}% that bad_rows {self.bad_rows!r} allows"
            raise ValueError(f"{self.source}: {sessions} have bad {self.unit}s, {allowed}: {'; '.join(lines)}")
        return [f"left out {each}" for each in ([f"{sessions}, for bad {self.unit}s"] if self.n_lost else []) + lines]


def most_bad(bad_rows: str) -> float | None:
    """The share of the sessions that may be lost with bad rows; None: no row may be bad.

    Example:
        >>> most_bad("strict"), most_bad("skip"), most_bad("skip:5%")
        (None, 0.01, 0.05)
    """
    match = re.fullmatch(r"(strict)|skip(?::(\d+(?:\.\d+)?)%)?", bad_rows, re.ASCII) if isinstance(bad_rows, str) else None
    if not match or not 0 < (percent := float(match[2] or 1)) <= 100:
        raise ValueError(f"bad_rows is {short(bad_rows)}; expected 'strict', 'skip', or a share as in 'skip:5%'")
    return None if match[1] else percent / 100


def check_size(name: str, size: int | str) -> int:
    """A number of bytes, as a number or in words.

    Example:
        >>> check_size("max_memory", "4 GB"), check_size("max_memory", 500)
        (4000000000, 500)
    """
    if not isinstance(size, str):
        return check_count(name, size)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMGT]?)B?", size.strip(), re.ASCII)
    if not match or not (number := float(match[1]) * 1000 ** " kMGT".index(match[2] or " ")) >= 1:
        raise ValueError(f"{name} is {size!r}; expected a size such as 500MB or 4GB")
    return int(number)


def check_kept(path: object, size: int, max_memory: int, what: str) -> None:
    """Refuse to go on reading where more would be kept than is allowed; the message of the ValueError names both sizes."""
    if size > max_memory:
        raise ValueError(
            f"{path}: {what} take {in_bytes(size)} of memory, more than max_memory = {in_bytes(max_memory)}; raise it if the "
            f"log is meant to be so large"
        )


def unpacked(path: Path) -> Any:
    """A file, gzipped or not, opened to be read."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def read_blocks(path: Path, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """The text of a file, gzipped or not, in blocks of whole lines; the last line is given an end if it has none.

    Args:
        path: the file.
        size: bytes of a block, about; None takes `BLOCK`.

    Yields:
        The number of the first line, from 1, and the block.

    Raises:
        ValueError: on a line longer than `LONGEST`; on a damaged file, after all that could be read of it.
    """
    number, rest, ended = 1, b"", False
    damage: Exception | None = None
    with unpacked(path) as file:
        while not ended:
            text, ended, damage = _read_on(file, rest, size or BLOCK)
            if ended and not damage and text and not text.endswith(b"\n"):
                text += b"\n"
            end = text.rfind(b"\n") + 1
            if end:
                yield number, text[:end]
                number += text.count(b"\n")
            rest = text[end:]
            if len(rest) >= LONGEST:  # a compressed file could fill all memory with it
                raise _too_long(path, number)
    if damage:
        raise ValueError(f"{path}, after line {number - 1}: the compressed file is damaged; {damage}")


def _read_on(file: Any, rest: bytes, block: int) -> tuple[bytes, bool, Exception | None]:
    """What is left of a block and the next one, whether the file ends with it, and the damage that ends it."""
    pieces, size = [rest], 0
    while size < block:
        try:
            piece = file.read1(PIECE)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            return b"".join(pieces), True, error
        if not piece:
            return b"".join(pieces), True, None
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), False, None


def split_lines(path: Path, first: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a block, without their ends, with their numbers."""
    lines = block.split(b"\n")
    lines.pop()
    for number, line in enumerate(lines, first):
        if len(line) >= LONGEST - 1:
            raise _too_long(path, number)
        yield number, line.removesuffix(b"\r")


def _too_long(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, line {number} is longer than {LONGEST >> 20} MiB; expected a text file")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a text file, gzipped or not, with their numbers from 1 and without their ends."""
    for first, block in read_blocks(path):
        yield from split_lines(path, first, block)


def excerpt(line: bytes) -> str:
    """The beginning of a line, for messages."""
    return repr(line[:80].decode(errors="backslashreplace"))


def whole_number(name: str, text: str, least: int) -> int:
    """A number written as 1 to 9 digits; else a `Fault`, as from `Real.parse`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= least):
        limit = ", of at most 9 digits" if text.isdigit() and len(text) > 9 else ""
        expected = f"a whole number from {least}"
        raise Fault(f"{name} is not {expected}", f"{name} is {text!r}; expected {expected}{limit}")
    return int(text)


class Real(NamedTuple):
    """A kind of real numbers that a column may hold as text.

    Attributes:
        written: how they are written, in what Python and Rust have in common of regular expressions.
        inside: whether a number (or an expression of Polars) that is so written has an allowed value.
        reason: what is said of the column in counts of faulty lines.
        expected: what messages say is expected.
    """

    written: re.Pattern[str]
    inside: Callable[[Any], Any]
    reason: str
    expected: str

    def parse(self, name: str, text: str) -> float:
        """The number in a column of this name."""
        if not (self.written.fullmatch(text) and self.inside(float(text))):
            raise Fault(f"{name} is not {self.reason}", f"{name} is {text!r}; expected {self.expected}")
        return float(text)


PROBABILITY = Real(NUMBER, lambda value: (value > 0) & (value <= 1), "in (0, 1]", "a probability in (0, 1]")
FEATURE = Real(SIGNED, lambda value: abs(value) < math.inf, "a finite number", "a finite number")
WORTH = Real(NUMBER, lambda value: value <= LARGEST, "a finite number from 0", "a finite number from 0")
RATING = Real(NUMBER, lambda value: value < math.inf, "a number from 0", "a number from 0")
