"""Documentation page of an environment, made from the docstring of its click model by one template."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

from clickgym.core.docstrings import sections
from clickgym.core.templates import templates
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym.runner.describe import arguments

ROUND: dict[str, Any] = {"L": [0.6, 0.4, 0.2, 0.1], "K": [0.9, 0.5], "KK": [[0.9, 0.0], [0.5, 0.7]], "": 0.8}
"""Small round parameters by shape, for an example that every model has."""


class Move(NamedTuple):
    """What a user does: from a state to the next one, with its probability."""

    source: str
    target: str
    probability: str


def moves_of(text: str) -> list[Move]:
    """The moves that the section ``User`` of a docstring describes, a line each.

    Args:
        text: lines ``state → state: probability``.

    Raises:
        ValueError: a line is not of this form.

    Example:
        >>> moves_of("examine k → click: α(d_k)")
        [Move(source='examine k', target='click', probability='α(d_k)')]
    """
    moves = []
    for line in text.splitlines():
        parts = re.fullmatch(r"\s*(.+?) → (.+?): (.+?)\s*", line)
        if parts is None:
            raise ValueError(f"the user does {line!r}; expected 'state → state: probability'")
        moves.append(Move(*parts.groups()))
    return moves


def page(env_id: str) -> str:
    """The page of a registered id, in Markdown, under Gymnasium's headings and those of click models.

    A click model of one's own has the sections that follow from its docstring: ``Click law`` has its formulas, and ``User`` the
    moves of its users (see `moves_of`).

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    form, model = environment.form, environment.click_model
    about, of_users = sections(model.__doc__ or ""), sections(environment.users.__doc__ or "")
    references = about["Source"]
    if form:
        references = f"{of_users['Source']}\nThe click model itself: see `{env_id.removeprefix(form)}`."
    signature = inspect.signature(model).parameters
    shapes = {} if environment.kind == "Memory" else model.shapes
    example = {name: ROUND[shape] for name, shape in shapes.items() if signature[name].default is not None}
    if "n_positions" in signature:
        example["n_positions"] = 2
    pages = templates(Path(__file__).parent)
    pages.filters |= {"in_markdown": lambda text: text.replace("``", "`"), "repr": repr}
    text = pages.get_template("environment.md").render(
        env_id=env_id,
        environment=environment,
        kind=environment.kind,
        form=form,
        model=model,
        stationary=env_id.removeprefix(form),
        about=about,
        of_users=of_users,
        law=about.get("Click law", ""),
        moves=moves_of(about.get("User", "")),
        arguments=arguments(env_id),
        parameters=example,
        described=", ".join(f"{name}={value!r}" for name, value in example.items()),
        references=re.split(r"\n(?! )", references),
    )
    return text + "\n"
