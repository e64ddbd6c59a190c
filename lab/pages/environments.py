"""Documentation page of an environment, made from the docstring of its click model by one template."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from ...core.docstrings import sections
from ...core.templates import templates
from ...envs.registration import CONTEXTUAL, ENVIRONMENTS, MEMORY
from ...runner.describe import arguments

__all__ = ["page"]

ROUND: dict[str, Any] = {"L": [0.6, 0.4, 0.2, 0.1], "K": [0.9, 0.5], "KK": [[0.9, 0.0], [0.5, 0.7]], "": 0.8}
"""Small round parameters by shape, for an example that every model has."""


def page(env_id: str) -> str:
    """The page of a registered id, in Markdown, under Gymnasium's headings.

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    form, model = environment.form, environment.click_model
    about = sections(model.__doc__ or "")
    references = about["Source"]
    if form:
        source = sections(environment.users.__doc__ or "")["Source"]
        references = f"{source}\nThe click model itself: see `{env_id.removeprefix(form)}`."
    signature = inspect.signature(model).parameters
    shapes = {} if environment.kind == "Memory" else model.shapes
    parameters = {name: ROUND[shape] for name, shape in shapes.items() if signature[name].default is not None}
    if "n_positions" in signature:
        parameters["n_positions"] = 2
    pages = templates(Path(__file__).parent)
    pages.filters |= {"in_markdown": lambda text: text.replace("``", "`"), "repr": repr}
    text = pages.get_template("environment.md").render(
        env_id=env_id,
        environment=environment,
        kind=environment.kind,
        model=model,
        about=about,
        arguments=arguments(env_id),
        parameters=parameters,
        described=", ".join(f"{name}={value!r}" for name, value in parameters.items()),
        references=re.split(r"\n(?! )", references),
    )
    return text + "\n"
