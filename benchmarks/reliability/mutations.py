"""Mutations: small faults planted one at a time in a copy of the tree, and whether the tests that aim at them notice.

    python benchmarks/reliability/mutations.py --work build/mutants --results build/mutants.jsonl

plays those of ``mutants.toml``, most of them drawn from version 1.0, which are looked for in the tree as it is now
(`patches`); one whose lines are no longer there is "gone". Each is applied to a copy of the tree and tried by the tests that
aim at its file (``aims.toml``). The report shows each that was not caught, and tells by module how many were. A run that was
stopped is resumed from its results. One that no test could catch is entered in ``equivalent.toml``, with the reason.

    python benchmarks/reliability/mutations.py --seed 3 --per-module 8

draws others at random, first an operator, then a place for it; with ``--write`` they are added to ``mutants.toml`` instead.

*Compiled kernels* are keyed by the code that they reach, so that one cache serves all mutants, and each compiles only what it
concerns; on a tree of version 1.0, whose cache is named by all sources, each compiles everything.

As a plugin of pytest (``-p mutations``) this file makes sure that the package is that of the copy.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import patches
from patches import Patch, Place

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT, WRITTEN = (Path(__file__).with_name(name) for name in ("equivalent.toml", "mutants.toml"))
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
WITHOUT = 10
"""How many times the limit tests may take without a mutant, when they compile everything."""
MOST = resource.getrlimit(resource.RLIMIT_CPU)[1]
"""Seconds of processor time that a process may allow itself; seats of the judge take more than the tests of a mutant."""
BUSY = 5
"""How many times its processor time a run may take by the clock, on a machine with other work."""


class Aim(NamedTuple):
    """Files, and the tests that aim at them.

    Attributes:
        files: from the root of the tree, to draw from; a mutant that was drawn before they moved is tried by the aim of its
            module at a file of its name.
        tests: names of files somewhere below ``tests/``.
        key: as for pytest's ``-k``, against the slowest.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    key: str


MODULES = {
    module: [Aim(tuple(aim["files"]), tuple(aim["tests"]), aim.get("key", "")) for aim in aims]
    for module, aims in tomllib.loads(Path(__file__).with_name("aims.toml").read_text(encoding="utf-8")).items()
}
"""The aims by the module under which the report counts what is tried."""


# ---------------------------------------------------------------------------------------------------------------- operators


class Mutant(NamedTuple):
    """A part of a file, in bytes, and what stands there instead, as it is drawn."""

    file: str
    operator: str
    start: int
    stop: int
    text: str


COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
LOGIC = {"and": "or", "or": "and"}
EXTREMES = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
EXTREMES |= {most: least for least, most in EXTREMES.items()}
DROPPED = (ast.AugAssign, ast.Break, ast.Continue, ast.Raise)
UNTOUCHED = (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)
NOT_SWAPPED = ("isinstance", "issubclass", "cast", "getattr", "setattr")
FILES = ("file", "name")
"""What stands after the last ``/`` of a path."""
DRAWING = re.compile("_?draw.*|_per_session|_bubble|_as_printed|_table")
"""Functions without a rule: figures and printed tables."""


