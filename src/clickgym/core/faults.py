"""Checks of what users write, with one line for each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Fault(Exception):
    """One fault that a check has found, described in one line."""


def expect(condition: object, fault: str) -> None:
    """Raise a `Fault` unless the condition holds."""
    if not condition:
        raise Fault(fault)


def run_checks(what: str, first: Iterable[Callable[[], None]], then: Iterable[Callable[[], None]]) -> None:
    """Run all checks, and report all faults in one error.

    Args:
        what: the beginning of the report, as ``"MyAgent breaks the interface of agents"``.
        first: without these the others mean nothing: they end at the first fault.
        then: these are all made. Each begins its lines with the first line of its docstring.

    Raises:
        AssertionError: a line for each fault.
    """
    faults: list[str] = []
    for check in first:
        if not faults:
            faults += _fault(check)
    if not faults:
        faults = [line for check in then for line in _fault(check)]
    if faults:
        raise AssertionError("\n".join([f"{what}:", *(f"- {line}" for line in faults)]))


def _fault(check: Callable[[], None]) -> list[str]:
    title = (check.__doc__ or "").partition("\n")[0].strip().rstrip(".").lower()
    try:
        check()
    except Fault as fault:
        return [f"{title}: {fault}"]
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        return [f"{title}: {type(error).__name__}: {first_line}"]
    return []
