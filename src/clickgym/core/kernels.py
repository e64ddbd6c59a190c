"""Compilation of the inner functions: one decorator, one disk cache, and how templates become compiled functions.

A *kernel* is a small function that numba compiles: the inner part of a click model, an agent or a metric. A *template* is
a function written once against names that it leaves open (``sample``, ``rank``, ...); `specialise` binds those names to
the kernels of one click model, or of one model-agent pair, and compiles the result. That is how the scalar
environment, the vector environment and the runner's loop share one definition of a session.

The disk cache. numba does not recompile a cached caller when a kernel that it calls in another file has changed. Each compiled
function is therefore one file, named by a hash of all that its machine code follows from: the code of the kernels that it
reaches, through any number of calls, with the constants that they read; the types of its arguments, with the fields of named
tuples; numba, NumPy, Python and the processor. Comments, docstrings, line numbers and the places of files are not part of it,
so only an edit of what a function runs compiles it again, and several states of the sources share one folder. What cannot be
hashed is not cached: kernels from outside the package, those that are called with a type from outside, and those that read a
global of another kind than `_constant` knows. A function of the package that a kernel calls outside of compiled code (``with
objmode()``, as the agents that train a network) is looked up by its name, so edits of it are seen. What is damaged, or may be
written by another user, is compiled again. Delete the folder (`cache_folder()` names it) at any time: it only costs compiling
again; files go when nobody has used them for `MAX_AGE` days.

Two functions of one kernel. What Python calls is an entry; kernels that call the same kernel compile their own copy of it into
themselves, from a part that has no entry and no machine code (`_Entry`, `_Part`). Most kernels are only ever parts.

What is relied upon of numba beyond its documented interface: that a compiled function asks ``_cache`` for machine code and
hands it what it has compiled (`_DiskCache`), how a result becomes bytes (``_reduce`` and ``_rebuild``), and that machine code
runs where numba's runtime is started and its compiler is not loaded; that it compiles by its ``compile``, and that an error
which is not numba's own passes through the compilation of callers (`_Kernel`); that ``_numba_type_`` says what stands for it
in other compiled functions, and that ``typeof_pyval`` is asked for the type of a generator (`_Entry`); what a library of code
does when it is complete (`_Part`); and that a result keeps its statements with their types (`_truncation`).
"""

from __future__ import annotations

import builtins
import dis
import gc
import hashlib
import linecache
import os
import pickle
import platform
import re
import sys
import sysconfig
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import parse_bitcode
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.dispatcher import Dispatcher
from numba.core.errors import ForceLiteralArg
from numba.core.ir import Assign, Expr, SetItem, StaticSetItem
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from .checks import short
from .files import write_whole

njit: Any = numba.njit
config: Any = numba.config

MAX_AGE = 90
"""Days after which a compiled function that nobody uses is removed."""
DAY = 86400
"""Seconds."""
ROOMS = ("core", "envs", "agents", "runner")
"""The parts of the package that may hold kernels."""
LIBRARIES = ("builtins", "math", "numba", "numpy")
"""Those whose functions numba knows."""

# Kernels allocate nothing, so no reference is counted; and they are small, so a caller gets them inlined.
OPTIONS = {"nogil": True, "_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}

WHOLE = (numba.types.Integer, numba.types.Boolean)
"""What an array holds that cuts floats."""

ALLOCATES = ("NRT required but not enabled", "Only accept returning of array passed into the function as argument")
"""How numba says that a function without reference counts makes something."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; the message names the kernel and the line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message  # numba writes into the arguments of what passes through it


class SessionError(RuntimeError):
    """An error while sessions were played; the message names the agent or model, the environment, the step and the cause.

    Compiled code raises what Python would, with three exceptions: an index out of range is not noticed, integers overflow in
    silence, and functions of `math` return nan or an infinity where they have no value.
    """


class WorkerError(RuntimeError):
    """A worker process was killed, perhaps because memory ran out; finished runs are kept."""


def cause(error: BaseException) -> str:
    """A short description of an error: its kind, its message, and the line in the user's own files, if known.

    Compiled code tells where only what a kernel raises by a statement of its own; not a division by zero.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _lies_in_package(frame.filename)]
    # What fails in a library was called by the user, who looks for the call.
    where = next((frame for frame in reversed(frames) if not _lies_in_library(frame.filename)), frames[-1] if frames else None)
    line = ""
    if where is not None:
        file = where.filename.removeprefix(f"{Path.cwd()}{os.sep}")
        line = f" ({file}:{where.lineno} in {where.name}: {where.line!r})"
    return f"{type(error).__name__}{': ' if str(error) else ''}{' '.join(str(error).split())}{line}"


