"""Tests of the structure of the library: imports point in one direction and form no circle, and
public names have docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("core", "envs", "measure", "agents", "runner", "logs", "bench", "")
"""The folders of the library. Each imports only from those to its left; the last entry is the
package itself.
"""
SHARED_ENVS = ("env_properties", "click_vector_env", "simulation.scan", "spaces", "wrappers")
"""The modules of environments that agents may import."""
BLAS = {"dot", "vdot", "inner", "matmul", "matvec", "vecmat", "vecdot", "einsum", "tensordot"}
BLAS |= {"linalg", "multi_dot", "convolve", "correlate", "cov", "corrcoef"}
"""Names in NumPy and SciPy whose sums depend on the processor, because it determines their
order.
"""


def modules():
    """The modules of the library by name, with their files."""
    source = ROOT / "src"
    for file in (source / "clickgym").rglob("*.py"):
        path = file.relative_to(source).with_suffix("")
        yield ".".join(path.parts).removesuffix(".__init__"), file


FILES = dict(modules())
FOLDERS = {module for module, file in FILES.items() if file.name == "__init__.py"}


@cache
def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def imported(module, file):
    """The modules that a module imports, including imports inside functions, but not those only for
    annotations.
    """
    tree = tree_of(file)
    guards = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    for_annotations = {id(node) for guard in guards for node in ast.walk(guard)}
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in for_annotations:
            stem = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                target = f"{stem}.{alias.name}"
                yield target if target in FILES else stem


@cache
def import_graph():
    """The modules that each module imports."""
    return {module: {*imported(module, file)} for module, file in FILES.items()}


def layer_of(module):
    layer = module.split(".")[1] if "." in module else ""
    return layer if layer in LAYERS else ""


def family_of(module):
    """The folder of a module in ``agents``, or the empty string if it has none or is shared."""
    folder = ".".join(module.split(".")[:3])
    is_family = folder.startswith("clickgym.agents.") and folder in FOLDERS
    return folder if is_family and folder != "clickgym.agents.common" else ""


def test_imports_point_one_way():
    """The folders of the library import only from those to their left, and a folder of agents
    imports from no other folder of agents except `common`.
    """
    for module, targets in import_graph().items():
        for target in targets:
            right, left = layer_of(module), layer_of(target)
            assert LAYERS.index(left) <= LAYERS.index(right), f"{module} imports {target}"
            if (right, left) == ("agents", "envs"):
                shared = target.removeprefix("clickgym.envs.").startswith(SHARED_ENVS)
                assert shared, f"{module} imports {target}"
            if family_of(module):
                assert family_of(target) in ("", family_of(module)), f"{module} imports {target}"


def test_imports_form_no_circle():
    """In each folder, the modules and folders do not import each other in a circle."""
    for folder in FOLDERS:
        graph = {}
        for module, targets in import_graph().items():
            part, parts = part_of(folder, module), {part_of(folder, other) for other in targets}
            if part is not None:
                graph.setdefault(part, set()).update(parts - {part, None})
        TopologicalSorter(graph).prepare()


def part_of(folder, module):
    """The name of the part of a folder, a module or a folder itself, that contains ``module``, or
    None if the folder does not contain it.
    """
    if module != folder and not module.startswith(f"{folder}."):
        return None
    return module.removeprefix(folder).lstrip(".").partition(".")[0]


def sums_without_order(file):
    """The lines of a file with matrix products or similar operations, and the operation in each
    line.
    """
    for node in ast.walk(tree_of(file)):
        names = set()
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.Attribute):
            names = {node.attr}
        elif isinstance(node, ast.Import):
            names = {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = {*str(node.module).split("."), *(alias.name for alias in node.names)}
        for name in names & BLAS:
            yield node.lineno, name


def test_sums_have_an_order():
    """Lists, clicks and rewards do not depend on the processor. torch is exempt: it hides products
    in its layers, and the digits of its learners are not guaranteed.
    """
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}; see clickgym.core.sums"
        for module, file in FILES.items()
        if layer_of(module) in ("envs", "agents")
        for line, name in sums_without_order(file)
    ]
    assert not found, "\n".join(found)


def test_functions_have_types():
    """All functions except kernels have types. mypy cannot tell kernels from functions whose types
    were forgotten.
    """
    for module, file in FILES.items():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef) and not is_kernel(node):
                arguments = [argument for argument in ast.walk(node.args) if is_untyped(argument)]
                assert not arguments, f"{module}, line {node.lineno}: {node.name}"
                assert node.returns is not None, f"{module}, line {node.lineno}: {node.name}"


def is_kernel(node):
    return any(ast.unparse(decorator) in ("kernel", "entry") for decorator in node.decorator_list)


def is_untyped(node):
    is_argument = isinstance(node, ast.arg) and node.arg not in ("self", "cls")
    return is_argument and node.annotation is None


PUBLIC_MODULES = ("", ".envs", ".agents", ".runner", ".logs")


@pytest.mark.recipe
@pytest.mark.parametrize("layer", PUBLIC_MODULES)
def test_public_names_have_docstrings_with_every_parameter_and_an_example(layer):
    """A class needs its own docstring, not one from its base class or from `dataclass`. The fields
    of named tuples are documented elsewhere.
    """
    module, missing = import_module(f"clickgym{layer}"), []
    for name in module.__all__:
        thing = getattr(module, name)
        own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
        text = inspect.cleandoc(own or "") if callable(thing) else "a value"
        missing += [name] * (not text or text.startswith(f"{name}("))
        missing += [f"{name}: an example"] * (callable(thing) and ">>>" not in text)
        sections = re.findall(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
        if "Args:\n" in text:
            lines = re.findall(r"^    ([\w*, ]+):", "".join(sections), re.M)
            named = {word.strip("* ") for line in lines for word in line.split(",")}
            parameters = inspect.signature(thing).parameters
            missing += [f"{name}: {word}" for word in parameters if word not in named]
    assert not missing, "\n".join(missing)


def test_make_quick_selects_tests_that_exist():
    missing = []
    for line in (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").split():
        file, _, test = line.partition("::")
        missing += [line] * (
            f"def {test.partition('[')[0]}" not in (ROOT / file).read_text("utf-8")
        )
    assert not missing, "\n".join(missing)