def mutants(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file."""
    source = (root / file).read_bytes()
    tree = ast.parse(source)
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def start(node: Any) -> int:
        return lines[node.lineno - 1] + node.col_offset

    def stop(node: Any) -> int:
        return lines[node.end_lineno - 1] + node.end_col_offset

    def text(node: Any) -> str:
        return source[start(node) : stop(node)].decode()

    def whole(operator: str, node: Any, new: str) -> Mutant:
        return Mutant(file, operator, start(node), stop(node), new)

    def between(operator: str, left: Any, right: Any, table: dict[str, str], mark: str = "") -> Iterator[Mutant]:
        """Another operator where one stands between two expressions."""
        first = stop(left)
        found = re.search(
            rf"(?<![\w<>=!*/+-])({'|'.join(map(re.escape, table))}){mark}(?![\w<>=!*/+])", source[first : start(right)].decode()
        )
        if found:
            yield Mutant(file, operator, first + found.start(1), first + found.end(1), table[found[1]])

    counters = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and text(node.iter).startswith("range(")
    }

    def changes(node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                    yield from between("comparison", left, right, COMPARISONS)
            case ast.BinOp(right=ast.JoinedStr() | ast.Constant(value=str())):
                pass  # text, or a path
            case ast.BinOp(op=ast.Div(), right=ast.Name(id=name) | ast.Attribute(attr=name)) if name.isupper() or name in FILES:
                pass
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                yield from between("arithmetic", node.left, node.right, ARITHMETIC)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from between("logic", left, right, LOGIC)
            case ast.Constant(value=value) if type(value) in (int, float):
                for new in (value + 1, value - 1, value // 2 if type(value) is int else value / 2):
                    yield whole("constant", node, repr(new))
            case ast.Subscript(slice=index):
                for place in index.elts if isinstance(index, ast.Tuple) else [index]:
                    bounds = (place.lower, place.upper) if isinstance(place, ast.Slice) else (place,)
                    for bound in bounds:
                        if isinstance(bound, ast.BinOp) or (isinstance(bound, ast.Name) and bound.id in counters):
                            yield whole("index", bound, f"{text(bound)} + 1")
            case ast.Call(func=function, args=[first, second, *_]) if not isinstance(first, ast.Starred):
                if not isinstance(second, ast.Starred) and text(function) not in NOT_SWAPPED and text(first) != text(second):
                    middle = source[stop(first) : start(second)].decode()
                    yield Mutant(file, "arguments", start(first), stop(second), f"{text(second)}{middle}{text(first)}")
        match node:
            case ast.AugAssign():
                yield from between("arithmetic", node.target, node.value, ARITHMETIC, "(?==)")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in EXTREMES:
                end = stop(node.func)
                yield Mutant(file, "extreme", end - len(name), end, EXTREMES[name])
            case ast.keyword(arg="axis", value=ast.Constant(value=0 | 1 as axis)):
                yield whole("axis", node.value, repr(1 - axis))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield whole("condition", test, f"not ({text(test)})")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield whole("condition", test, f"not ({text(test)})")
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        is_stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute)
        if is_call or is_stored or isinstance(node, DROPPED):
            yield whole("statement", node, "pass")

    statements = [
        (lines[min([node.lineno, *(other.lineno for other in getattr(node, "decorator_list", []))]) - 1], stop(node))
        for node in tree.body
    ]

    def is_other(mutant: Mutant) -> bool:
        """Whether the statement of the file in which it is means something else."""
        first, last = next((first, last) for first, last in statements if first <= mutant.start and mutant.stop <= last)
        shifted = mutant._replace(start=mutant.start - first, stop=mutant.stop - first)
        statement = source[first:last]
        try:
            return ast.dump(ast.parse(applied(statement, shifted))) != ast.dump(ast.parse(statement))
        except SyntaxError:
            return False

    found = dict.fromkeys(mutant for node in _touched(tree) for mutant in changes(node))
    return [mutant for mutant in found if is_other(mutant)]


def _touched(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose change can matter: no annotations, decorators, messages, figures."""
    if isinstance(node, ast.FunctionDef) and DRAWING.fullmatch(node.name):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "exc", "cause"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, UNTOUCHED):
                    yield from _touched(child)


def applied(source: bytes, mutant: Mutant) -> bytes:
    """The source with the mutant in it."""
    return source[: mutant.start] + mutant.text.encode() + source[mutant.stop :]


def drawn(root: Path, module: str, count: int, seed: int) -> list[Patch]:
    """Some mutants of a module: an operator at random, then one of its places."""
    rng = random.Random(f"{seed} {module}")
    places: dict[str, list[Mutant]] = {}
    for mutant in (mutant for aim in MODULES[module] for file in aim.files for mutant in mutants(root, file)):
        places.setdefault(mutant.operator, []).append(mutant)
    result: list[Patch] = []
    while places and len(result) < count:
        operator = rng.choice(sorted(places))
        patch = _patch(root, module, places[operator].pop(rng.randrange(len(places[operator]))))
        if all(patch.lines != other.lines for other in result):  # two operators can make the same change
            result.append(patch)
        if not places[operator]:
            del places[operator]
    return result


def _patch(root: Path, module: str, mutant: Mutant) -> Patch:
    """A mutant as text, with as many lines around it as tell where it belongs."""
    source = (root / mutant.file).read_bytes()
    texts = (source.decode(), applied(source, mutant).decode())
    for around in (3, 6, 12, 24, 48):
        patch = patches.patch_of(module, mutant.operator, mutant.file, *texts, around)
        place = patches.place_of(patch, root)
        if place is not None and place.file == mutant.file and place.applied(texts[0]) == texts[1]:
            return patch
    raise ValueError(f"nothing tells where this belongs:\n{patch}")


# ----------------------------------------------------------------------------------------------------- the copy and its runs


