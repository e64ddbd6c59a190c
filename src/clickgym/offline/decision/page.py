"""Write a decision as files: an HTML page without other files, its figure, and all numbers as JSON."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...core.files import make_folder, write_whole
from ...core.formats import finite
from ...core.templates import templates
from ...runner.reports.figures import save_figure
from ..evaluation import LEAST_SESSIONS
from ..goodness_of_fit import FITS, PATTERNS
from ..log import BLOCKS
from .decide import AGENTS
from .figures import MOST_GAINS, PANELS, decision_figure, panel_svg
from .lists import LEAST_BLOCKS, LEFT_OUT, STEADY
from .records import NEAR, Decision
from .settings import LEVEL

INSTANCE = "instance.json"
OF_GROUND = {"proposal": "labels", "ground": "name", "difference": "difference", "interval": "interval"}
"""What version 2.0 called the fields of the ground of a decision."""
FIGURES = (
    "log", "query", "reward", "cutoff", "horizon", "runs", "seed", "n_sessions", "n_queries", "n_of_query", "n_held_out",
    "evidence", "level", "n_decided", "instance", "regret", "curves", "candidates", "logged", "earned", "noise", "checks",
    "believed", "verdict", "recommended", "headline", "summary", "against",
)  # fmt: skip
"""What ``decision.json`` has of a decision, in this order."""


def write_decision(decision: Decision, folder: str | Path, *, pdf: bool = False) -> list[Path]:
    """Write ``decision.html``, ``decision.png``, ``decision.svg``, ``decision.json`` and ``instance.json``.

    Args:
        decision: what `decide` returned.
        folder: made if need be.
        pdf: write ``decision.pdf``, too.

    Returns:
        The files.
    """
    folder = Path(folder)
    write_page(decision, folder)
    pictures = save_figure(decision_figure(decision), folder / "decision", pdf=pdf)
    return [folder / "decision.html", *pictures, folder / "decision.json", folder / INSTANCE]


def write_page(decision: Decision, folder: Path) -> None:
    """Write the page, the numbers and the instance of a decision; the numbers last, which so tell that the page is there."""
    make_folder(folder)
    decision.instance.save(folder / INSTANCE)
    write_whole(folder / "decision.html", to_html(decision))
    write_whole(folder / "decision.json", json.dumps(to_dict(decision), indent=1, ensure_ascii=False) + "\n")


def to_dict(decision: Decision) -> dict[str, Any]:
    """All numbers of a decision for JSON; nan becomes null."""
    evidence, ground = vars(decision.evidence), decision.ground
    figures = {name: getattr(decision, name) for name in FIGURES} | {
        # What version 1.0 called so stands where it stood.
        "scores": evidence["scores"],
        "evidence": {"p_value": getattr(ground, "p_value", 1.0)}
        | {old: getattr(ground, new, None) for old, new in OF_GROUND.items()}
        | {name: value for name, value in evidence.items() if name not in ("scores", "groups", "level")},
        "instance": INSTANCE,
        "curves": decision.curves.to_dict(as_series=False),
    }
    if decision.subject.valued:
        figures["unit"] = decision.unit
    plain = json.loads(json.dumps(figures, default=lambda each: vars(each) if is_dataclass(each) else each.tolist()))
    return {"clickgym": version("clickgym"), "command": command_of(decision)} | finite(plain)


def to_html(decision: Decision) -> str:
    """An HTML page that needs no network, no script and no other file."""
    pages = templates(Path(__file__).parent)  # what is put into it is text: the labels of items and queries are a user's
    place = {label: k for k, label in enumerate(decision.production.labels, 1)}
    panels = {title: {theme: _data_uri(svg) for theme, svg in panel_svg(decision, title).items()} for title in PANELS}
    return pages.get_template("decision.html").render(
        decision=decision, unit=decision.unit, moves=[(label, place.get(label)) for label in decision.proposal.labels],
        near=NEAR, fits=FITS, blocks=BLOCKS, least_blocks=LEAST_BLOCKS, left_out=LEFT_OUT, steady=STEADY, patterns=PATTERNS,
        least_sessions=LEAST_SESSIONS, most_gains=MOST_GAINS, panels=panels, command=command_of(decision),
        version=version("clickgym"), finite=math.isfinite,
    )  # fmt: skip


def _data_uri(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def command_of(decision: Decision) -> str:
    """The command line that makes the same decision."""
    words = [f"clickgym decide {_quoted(decision.log)} --query {_quoted(decision.query)}"]
    agents = [agent for agent in decision.regret if agent != "Fixed"]
    if set(agents) != set(AGENTS):
        words.append(f"--agents {' '.join(agents)}")
    for option, value, usual in (
        ("reward", decision.reward, "clicks"), ("cutoff", decision.cutoff, None), ("horizon", decision.horizon, 100_000),
        ("level", decision.level, LEVEL), ("runs", decision.runs, 5), ("seed", decision.seed, 0),
        ("counts", decision.subject.counts and _quoted(decision.subject.counts), ""),
    ):  # fmt: skip
        if value != usual:
            words.append(f"--{option} {value}")
    return " ".join([*words, "--out DIR"])


def _quoted(word: str) -> str:
    return word if word and all(letter.isalnum() or letter in "-_./:," for letter in word) else f"'{word}'"