def only_own_frames(error: Exception) -> None:
    """Leave of an error's traceback what lies outside the package, if there is any: what its user can look at and put right."""
    steps, kept = [], None
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    for step in reversed(steps):
        if not _lies_in_package(step.tb_frame.f_code.co_filename):
            kept = TracebackType(kept, step.tb_frame, step.tb_lasti, step.tb_lineno)
    error.__traceback__ = kept or error.__traceback__


@cache
def _package_sources() -> frozenset[Path]:
    """Every Python file of the package that may hold kernels, whether installed or mapped from a checkout."""
    package = __name__.partition(".")[0]
    specs = filter(None, (find_spec(f"{package}.{name}") for name in ROOMS))
    folders = [Path(folder).resolve() for spec in specs for folder in spec.submodule_search_locations or ()]
    return frozenset(file for folder in folders for file in folder.rglob("*.py"))


def cache_folder() -> Path:
    """The folder of compiled kernels, of all states of the sources and all versions of numba, NumPy and Python.

    Returns:
        A path below the user's cache folder, or that of `keep_kernels`; it need not exist yet.
    """
    return _own.get("folder") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clickgym" / "kernels"


def keep_kernels(folder: Path, sources: Path | None = None) -> None:
    """Keep the kernels that this process compiles in a folder of its own, and those of some foreign code, too.

    Args:
        folder: takes the place of the user's cache folder.
        sources: the folder of code that is not of the package.
    """
    _own.update({"folder": folder} | ({} if sources is None else {"sources": sources}))


_own: dict[str, Path] = {}
"""What `keep_kernels` was given."""


def _may_be_kept(file: str | None) -> bool:
    """Whether kernels in a file are cached: those of the package, and of the sources that `keep_kernels` names."""
    sources = _own.get("sources")
    return _lies_in_package(file) or (sources is not None and file is not None and Path(file).resolve().is_relative_to(sources))


_warnings: list[str] = []
"""What was told of a problem of the cache."""


def _warn_of(problem: str) -> None:
    remedy = "each process compiles them again unless XDG_CACHE_HOME names a folder that you alone may write"
    _warn_once(f"compiled kernels are not kept on disk: {problem}; {remedy}")


def _warn_once(message: str) -> None:
    """A cache that fails costs time, so the first of its problems is enough to say."""
    if _warnings:
        return
    _warnings.append(message)
    frame, level = sys._getframe(1), 2
    while frame.f_back and (_lies_in_package(frame.f_code.co_filename) or _lies_in_library(frame.f_code.co_filename)):
        frame, level = frame.f_back, level + 1  # whoever called the package, and not numba
    warnings.warn(message, stacklevel=level)


class _NoKeyError(Exception):
    """What a key of the cache cannot be made of; the message names it."""


@cache
def _versions() -> str:
    """What machine code depends on besides the sources and the processor."""
    python = platform.python_implementation(), platform.python_version(), platform.machine()
    libraries = ["svml"] if config.USING_SVML else []  # functions that a process without it does not have
    return repr((python, numba.__version__, llvmlite.__version__, np.__version__, config.OPT, config.BOUNDSCHECK, *libraries))


