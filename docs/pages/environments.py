"""Documentation page of an environment, made from the docstring of its click model by one
template.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

from clickgym.core.docstrings import entries, sections
from clickgym.core.templates import templates
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, MixtureModel
from clickgym.envs.click_env import ClickEnv
from clickgym.envs.contextual.model import ContextualModel, LabelledModel
from clickgym.envs.registration import Environment

ABSENT = {
    "Contextual": ("reference",),
    "Memory": ("reference", "cutoff"),
}
"""Arguments of `ClickEnv` that environments of a kind do not have."""
ROUND: dict[str, Any] = {
    "L": [0.6, 0.4, 0.2, 0.1],
    "K": [0.9, 0.5],
    "KK": [[0.9, 0.0], [0.5, 0.7]],
    "": 0.8,
}
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
    """The page of a registered id, in Markdown, under Gymnasium's headings and those of click
    models.

    A click model of one's own has the sections that follow from its docstring: ``Click law`` has
    its formulas, and ``User`` the moves of its users (see `moves_of`).

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    form, model = environment.form, environment.click_model
    about, of_users = sections(model.__doc__ or ""), sections(environment.users.__doc__ or "")
    references = about["Source"]
    if form:
        references = (
            f"{of_users['Source']}\nThe click model itself: see `{env_id.removeprefix(form)}`."
        )
    signature = inspect.signature(model).parameters
    shapes = {} if environment.kind == "Memory" else model.shapes
    example = {
        name: ROUND[shape] for name, shape in shapes.items() if signature[name].default is not None
    }
    if "n_positions" in signature:
        example["n_positions"] = 2
    if model is MixtureModel:
        tastes = ([0.6, 0.4, 0.2, 0.1], [0.1, 0.2, 0.4, 0.6])
        models = [{"model": "CM", "attraction": taste, "n_positions": 2} for taste in tastes]
        example = {"models": models, "weights": [0.7, 0.3]}
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


def arguments(env_id: str) -> list[tuple[str, str, str]]:
    """The arguments of ``gym.make`` for an id: names, defaults and descriptions.

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    lines = (
        _lines_of_contextual(environment)
        if environment.form == "Contextual"
        else _args(environment.users)
    )
    lines.pop("n_positions", None)
    default = (
        "of the instance" if environment.form or environment.click_model.default_instance else "–"
    )
    rows = [(name, default, text) for name, text in lines.items()]
    return [*rows, *((name, value, text) for name, (value, text) in _shared(environment).items())]


def _lines_of_contextual(environment: Environment) -> dict[str, str]:
    """The arguments of a form with candidates that change: its own, and those of its click model
    for each item.
    """
    model, theta = environment.click_model, _args(environment.users)["theta"]
    lines = _args(ContextualModel) | {
        "theta": theta,
        "attraction": f"instead of `theta`: {_args(LabelledModel)['attraction']}",
    }
    return lines | {
        name: f"of each item: {_args(model).get(name, '')}" for name in model.item_parameters()[1:]
    }


def _args(thing: Any) -> dict[str, str]:
    """The arguments that a docstring describes."""
    return entries(sections(thing.__doc__ or "").get("Args", ""))


def _shared(environment: Environment) -> dict[str, tuple[str, str]]:
    """The arguments that all environments have: what is shown as the default, and the
    description.
    """
    own, instance = _args(ClickEnv), environment.default_instance
    absent = {"model", "form", *ABSENT.get(environment.kind, ())}
    defaults = {
        "instance": f'`"{instance}"`' if instance else "–",
        "n_positions": "of the instance",
    }
    defaults["reward"] = f'`"{environment.default_reward}"`'
    for name, parameter in inspect.signature(ClickEnv).parameters.items():
        if name in own and name not in absent:
            value = parameter.default
            defaults.setdefault(
                name,
                f'`"{value}"`' if isinstance(value, str) else "0" if value == 0 else str(value),
            )
    return {name: (default, own[name]) for name, default in defaults.items()}