def _not_copied(root: Path, folder: str, names: list[str]) -> set[str]:
    """What tests do not need; among it the results of ``make run``, but not those that ship in other folders."""
    return NOT_COPIED(folder, names) | ({"results"} if Path(folder) == root else set())


class Copy:
    """A copy of a tree in a folder, where tests import the package from.

    Args:
        root: the tree.
        work: the folder; a copy that is there is replaced, what it has compiled is kept.
        limit: seconds of processor time that the tests of a mutant may take.
    """

    def __init__(self, root: Path, work: Path, limit: int) -> None:
        self.work, self.limit, self.tree = work, limit, work / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(root, self.tree, ignore=partial(_not_copied, root))
        # It looks installed, and stands before the editable installation. Hard links: a sandbox has nothing but this folder.
        links = self.tree / "links" / "clickgym"
        for folder, place in (("src/clickgym", links), ("envs", links / "envs"), ("agents", links / "agents")):
            shutil.copytree(self.tree / folder, place, copy_function=os.link, dirs_exist_ok=True)
        links.with_name("clickgym_lab").symlink_to(self.tree / "lab" / "src" / "clickgym_lab")
        self.n_changes = 0

    def tests(self, aim: Aim) -> list[str]:
        """The arguments of pytest, with the files where they are in this tree."""
        folders = [self.tree / "tests", self.tree / "lab" / "tests"]
        files = [str(file.relative_to(self.tree)) for name in aim.tests for where in folders for file in where.rglob(name)]
        if len(files) != len(aim.tests):
            sys.exit(f"expected one file below tests/ for each of {', '.join(aim.tests)}; there is {', '.join(files)}")
        return [*files, "-m", "not slow", *(["-k", aim.key] if aim.key else [])]

    def run(self, aim: Aim, limit: int) -> str:
        """Run tests; what they print is in ``last.log``.

        Returns:
            ``"passed"``, ``"failed"`` or ``"too long"``.
        """
        paths = (self.tree / "links", Path(__file__).resolve().parent)
        own = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "MPLCONFIGDIR": str(self.work / "mpl"),
        }
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutations"]
        with (self.work / "last.log").open("w") as log:
            process = subprocess.Popen(
                [*words, f"--basetemp={self.work / 'pytest'}", *self.tests(aim)], cwd=self.tree,
                env=os.environ | own, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (limit, MOST)),
            )  # fmt: skip
            try:
                for _ in range(BUSY * limit):  # seconds one by one: those for which all of it was suspended do not count
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        code = process.wait(1)
                        return {0: "passed", -signal.SIGXCPU: "too long", -signal.SIGKILL: "too long"}.get(code, "failed")
                return "too long"
            finally:  # also of workers that tests have left
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def try_without(self, aim: Aim) -> bool:
        """Run tests without a mutant, which compiles kernels; says how long it took.

        Returns:
            Whether they passed, so that mutants can be tried by them.
        """
        before = time.monotonic()
        outcome = self.run(aim, WITHOUT * self.limit)
        words = f"{' '.join(aim.tests)} in {time.monotonic() - before:.0f} s without a mutant"
        log = "" if outcome == "passed" else f"\n{(self.work / 'last.log').read_text()[-3000:]}"
        print(f"{outcome}: {words}{log}", flush=True)
        return outcome == "passed"

    def try_with(self, place: Place, aim: Aim) -> str:
        """Run tests with a mutant in the copy."""
        file = self.tree / place.file
        source, before = file.read_bytes(), file.stat()
        self.n_changes += 1
        try:
            file.write_bytes(place.applied(source.decode()).encode())
            os.utime(file, (0, 1_000_000_000 + self.n_changes))
            return self.run(aim, self.limit)
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


# ------------------------------------------------------------------------------------------------------- as pytest's plugin


def pytest_configure() -> None:
    """Refuse to test another package than that of the copy."""
    import clickgym

    assert Path(clickgym.__file__).is_relative_to(Path.cwd()), clickgym.__file__


# ---------------------------------------------------------------------------------------------------------------- the report


OUTCOMES = ("caught", "too long", "equivalent", "survived", "gone")


def aim_at(patch: Patch) -> Aim:
    """The aim of its module at a file of the name of that of a mutant; if it has none, the aim at that file in any module."""
    name = Path(patch.file).name
    own = (aim for aim in MODULES[patch.module] if any(Path(file).name == name for file in aim.files))
    return next(itertools.chain(own, (aim for aims in MODULES.values() for aim in aims if patch.file in aim.files)))