def _key(compiled: Dispatcher) -> str:
    """A hash of the sources that a compiled function is made of: its own, and those of all kernels that it reaches.

    Each is hashed once, with the numbers of those that it calls in the order in which they are met; recursion is no circle.

    Raises:
        _NoKeyError: one of them, or a constant, is of an unknown kind or from outside the package.
    """
    digest = hashlib.sha256(_versions().encode())
    numbers, waiting = {compiled: 0}, [compiled]
    for each in waiting:
        text, called = _source(each)
        for callee in called:
            if callee not in numbers:
                numbers[callee] = len(numbers)
                waiting.append(callee)
        digest.update(f"{text} calls {[numbers[callee] for callee in called]}\n".encode())
    return digest.hexdigest()


@cache
def _source(compiled: Any) -> tuple[str, list[Dispatcher]]:
    """What a compiled function does by itself, with the constants that it reads; and the kernels that it names, in order."""
    function, code = compiled.py_func, compiled.py_func.__code__
    if not _may_be_kept(code.co_filename):
        raise _NoKeyError(f"{function.__qualname__} of {code.co_filename}")
    free = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    scope = vars(builtins) | function.__globals__ | free
    constants, called = [], []
    for name in sorted({*_global_names(code), *free}):
        value = scope.get(name)
        if isinstance(value, Dispatcher):
            called.append(value)
            constants.append(f"{name} is called")
        else:
            constants.append(f"{name}={_constant(value)}")
    parts = function.__module__, function.__qualname__, sorted(compiled.targetoptions.items()), _constant(function.__defaults__)
    return repr((parts, _without_words(code, function.__doc__), constants)), called


def _global_names(code: types.CodeType) -> set[str]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(const) for const in code.co_consts if isinstance(const, types.CodeType)))


def _without_words(code: types.CodeType, docstring: str | None = None) -> tuple[Any, ...]:
    """What a function does, whatever its comments, its docstring and its layout are."""
    first, *others = code.co_consts or (None,)
    constants = [None if isinstance(first, str) and first == docstring else first, *others]
    texts = [_without_words(each) if isinstance(each, types.CodeType) else repr(each) for each in constants]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, code.co_exceptiontable, names, counts, texts


def _constant(value: Any) -> str:
    """A global that a kernel reads and numba compiles into it, as text that differs where it does."""
    if type(value) in (types.NoneType, bool, int, float, complex, str, bytes):
        return repr(value)
    if isinstance(value, tuple):
        kind = "tuple" if type(value) is tuple else _record(type(value))
        return f"{kind}({', '.join(map(_constant, value))})"
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
    if isinstance(value, np.dtype):
        return repr(value.descr)
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return _record(value)
    return _library_name(value)


def _library_name(value: Any) -> str:
    """The name of a module or function that numba knows; or of a function of the package, which no compiled code calls.

    A kernel may call it where it leaves compiled code (``with objmode()``): there it is looked up by its name.
    """
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    if value is numba.objmode or (module.partition(".")[0] in LIBRARIES and hasattr(value, "__name__")):
        return f"{module}.{getattr(value, '__name__', 'objmode')}"
    if isinstance(value, types.FunctionType):
        return _own_name(value)
    raise _NoKeyError(repr(value))


def _own_name(value: Any) -> str:
    """The name by which a module of the package has a class or function."""
    module, name = sys.modules.get(value.__module__), f"{value.__module__}.{value.__qualname__}"
    if getattr(module, value.__qualname__, None) is not value or not _may_be_kept(getattr(module, "__file__", None)):
        raise _NoKeyError(name)
    return name


def _record(cls: Any) -> str:
    """A class of named tuples, with all that numba makes use of: the order of its fields, and their defaults."""
    defaults = [(name, _constant(value)) for name, value in cls._field_defaults.items()]
    return f"{_own_name(cls)}{cls._fields}{defaults}"


