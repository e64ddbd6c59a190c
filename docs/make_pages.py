"""Write what is made from docstrings: the page of every environment, and the tables in the README.

make pages
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS
from clickgym.envs.pages import page
from clickgym.runner.formats import markdown_table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "environments"


def pages() -> dict[Path, str]:
    """The text of every page, by its file."""
    environments = ENVIRONMENTS | CONTEXTUAL
    texts = {FOLDER / f"{name}.md": f"# {name}\n\n{page(name)}" for name in environments}
    rows = [(f"[`{name}`](docs/environments/{name}.md)", environment.about) for name, environment in environments.items()]
    agents = [
        (f"`{name}`", agent.paper, agent.click_models, ", ".join(getattr(agent, "told", {})) or "–")
        for name, agent in (AGENTS | CONTEXTUAL_AGENTS | LEARNERS).items()
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = _fill(readme, "environments", ("id", "users"), rows)
    readme = _fill(readme, "agents", ("name", "source", "made for", "is told"), agents)
    return texts | {ROOT / "README.md": readme, ROOT / "docs" / "rl.md": _learners()}


def _learners() -> str:
    """The page of generic reinforcement learning, with the tables of its algorithms and of their defaults."""
    text = (ROOT / "docs" / "rl.md").read_text(encoding="utf-8")
    algorithms = [
        (
            f"`{name}`",
            learner.package,
            f"`{learner.representations[0]}`",
            f"{learner.measured.regret} %",
            f"{learner.measured.seconds:.0f}",
        )
        for name, learner in LEARNERS.items()
    ]
    text = _fill(text, "algorithms", ("name", "library", "a list is", "regret", "seconds"), algorithms)
    defaults = [
        (f"`{name}`" if row == 0 else "", f"`{argument}`", str(setting.default), setting.why)
        for name, learner in LEARNERS.items()
        for row, (argument, setting) in enumerate(learner.settings.items())
    ]
    return _fill(text, "defaults", ("", "argument", "default", "why"), defaults)


def _fill(text: str, name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Put a table between the marks of its name."""
    table = "\n".join(markdown_table([header, *rows]))
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*{end}", lambda _: f"{start}\n{table}\n{end}", text, flags=re.DOTALL)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in set(FOLDER.glob("*.md")) - set(pages()):
        file.unlink()
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