def is_equivalent(patch: Patch) -> bool:
    """Whether it was judged that no test could tell."""
    change = (" ".join(map(str.strip, patch.old)), " ".join(map(str.strip, patch.new)))
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return change in [(each["line"], each["mutation"]) for each in listed if each["file"] == patch.file]


def play(copy: Copy, planted: Sequence[Patch], results: Path) -> dict[str, str]:
    """Try mutants, those of one aim after another, as far as the results do not tell how they ended; each adds a line to them.

    Returns:
        The outcomes, by the keys of patches; of those whose tests do not pass without a mutant there is none.
    """
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    outcomes = {entry["key"]: entry["outcome"] for entry in map(json.loads, lines)}
    aims = {aim: [patch for patch in planted if aim_at(patch) == aim and patch.key not in outcomes] for aim in
            dict.fromkeys(map(aim_at, planted))}  # fmt: skip
    for aim, own in aims.items():
        places = {patch: patches.place_of(patch, copy.tree) for patch in own}
        if any(places.values()) and not copy.try_without(aim):
            continue
        for patch, place in places.items():
            before = time.monotonic()
            outcome = "gone" if place is None else copy.try_with(place, aim)
            outcome = {"passed": "survived", "failed": "caught"}.get(outcome, outcome)
            if outcome == "survived" and is_equivalent(patch):
                outcome = "equivalent"
            outcomes[patch.key] = outcome
            seconds = round(time.monotonic() - before, 1)
            entry = {
                "key": patch.key, "module": patch.module, "file": patch.file if place is None else place.file,
                "operator": patch.operator, "outcome": outcome, "seconds": seconds, "change": patch.change,
            }  # fmt: skip
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            print(f"{outcome} in {seconds:.0f} s ({patch.operator}) {entry['file']}: {patch.change}", flush=True)
    return outcomes


def report(planted: Sequence[Patch], outcomes: dict[str, str]) -> str:
    """The patches that nothing noticed or that are gone, and the table by module."""
    parts = [f"{outcome}:\n{patch}" for outcome in ("survived", "gone") for patch in planted if outcomes[patch.key] == outcome]
    rows = {module: Counter[str]() for module in dict.fromkeys(patch.module for patch in planted)}
    for patch in planted:
        rows[patch.module][outcomes[patch.key]] += 1
    table = [f"| module | planted | {' | '.join(OUTCOMES)} |", f"|---|{'--:|' * (1 + len(OUTCOMES))}"]
    for module, counts in {**rows, "all": sum(rows.values(), Counter[str]())}.items():
        table.append(f"| {module} | {counts.total()} | {' | '.join(str(counts[name]) for name in OUTCOMES)} |")
    return "\n\n".join([*parts, "\n".join(table)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--per-module", type=int, help="draw so many mutants of each module, instead of those written down")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants")
    parser.add_argument("--write", action="store_true", help="write those that are drawn down, and try none")
    parser.add_argument("--modules", nargs="+", choices=list(MODULES), default=list(MODULES), metavar="MODULE")
    parser.add_argument("--limit", type=int, default=90, help="seconds of processor time for the tests of a mutant")
    parser.add_argument("--work", type=Path, help="where the copy is; kept, with what was compiled, for the next time")
    parser.add_argument("--results", type=Path, help="a file of one JSON line for each mutant, from which the run is resumed")
    arguments = parser.parse_args()
    written = patches.read(WRITTEN)
    if arguments.per_module is None:
        planted = [patch for patch in written if patch.module in arguments.modules]
    else:
        planted = [patch for module in arguments.modules for patch in drawn(ROOT, module, arguments.per_module, arguments.seed)]
    if arguments.write:
        new = [patch for patch in planted if patch not in written]
        with WRITTEN.open("a", encoding="utf-8") as file:
            file.write("".join(f"\n# seed {arguments.seed}\n{patches.in_toml(patch)}" for patch in new))
        print(f"{len(new)} mutants more in {WRITTEN.name}, {len(planted) - len(new)} were there")
        return
    with tempfile.TemporaryDirectory() as temporary:
        copy = Copy(ROOT, (arguments.work or Path(temporary)).resolve(), arguments.limit)
        outcomes = play(copy, planted, arguments.results or copy.work / "results.jsonl")
    tried = [patch for patch in planted if patch.key in outcomes]
    print(f"\n{report(tried, outcomes)}")
    if len(tried) < len(planted):
        sys.exit(f"{len(planted) - len(tried)} of {len(planted)} were not tried: their tests do not pass without a mutant")


if __name__ == "__main__":
    main()