def _type(kind: Any) -> str:
    """A type of an argument, as text that differs where it does; numba's own names leave out the fields of named tuples."""
    if isinstance(kind, numba.types.BaseTuple):
        items: Any = kind
        name = _record(items.instance_class) if isinstance(kind, numba.types.BaseNamedTuple) else "tuple"
        return f"{name}({', '.join(map(_type, items))})"
    if isinstance(kind, numba.types.Array):
        return f"{kind.name} of {_type(kind.dtype)}"
    if kind.key != kind.name:
        raise _NoKeyError(kind.name)
    return f"{type(kind).__name__} {kind.name}"


class _DiskCache(NullCache):
    """What numba asks for the machine code of one function; no failure is anything but a compilation.

    A file is a checksum, for damaged machine code would end the process, and the code. The checksum covers the file's name,
    so that the code of another function is not taken for that of this one. It does not show who wrote the file, whose code runs
    here: nothing is read that another user may have written (`check_private`).
    """

    def __init__(self, compiled: Dispatcher, kind: str) -> None:
        self._compiled, self._kind = compiled, kind

    @property
    def cache_path(self) -> str | None:
        return str(cache_folder()) if self._function_key else None

    @cached_property
    def _function_key(self) -> str | None:
        # Made when it is first needed: a kernel may name another that is defined below it.
        try:
            return _key(self._compiled)
        except _NoKeyError:
            return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        file = self._file(sig, target_context)
        if file is None:
            return None
        try:
            content = read_private(file)
            checksum, payload = content[:32], content[32:]
            if _checksum(file, payload) != checksum:
                raise ValueError("it is damaged")
            rtsys.initialize(target_context)  # and not the compiler, which takes longer to load than most kernels
            rebuild = _rebuilt_part if self._kind == "part" else CompileResult._rebuild
            result = rebuild(target_context, *pickle.loads(payload))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:
            _warn_of(f"cannot read {file}: {error!r}")
            return None
        with suppress(OSError):  # it may be read-only; whoever fills it sees to the age
            if time.time() - file.stat().st_mtime > DAY:
                file.touch()
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        file = self._file(sig, data.target_context)
        if file is None or data.library.has_dynamic_globals:  # addresses of this process
            return
        try:
            os.makedirs(file.parent, mode=0o700, exist_ok=True)
            check_private(file.parent, file.parent.stat())
            if "folder" not in _own:  # whoever keeps kernels elsewhere sees to the age
                _remove_old_files()
            payload = dumps(data._reduce())
            write_whole(file, _checksum(file, payload) + payload, mode=0o600)
        except Exception as error:
            _warn_of(f"cannot write to {file.parent}: {error}")

    def _file(self, sig: Any, target_context: Any) -> Path | None:
        """Its file for arguments of these types, and for this processor; None if it must not be kept."""
        try:
            arguments = [_type(kind) for kind in getattr(sig, "args", sig)]
        except _NoKeyError:
            return None
        if self._function_key is None:
            return None
        key = repr((self._function_key, self._kind, arguments, target_context.codegen().magic_tuple()))
        name = re.sub(r"\W+", "-", self._compiled.py_func.__name__)
        return cache_folder() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:40]}.nbc"


def read_private(file: Path) -> bytes:
    """The content of a file of compiled kernels.

    Raises:
        OSError: it cannot be read, or others than the user and root may write it or its folder.
    """
    check_private(file.parent, file.parent.stat())
    with file.open("rb") as stream:  # what is looked at is what is read, whatever takes its name in between
        check_private(file, os.fstat(stream.fileno()))
        return stream.read()


def check_private(path: Path, status: os.stat_result) -> None:
    """Refuse what others than the user and root may write.

    Not on Windows, whose caches lie in folders of one user.

    Raises:
        PermissionError: they may.
    """
    if not hasattr(os, "getuid"):
        return
    if status.st_uid not in (0, os.getuid()):
        raise PermissionError(f"{path} belongs to another user")
    if status.st_mode & 0o022:
        raise PermissionError(f"other users may write to {path}; expected the mode 700 of a folder, 600 of a file")


def _checksum(file: Path, payload: bytes) -> bytes:
    return hashlib.sha256(file.name.encode() + payload).digest()


