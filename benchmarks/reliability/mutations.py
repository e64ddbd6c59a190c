"""Mutations: small faults planted one at a time in a copy of the tree, and whether the tests that aim at them notice.

    python benchmarks/reliability/mutations.py --seed 0 --per-module 14

Mutants are chosen at random: first an operator, then a place for it. Each is applied to a copy of the tree and tried by the
tests of its file. The report tells by module how many were planted and caught, and shows the difference of each that was not.
One that no test could catch is entered in ``equivalent.toml``, with the reason.

*Compiled kernels.* Their cache is named by a hash of all sources, so that every mutant would compile everything again.
Therefore each is given what was compiled before of those kernels that neither are nor call, however indirectly, a function it
changes; the run without mutants records which call which. The copy stays in one place, for numba's index knows a file by path,
time and size, and every mutant has a time of its own.

As a plugin of pytest (``-p mutations``) this file records the calls, and fills the cache of a mutant.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
PACKAGES = ("envs", "agents", "runner", "offline")
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "results", "*.egg-info", "__pycache__")


class Aim(NamedTuple):
    """Files, and the tests that aim at them, as arguments of pytest."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


def _aim(files: str, tests: str, key: str = "") -> Aim:
    """Of names, those of files without their ends, those of tests below ``tests/``; ``key`` as for pytest's ``-k``, against the
    slowest."""
    return Aim(
        tuple(f"{file}.py" for file in files.split()),
        (*(f"tests/{file}.py" for file in tests.split()), "-m", "not slow", *(["-k", key] if key else [])),
    )


OF_AGENTS = "agents/test_agent_mechanisms agents/test_agents"
MODULES: dict[str, list[Aim]] = {
    "click models": [
        _aim(
            "envs/cascade envs/dependent_click envs/position_based envs/user_browsing envs/dynamic_bayesian envs/click_chain "
            "envs/trust_bias envs/click_model envs/scan",
            "envs/test_user_browsing_optimum envs/test_scan envs/test_click_models",
        ),
        _aim("envs/schedule envs/piecewise_stationary", "envs/test_nonstationary_envs envs/test_instances_as_arguments"),
    ],
    "session loop": [
        _aim(
            "runner/loop runner/run envs/wrappers/regret",
            "envs/test_meter runner/test_engines",
            "TopRank or not same_numbers and not registered_environments and not smallest and not memory",
        ),
        _aim("envs/session", "envs/test_vector_envs"),
    ],
    "sweep and results": [
        _aim(
            "runner/sweep runner/results",
            "runner/test_results_identity runner/test_results runner/test_sweep",
            "not killed and not 0_1_grows and not processes and not dask and not memory and not hears and not interrupt",
        )
    ],
    "metrics": [
        _aim("runner/metrics", "runner/test_metrics_tolerance runner/test_metrics"),
        _aim(
            "runner/statistics",
            "runner/test_pairs runner/test_report runner/test_results",
            "pairs or rarely or groups or one_run or never_vary or places or its_own_runs or compared",
        ),
    ],
    "estimation": [
        _aim(
            "offline/estimation/browsing offline/estimation/cascading offline/estimation/click_chain "
            "offline/estimation/estimator",
            "offline/test_scores_by_label offline/test_offline",
        )
    ],
    "evaluation": [
        _aim(
            "offline/evaluation offline/comparison",
            "offline/test_evaluation_diagnostics offline/test_single_displays offline/test_evaluation",
        )
    ],
    "study rules": [
        _aim(
            "runner/studies/study runner/studies/zoghi2017 runner/studies/li2019_bubble runner/studies/li2019_cascade "
            "runner/studies/lagree2016 runner/studies/he2020 runner/studies/run",
            "runner/test_study_rules runner/test_studies",
        )
    ],
    "agents": [
        _aim("agents/kernels", "agents/test_agent_mechanisms"),
        _aim("agents/kl_ucb", OF_AGENTS, "klucb or kl_"),
        _aim("agents/cascade", OF_AGENTS, "cascade or klucb or ucb1 or first or unseen"),
        _aim("agents/baselines", OF_AGENTS, "greedy or fixed or oracle or random"),
        _aim("agents/batch_rank", OF_AGENTS, "BatchRank"),
        _aim("agents/top_rank", OF_AGENTS, "TopRank"),
        _aim("agents/pie", "agents/test_pie_dcm_ts"),
        _aim("agents/bubble_rank", "agents/test_bubble_rank"),
        _aim("agents/cascade_nonstationary", "agents/test_cascade_nonstationary"),
        _aim("agents/linear", "agents/test_linear_agents"),
        _aim("agents/position_based agents/position_based_ts", "agents/test_position_based_agents"),
        _aim("agents/ranked_bandits", "agents/test_ranked_bandits"),
    ],
}


