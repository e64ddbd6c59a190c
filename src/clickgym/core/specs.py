"""Specs: texts ``NAME[:KEY=VALUE,...]`` that name an agent, an environment or an instance, with its
arguments.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .messages import short_repr

SEPARATOR = re.compile(r',(?=[^",=]+=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma that separates two arguments: a comma before ``key=`` that is not in double quotes."""
COLLECTION_START = re.compile(r"(dict|list|tuple)?[\[({]")
"""The beginning of a text that looks like a list, a tuple or a dictionary."""


def parse_value(text: str) -> Any:
    """Parse a text as JSON or as a Python literal; return any other text unchanged.

    Example:
        >>> [parse_value(text) for text in ("[1, 2]", "false", "False", "None", ".5", "word")]
        [[1, 2], False, False, None, 0.5, 'word']
    """
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return read(text)
    return text


def parse_spec(
    spec: str, value_of: Callable[[str, str], Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Split a spec into its name and its arguments.

    Args:
        spec: ``"Name"`` or ``"Name:key=value,key=value"``. The name may itself be
            ``module:Class``.
        value_of: a function that takes an argument's key and the text of its value, and returns the
            value. If the function raises a ValueError, the message is prefixed with the spec. By
            default, `parse_value` parses the text.

    Raises:
        ValueError: an argument is not ``key=value``, a key occurs twice, a colon stands where a
            comma belongs, or a value in brackets cannot be read.

    Example:
        >>> parse_spec("CascadeKLUCB:feedback=first_click")
        ('CascadeKLUCB', {'feedback': 'first_click'})
        >>> parse_spec("BubbleRank:initial=[2,0,1],delta=0.1")
        ('BubbleRank', {'initial': [2, 0, 1], 'delta': 0.1})
        >>> parse_spec("my_module:MyAgent:alpha=0.5")
        ('my_module:MyAgent', {'alpha': 0.5})
        >>> parse_spec("PBMRank-v0:instance=uniform:seed=3")
        ('PBMRank-v0', {'instance': 'uniform:seed=3'})
    """
    # Split at the first colon before a key, because values may contain colons.
    parts = re.fullmatch(r"([^=]*?):([^:=]*=.*)", spec)
    if parts is None:
        return spec, {}
    arguments: dict[str, Any] = {}
    for part in SEPARATOR.split(parts[2]):
        key, equals, text = (word.strip() for word in part.partition("="))
        if not key or not equals or key in arguments:
            raise ValueError(f"{spec!r}: expected key=value once for each key; got {part!r}")
        first, _, rest = text.partition(":")
        if "=" in rest and not isinstance(parse_value(first), str):
            raise ValueError(f"{spec!r}: expected a comma before the next key, in {part!r}")
        try:
            arguments[key] = parse_value(text) if value_of is None else value_of(key, text)
            if arguments[key] is text and COLLECTION_START.match(text):
                example = "for example '...={\"net_arch\":[64,64]}', in single quotes in a shell"
                raise ValueError(f"expected JSON or a Python literal ({example}); got {text!r}")
        except ValueError as error:
            raise ValueError(f"{short_repr(spec)}: {key}: {error}") from None
    return parts[1], arguments


def format_spec(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the spec that `parse_spec` splits into this name and these arguments, or None if there
    is no such spec, for example because an argument cannot be written as JSON.

    Example:
        >>> format_spec("PBMRank-v0", {"reward": "any_click", "cutoff": 3})
        'PBMRank-v0:reward=any_click,cutoff=3'
    """
    if not arguments:
        return name
    try:
        written = [f"{key}={_format_value(value)}" for key, value in arguments.items()]
        spec = f"{name}:{','.join(written)}"
        is_readable = json.dumps(parse_spec(spec)) == json.dumps((name, arguments))
    except (TypeError, ValueError):
        return None
    return spec if is_readable else None


def _format_value(value: Any) -> str:
    """Return an argument's value as text. A string is quoted if it contains a comma, or if
    `parse_value` would return another value.
    """
    if isinstance(value, str) and "," not in value and parse_value(value) == value:
        return value
    return json.dumps(value, separators=(",", ":"))
