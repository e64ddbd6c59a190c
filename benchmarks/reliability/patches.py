"""Mutants as text: a few lines of a file and what stands there instead, which find their place again in a changed tree.

`mutants.toml` holds those that were drawn at random, most of them from version 1.0. Since then files move and functions change;
what is asked is always whether the same faults are noticed. A patch is looked for by its own lines, those around them and the
name of its function: in the file that it names, then in files of the same name, then everywhere.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("src", "envs", "agents", "lab/src")
"""The folders of the library and of the lab, from the root of a tree."""
AROUND = 3
"""Lines of context on either side."""
FUNCTION = 3
"""How many lines of context the name of the function is worth."""
ENOUGH = 3
"""Of context, to be sure of a place."""


class Patch(NamedTuple):
    """A mutant of some whole lines.

    Attributes:
        module: under which the report counts it.
        file: where it was drawn, from the root of the tree.
        function: the qualified name of the function around it, ``""`` outside of all.
        operator: what kind of fault it is.
        before, old, new, after: lines.
    """

    module: str
    file: str
    function: str
    operator: str
    before: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def key(self) -> str:
        """Identifies it in a file of results."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:12]

    @property
    def change(self) -> str:
        """In one line."""
        return f"{' '.join(map(str.strip, self.old))}  ->  {' '.join(map(str.strip, self.new))}"

    @property
    def lines(self) -> str:
        """As a patch has them, each behind a blank, ``-`` or ``+``."""
        parts = ((" ", self.before), ("-", self.old), ("+", self.new), (" ", self.after))
        return "\n".join(f"{sign}{line}".rstrip() for sign, part in parts for line in part)

    def __str__(self) -> str:
        return f"--- {self.file} ({self.function})\n{self.lines}"


class Place(NamedTuple):
    """Where a patch applies: lines ``first`` to ``last`` of a file, counted from 0 and without the last."""

    file: str
    first: int
    last: int
    new: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The source with the patch in it."""
        lines = source.split("\n")
        return "\n".join([*lines[: self.first], *self.new, *lines[self.last :]])


def patch_of(module: str, operator: str, file: str, source: str, mutated: str, around: int = AROUND) -> Patch:
    """What a mutant changes, with so many lines ``around`` it."""
    before, after = source.split("\n"), mutated.split("\n")
    first = _equal(before, after)
    tail = _equal(before[first:][::-1], after[first:][::-1])
    last = len(before) - tail
    return Patch(
        module, file, functions(source).get(first, ""), operator, tuple(before[max(first - around, 0) : first]),
        tuple(before[first:last]), tuple(after[first : len(after) - tail]), tuple(before[last : last + around]),
    )  # fmt: skip


@cache
def functions(source: str) -> dict[int, str]:
    """The qualified name of the innermost function around each line that is in one; lines are counted from 0."""
    names: dict[int, str] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if isinstance(child, ast.FunctionDef):
                    names.update(dict.fromkeys(range(child.lineno - 1, child.end_lineno or 0), name))
                visit(child, f"{name}.")
            else:
                visit(child, prefix)

    visit(ast.parse(source), "")
    return names


def place_of(patch: Patch, root: Path) -> Place | None:
    """Where a patch belongs in a tree; None where its lines are gone, or stand in several places that are equally near."""
    everywhere = sources(root)
    same_name = [file for file in everywhere if Path(file).name == Path(patch.file).name]
    for files in ([patch.file] if patch.file in everywhere else [], same_name, list(everywhere)):
        ranked = sorted(_candidates(patch, root, files), key=lambda candidate: -candidate[0])
        if ranked and ranked[0][0] >= ENOUGH and (len(ranked) == 1 or ranked[0][0] > ranked[1][0]):
            return ranked[0][1]
    return None


def sources(root: Path) -> list[str]:
    """The files of the package in a tree, from its root."""
    return [file.relative_to(root).as_posix() for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]


def _candidates(patch: Patch, root: Path, files: Iterable[str]) -> Iterator[tuple[int, Place]]:
    """Where the lines of a patch stand, however far indented, and how much around them is as it was."""
    old, before, after = ([line.strip() for line in part] for part in (patch.old, patch.before[::-1], patch.after))
    for file in files:
        source = (root / file).read_text(encoding="utf-8")
        if not all(line in source for line in old):
            continue
        lines = source.split("\n")
        stripped = [line.strip() for line in lines]
        for first in range(len(lines) - len(old) + 1):
            last = first + len(old)
            if stripped[first:last] == old:
                score = _equal(before, stripped[:first][::-1]) + _equal(after, stripped[last:])
                name = functions(source).get(first, "")
                score += FUNCTION * (name.rpartition(".")[2] == patch.function.rpartition(".")[2])
                indent = len(lines[first]) - len(stripped[first])
                yield score, Place(file, first, last, _indented(patch, indent))


def _equal(expected: list[str], lines: list[str]) -> int:
    """How many lines are the same before the first that is not."""
    pairs = list(zip(expected, lines, strict=False))
    return next((count for count, (one, other) in enumerate(pairs) if one != other), len(pairs))


def _indented(patch: Patch, indent: int) -> tuple[str, ...]:
    """The new lines as deep as the old ones stand now."""
    more = indent - (len(patch.old[0]) - len(patch.old[0].lstrip()))
    return tuple(" " * more + line if more >= 0 else line[-more:] for line in patch.new)


# -------------------------------------------------------------------------------------------------------------- in files


def read(file: Path) -> list[Patch]:
    """The patches of a TOML file."""
    return [_patch(**entry) for entry in tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", [])]


def _patch(lines: str, **words: str) -> Patch:
    rows = lines.removesuffix("\n").split("\n")
    first, new = (next(number for number, row in enumerate(rows) if row.startswith(sign)) for sign in "-+")
    last = next((number for number in range(new, len(rows)) if not rows[number].startswith("+")), len(rows))
    before, old, after = rows[:first], rows[first:new], rows[last:]
    parts = {"before": before, "old": old, "new": rows[new:last], "after": after}
    return Patch(**words, **{name: tuple(row[1:] for row in part) for name, part in parts.items()})


def in_toml(patch: Patch) -> str:
    """An entry that `read` reads."""
    words = {name: getattr(patch, name) for name in ("module", "file", "function", "operator")}
    lines = [f"{name} = {json.dumps(word)}" for name, word in words.items()]
    return "\n".join(["[[mutant]]", *lines, f"lines = '''\n{patch.lines}\n'''", ""])