# ---------------------------------------------------------------------------------------------------------------- operators


class Mutant(NamedTuple):
    """A part of a file, in bytes, and what stands there instead."""

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
DRAWING = re.compile("_draw.*|_per_session|_bubble|_as_printed|_table")
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

    def is_other(mutant: Mutant) -> bool:
        try:
            return ast.dump(ast.parse(applied(source, mutant))) != ast.dump(tree)
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


def chosen(root: Path, aims: list[Aim], count: int, rng: random.Random) -> list[Mutant]:
    """Some mutants of a module: an operator at random, then one of its places."""
    places: dict[str, list[Mutant]] = {}
    for mutant in (mutant for aim in aims for file in aim.files for mutant in mutants(root, file)):
        places.setdefault(mutant.operator, []).append(mutant)
    result: list[Mutant] = []
    while places and len(result) < count:
        operator = rng.choice(sorted(places))
        result.append(places[operator].pop(rng.randrange(len(places[operator]))))
        if not places[operator]:
            del places[operator]
    return result


# ----------------------------------------------------------------------------------------------------- the copy and its runs


class Copy:
    """A copy of the tree in a folder, where tests import the package from.

    Args:
        work: the folder; a copy that is there is replaced, what it has compiled is kept.
        limit: seconds that tests may take.
    """

    def __init__(self, work: Path, limit: float) -> None:
        self.work, self.limit, self.tree = work, limit, work / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(ROOT, self.tree, ignore=NOT_COPIED)
        links = self.tree / "links" / "clickgym"  # looks installed, and stands before the editable installation
        links.mkdir(parents=True)
        for path in [*(self.tree / "src" / "clickgym").iterdir(), *(self.tree / name for name in PACKAGES)]:
            (links / path.name).symlink_to(path)
        self.calls = work / "calls.json"
        self.n_changes = 0

    def run(self, tests: tuple[str, ...], cache: Path, **settings: str) -> str:
        """Run tests; what they print is in ``last.log``.

        Returns:
            ``"passed"``, ``"failed"`` or ``"too long"``.
        """
        paths = (self.tree / "links", self.tree / "benchmarks" / "reliability")
        own = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "XDG_CACHE_HOME": str(cache),
            "MPLCONFIGDIR": str(self.work / "mpl"),
        }
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutations"]
        with (self.work / "last.log").open("w") as log:
            process = subprocess.Popen(
                [*words, f"--basetemp={self.work / 'pytest'}", *tests], cwd=self.tree, env=os.environ | own | settings,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                return "failed" if process.wait(self.limit) else "passed"
            except subprocess.TimeoutExpired:
                return "too long"
            finally:  # also of workers that tests have left
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def try_without(self, tests: tuple[str, ...]) -> float:
        """Run tests without a mutant, which compiles kernels and records their calls; the seconds that it took."""
        before = time.monotonic()
        if self.run(tests, self.work / "cache", MUTATIONS_CALLS=str(self.calls)) != "passed":
            sys.exit(f"without a mutant, pytest {' '.join(tests)}:\n{(self.work / 'last.log').read_text()[-3000:]}")
        return time.monotonic() - before

    def try_with(self, mutant: Mutant, tests: tuple[str, ...]) -> str:
        """Run tests with a mutant in the copy."""
        file = self.tree / mutant.file
        source, before = file.read_bytes(), file.stat()
        self.n_changes += 1
        (self.work / "kept.json").write_text(json.dumps(self._unchanged(source, mutant)))
        try:
            file.write_bytes(applied(source, mutant))
            os.utime(file, (0, 1_000_000_000 + self.n_changes))
            return self.run(tests, self.work / "mutant", MUTATIONS_KEPT=str(self.work / "kept.json"))
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            shutil.rmtree(self.work / "mutant", ignore_errors=True)

    def _unchanged(self, source: bytes, mutant: Mutant) -> list[str]:
        """The compiled files that a mutant does not concern; none if it changes more than the bodies of functions."""
        first, last = (source[:place].count(b"\n") + 1 for place in (mutant.start, mutant.stop))
        functions = [
            node for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.lineno <= first <= last <= node.end_lineno  # type: ignore[operator]
        ]  # fmt: skip
        if not functions or mutant.file == "envs/kernels.py":
            return []
        changed = {(mutant.file, node.name) for node in functions}
        return [
            str(file)
            for base, called in json.loads(self.calls.read_text()).items()
            if not changed & {tuple(function) for function in called}
            for file in Path(base).parent.glob(f"{Path(base).name}.*")
        ]


# ------------------------------------------------------------------------------------------------------- as pytest's plugin


def pytest_configure() -> None:
    """Fill the cache of a mutant, once the package is surely that of the copy."""
    import clickgym
    from clickgym.core.kernels import cache_folder

    assert Path(clickgym.__file__).is_relative_to(Path.cwd()), clickgym.__file__
    if "MUTATIONS_KEPT" in os.environ:
        for file in map(Path, json.loads(Path(os.environ["MUTATIONS_KEPT"]).read_text())):
            folder = cache_folder() / file.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            os.link(file, folder / file.name)  # numba replaces files and never writes into one


def pytest_sessionfinish() -> None:
    """Add to the record which functions each compiled one calls, directly or not."""
    from numba.core.dispatcher import Dispatcher

    from clickgym.core.kernels import _called

    if "MUTATIONS_CALLS" not in os.environ:
        return

    def reached(function: Any) -> set[tuple[str, str]]:
        code = function.__code__
        file = Path(code.co_filename).resolve()
        own = {(str(file.relative_to(Path.cwd())), code.co_name)} if file.is_relative_to(Path.cwd()) else set()
        return own.union(*(reached(called.py_func) for called in _called(function)))

    record = Path(os.environ["MUTATIONS_CALLS"])
    calls = json.loads(record.read_text()) if record.exists() else {}
    for each in gc.get_objects():
        if issubclass(type(each), Dispatcher) and hasattr(each._cache, "_impl"):  # weak proxies have no class to ask
            base = Path(each._cache.cache_path) / each._cache._impl.filename_base
            calls[str(base)] = sorted(reached(each.py_func))
    record.write_text(json.dumps(calls))


# ---------------------------------------------------------------------------------------------------------------- the report


def difference(root: Path, mutant: Mutant) -> tuple[str, list[str], list[str]]:
    """What a mutant changes, as a patch, and the lines that it takes and gives."""
    source = (root / mutant.file).read_bytes()
    before, after = (text.decode().splitlines() for text in (source, applied(source, mutant)))
    lines = list(difflib.unified_diff(before, after, mutant.file, mutant.file, n=1, lineterm=""))
    old, new = ([line[1:].strip() for line in lines[2:] if line.startswith(sign)] for sign in "-+")
    return "\n".join(lines), old, new


def is_equivalent(root: Path, mutant: Mutant) -> bool:
    """Whether it was judged that no test could tell."""
    _, old, new = difference(root, mutant)
    found = (mutant.file, " ".join(old), " ".join(new))
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return found in [(each["file"], each["line"], each["mutation"]) for each in listed]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants")
    parser.add_argument("--per-module", type=int, default=14, help="how many mutants of each module")
    parser.add_argument("--modules", nargs="+", choices=list(MODULES), default=list(MODULES), metavar="MODULE")
    parser.add_argument("--limit", type=float, default=300, help="seconds that the tests of a mutant may take")
    parser.add_argument("--work", type=Path, help="where the copy is; kept, with what was compiled, for the next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Copy((arguments.work or Path(temporary)).resolve(), arguments.limit)
        rows = {}
        for module in arguments.modules:
            planted = chosen(copy.tree, MODULES[module], arguments.per_module, random.Random(f"{arguments.seed} {module}"))
            aims = {
                file: aim for aim in MODULES[module] for file in aim.files if any(mutant.file == file for mutant in planted)
            }
            for aim in dict.fromkeys(aims.values()):
                print(f"{module}: {', '.join(aim.files)}: {copy.try_without(aim.tests):.0f} s without a mutant", flush=True)
            outcomes: Counter[str] = Counter()
            for mutant in planted:
                aim = aims[mutant.file]
                before = time.monotonic()
                outcome = {"passed": "survived", "failed": "caught"}.get(found := copy.try_with(mutant, aim.tests), found)
                if outcome == "survived" and is_equivalent(copy.tree, mutant):
                    outcome = "equivalent"
                outcomes[outcome] += 1
                patch, old, new = difference(copy.tree, mutant)
                print(f"{outcome} in {time.monotonic() - before:.0f} s ({mutant.operator}) {mutant.file}: {' '.join(old)}  ->  "
                      f"{' '.join(new)}", flush=True)  # fmt: skip
                if outcome == "survived":
                    print(patch, flush=True)
            rows[module] = outcomes
    names = ("caught", "too long", "equivalent", "survived")
    total = sum(rows.values(), Counter[str]())
    print(f"\n| module | planted | {' | '.join(names)} |\n|---|{'--:|' * (1 + len(names))}")
    for module, outcomes in {**rows, "all": total}.items():
        print(f"| {module} | {outcomes.total()} | {' | '.join(str(outcomes[name]) for name in names)} |")


if __name__ == "__main__":
    main()