def _remove_old_files() -> None:
    """By age only, and once a day: whoever changes between two states of the sources comes back to a filled cache."""
    stamp = cache_folder() / "last-cleanup"
    if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
        return
    stamp.touch()
    for path in cache_folder().iterdir():
        with suppress(OSError):  # another process may be removing it, too
            if time.time() - path.stat().st_mtime > MAX_AGE * DAY:
                path.unlink()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba on its first call, without the GIL; kernels of the package are cached on disk.

    A kernel allocates nothing: its working memory is an argument. Reference counts are therefore switched off (they took
    most of the time of an agent's step), and the kernels it calls are compiled into it.

    Args:
        function: a function in numba's subset of Python that makes no array, list or string.

    Returns:
        The compiled function, called like the original.

    Example:
        >>> import numpy as np
        >>> @kernel
        ... def total(values):
        ...     result = 0.0
        ...     for value in values:
        ...         result += value
        ...     return result
        >>> total(np.array([1.0, 2.0]))
        3.0
    """
    if not isinstance(function, types.FunctionType | Dispatcher):
        raise KernelError(f"kernel got {short(function)}; expected a function")
    return _compiled(function)


inner = kernel
"""`kernel`, for those that only kernels call; the two differ no longer."""


def static_kernels(cls: type, names: Iterable[str]) -> None:
    """Make the kernels in the body of a class static, so that access through an instance does not bind them.

    Plain functions are compiled by `kernel`: there is nothing else that they could be meant for.

    Args:
        cls: the class.
        names: of the attributes that are kernels; those that the body does not have, or that are None, are left alone.

    Raises:
        KernelError: on what is not a function.
    """
    for name in names:
        member = vars(cls).get(name)
        member = member.__func__ if isinstance(member, staticmethod) else member
        if isinstance(member, types.FunctionType):
            member = kernel(member)
        elif member is not None and not isinstance(member, Dispatcher):
            raise KernelError(f"{cls.__module__}:{cls.__qualname__}: {name} is {member!r}; expected a kernel")
        if member is not None:
            setattr(cls, name, staticmethod(member))


def _lies_in_package(file: str | None) -> bool:
    return file is not None and Path(file).resolve() in _package_sources()


def _lies_in_library(file: str) -> bool:
    """Whether a file comes with Python or is installed: none that who runs it has just written."""
    path = Path(file)
    return path.is_relative_to(sysconfig.get_path("stdlib")) or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


@cache
def _is_foreign(compiled: Any) -> bool:
    """Whether its source, or that of a kernel which it calls, lies outside the package.

    The code itself tells, so what was sent here by value is known for what it is.
    """
    plain = compiled.py_func
    return not _lies_in_package(plain.__code__.co_filename) or any(map(_is_foreign, _called(plain)))


def _called(plain: types.FunctionType) -> list[Any]:
    """The compiled functions among the globals that a function names."""
    found = [plain.__globals__.get(name) for name in plain.__code__.co_names]
    return [each for each in found if isinstance(each, Dispatcher)]


def _reached(compiled: Any) -> list[Any]:
    """The compiled functions that one calls, through any number of calls."""
    reached = _called(compiled.py_func)
    for each in reached:
        reached += [called for called in _called(each.py_func) if called not in reached]
    return reached


def _compiled(function: Callable[..., Any], options: dict[str, bool] = OPTIONS) -> Callable[..., Any]:
    if any(function.__globals__.get(name) is numba.objmode for name in function.__code__.co_names):
        options = {name: on for name, on in options.items() if name != "nogil"}  # it takes the lock again by itself
    result: Any = njit(**options)(function)
    if isinstance(result, Dispatcher):  # not where compilation is switched off
        result.__class__ = _Entry
        result._cache = _DiskCache(result, "entry")  # type: ignore[attr-defined]
    return result


class _Kernel(CPUDispatcher):
    """A compiled function that says what is wrong with it in one line.

    Numba gives an account of all that it has tried. The innermost kernel raises `KernelError` instead, and as that is no error
    of numba's, the callers pass it on.
    """

    py_func: Any
    _cache: Any

    def compile(self, sig: Any) -> Any:
        try:
            return super().compile(sig)
        except ForceLiteralArg:  # asks for another signature
            raise
        except KernelError as error:
            message = error.message
        except Exception as error:
            message = _explanation(self.py_func, tuple(getattr(sig, "args", sig)), str(error))
        raise KernelError(message)

    def add_overload(self, cres: Any) -> None:
        truncation = _truncation(self.py_func, cres)
        if truncation is not None:  # nor is it there when it is called again
            raise KernelError(truncation)
        super().add_overload(cres)


_GENERATOR = numba.typeof(np.random.default_rng(0))


class _Entry(_Kernel):
    """A kernel as Python calls it. Kernels that name it get its `part`, which Python cannot call.

    What Python does not call is thus never translated to machine code by itself: that takes most of the time.
    """

    @property
    def _numba_type_(self) -> Any:
        return numba.types.Dispatcher(self.part)

    def typeof_pyval(self, val: Any) -> Any:
        """As numba's, which takes longer to find the type of a generator than most kernels to run."""
        return _GENERATOR if type(val) is np.random.Generator else super().typeof_pyval(val)

    @cached_property
    def part(self) -> Dispatcher:
        """What stands for this kernel in others."""
        if self in _reached(self):  # numba looks in the machine code for what calls itself
            return self
        options = self.targetoptions | {"no_cpython_wrapper": True}
        part = _Kernel(self.py_func, targetoptions=options, pipeline_class=_PartCompiler)
        if isinstance(self._cache, _DiskCache):
            part._cache = _DiskCache(self, "part")
        return part

    def compile(self, sig: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()  # numba makes little garbage out of very many objects: going through them takes a tenth of the time
        try:
            entry = super().compile(sig)
        finally:
            if collecting:
                gc.enable()
        for result in self.overloads.values():
            for environment in result._find_referenced_environments():
                result.codegen.set_env(environment.env_name, environment)
        return entry


class _Part(JITCodeLibrary):
    """The code of a kernel that kernels call: they optimise it with their own, and it gets no machine code by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: object) -> None:
        """In the machine code of the callers (`_Entry.compile`)."""

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        return self.name, self._get_module_for_linking().as_bitcode()


class _PartCompiler(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)

    def compile_ir(self, func_ir: Any, *others: Any, **named: Any) -> Any:
        """Of a kernel that leaves compiled code: what is left when its statements in Python are taken out."""
        self.state.library = _Part(self.state.targetctx.codegen(), func_ir.func_id.func_qualname)
        return super().compile_ir(func_ir, *others, **named)


def _rebuilt_part(context: Any, code: tuple[str, bytes], fndesc: Any, environment: Any, *others: Any) -> Any:
    """As `CompileResult._rebuild`."""
    library = _Part(context.codegen(), code[0])
    library._final_module = parse_bitcode(code[1])
    library._finalize_final_module()
    names = "signature", "objectmode", "lifted", "type_annotation", "reload_init", "referenced_envs"
    fields = dict(zip(names, others, strict=True))
    for function in fields["reload_init"]:
        function()
    return compile_result(
        typing_context=context.typing_context, target_context=context, library=library, fndesc=fndesc,
        environment=environment, entry_point=context.get_executable(library, fndesc, environment), **fields,
    )  # fmt: skip


def _truncation(function: types.FunctionType, compiled: Any) -> str | None:
    """The first place where a kernel writes a float into an array of integers, in one line; None if there is none.

    numba cuts such a float to an integer without a word. What comes from the disk was checked before it was stored.
    """
    annotation: Any = getattr(compiled, "type_annotation", None)
    blocks: dict[int, Any] = getattr(annotation, "blocks", None) or {}
    statements = [statement for block in blocks.values() for statement in block.body]
    fields = {each.target.name: each.value.attr for each in filter(_is_field, statements)}
    for each in statements:
        if isinstance(each, SetItem | StaticSetItem):
            array, value = (annotation.typemap[variable.name] for variable in (each.target, each.value))
            if isinstance(value, numba.types.Float) and isinstance(getattr(array, "dtype", None), WHOLE):
                name = fields.get(each.target.name, each.target.unversioned_name)
                rule = f"writes a float into {name}, an array of {array.dtype}, which cuts it; make {name} an array of floats"
                return f"{_place(function, _name(function), each.loc.line)}, {rule}"
    return None


def _is_field(statement: Any) -> bool:
    """Whether a statement of numba's reads a field, as ``state.rate``."""
    return isinstance(statement, Assign) and isinstance(statement.value, Expr) and statement.value.op == "getattr"


def _name(function: types.FunctionType) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _place(function: types.FunctionType, name: str, line: int) -> str:
    """A kernel and one of its lines, as errors name them."""
    file = function.__code__.co_filename
    return f"kernel {name}: line {line} of {file}, {linecache.getline(file, line).strip()!r}"


def _explanation(function: types.FunctionType, arguments: tuple[Any, ...], error: str) -> str:
    """What is wrong with a kernel, where, and the rule, in one line."""
    code, name = function.__code__, _name(function)
    callees = [_name(called.py_func) for called in _called(function) if _is_foreign(called)]
    if callees and _lies_in_package(code.co_filename):
        name += f", which calls {', '.join(callees)}"
    where = _place(function, name, _faulty_line(code, error))
    if any(phrase in error for phrase in ALLOCATES):
        return f"{where}, makes an array, list or string, but a kernel allocates nothing: its working memory is an argument"
    unknown = [repr(name) for name, kind in zip(code.co_varnames, arguments, strict=False) if kind is numba.types.pyobject]
    if unknown:
        return f"{where}, does not compile: {', '.join(unknown)} holds something else than numbers and arrays"
    return f"{where}, does not compile: {_first_words(error)}"


def _faulty_line(code: types.CodeType, error: str) -> int:
    """The line of a function that numba's message names last; its first where it names none."""
    file = re.escape(Path(code.co_filename).name)
    named = [int(line) for line in re.findall(rf'{file}(?: \(|", line )(\d+)', error)]
    lines = {line for *_, line in code.co_lines()}
    return next((line for line in reversed(named) if line in lines), code.co_firstlineno)


def _first_words(error: str) -> str:
    """The first sentence of numba's message, without what says only where."""
    lines = [line.strip() for line in error.splitlines() if line.strip() and not line.startswith(("Failed in", "- Resolution"))]
    return " ".join(lines[: 1 + lines[0].endswith(":")]) if lines else "numba does not say why"


def specialise(template: Callable[..., Any], *, counted: bool = False, **kernels: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``template`` with its open names bound to ``kernels``.

    The compiled function is cached on disk like any other, provided that the template and the kernels belong to the package.

    Args:
        template: a plain function that calls the open names as globals of its module.
        counted: count references at this level. What Python calls with a `numpy.random.Generator` must do so, or the generator
            is never let go; a thin template around an uncounted kernel costs nothing inside.
        **kernels: the compiled kernel to bind to each name.

    Returns:
        The compiled function, the same object for the same arguments.
    """
    return _specialise(template, counted, tuple(sorted(kernels.items())))


@cache
def _specialise(template: Any, counted: bool, kernels: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    for name, function in kernels:
        if not isinstance(function, Dispatcher):
            raise KernelError(f"{name} is {function!r}; expected a kernel: decorate it with clickgym.envs.kernel")
        function.__class__ = _Entry  # which one that was sent here by value is not
    bound = types.FunctionType(template.__code__, template.__globals__ | dict(kernels), template.__name__)
    # The name is part of the names in machine code, so it must tell apart what is bound.
    parts = [f"{name}={function.py_func.__module__}.{function.py_func.__qualname__}" for name, function in kernels]
    bound.__qualname__ = f"{template.__qualname__}_{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}"
    return _compiled(bound, {"nogil": True} if counted else OPTIONS)
