"""Write the pages of the studies, and the tables in the docs that come from results and classes.

The command is ``make pages``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import rl_page
from differences import difference
from matplotlib.figure import Figure
from pages import agents_table, deviations, model_sections, models_table
from replay import replayed_with

from clickgym.agents import AGENTS
from clickgym.bench.board import DATA, OURS, BoardLine, line_file, published_lines, scored_tasks
from clickgym.bench.result_files import read_results
from clickgym.bench.score import Summary, summarize
from clickgym.bench.tasks import ABILITIES, ScoredTask, tasks_of
from clickgym.core.files import write_whole
from clickgym.core.text import markdown_table

ROOT = Path(__file__).resolve().parents[1]
DOCS, PAPERS = ROOT / "docs", ROOT / "examples" / "papers"
sys.path.append(str(PAPERS))
import study  # noqa: E402

SITUATIONS = {
    "standard": "ordinary queries",
    "early sessions": "only a thousand sessions",
    "long lists": "lists of ten items",
    "large catalogues": "50 to 1,000 items",
    "position bias": "users rarely look at low positions",
    "rare clicks": "clicks are rare",
    "change": "users' preferences change abruptly",
    "drift": "users' preferences change all the time",
    "ties": "items are almost equally attractive",
    "clickbait": "attractive items satisfy users less",
    "safety": "bad lists must be rare",
    "memory": "clicks change how users behave later",
    "long run": "a million sessions",
    "features": "items have features",
}
"""Each ability, in the words of a reader who is looking for an agent."""

SHARED = ("study", "figures")
VERDICTS = ("reproduced", "not reproduced on these queries", "undecided", "not tested")


def pages() -> dict[Path, str]:
    """Return the new text of every file, in a mapping from its path."""
    texts = {
        PAPERS / "results" / f"{name}.md": text for name, text in study_pages(has_picture=False)
    }
    parts_of_pages = {
        "agents": {
            "deviations": f"```text\n{deviations('TopRank')}\n```",
            "agents": _table(["agent", "paper", "made for", "requires"], *agents_table()),
        },
        "environments": {
            "models": _table(
                ["id", "users", "source", "random lists", "best list"], *models_table()
            ),
            "sections": f"\n{model_sections()}\n",
        },
        "studies": {"studies": _studies()},
        "scorecard": {
            "recommended": _recommended(),
            "click models": _click_models(),
            **_boards(),
            "runs": _runs(),
            "abilities": _abilities(),
        },
        "rl": {"defaults": _table(*rl_page.defaults_table())},
        "stateful_users": {
            "regret": _table(*rl_page.memory_table()),
            "journeys": _table(*rl_page.journeys_table()),
            "real query": _table(*rl_page.real_query_table()),
        },
        "rl_results": {
            "independent": _table(*rl_page.independent_table()),
            "returning": _table(*rl_page.returning_table()),
            **{name: _table(*rows) for name, rows in rl_page.tables().items()},
        },
    }
    for name, parts in parts_of_pages.items():
        file = (DOCS / f"{name}.md").resolve()
        texts[file] = _fill_in(file, parts)
    return texts


def _fill_in(file: Path, parts: Mapping[str, str]) -> str:
    """Return the text of a page, with each part inserted between the two marks that name it."""
    text = file.read_text(encoding="utf-8")
    for name, content in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        head, tail = text.split(start)
        text = f"{head}{start}\n{content}\n{end}{tail.split(end)[1]}"
    return text


def _table(header: Sequence[str], *rows: Sequence[str]) -> str:
    return "\n".join(markdown_table([header, *rows]))


def _abilities() -> str:
    """Return the table that describes the scorecard's abilities."""
    rows = []
    for ability, groups in ABILITIES.items():
        tasks = tasks_of(ability)
        models = dict.fromkeys(map(_click_model, tasks))
        sessions = dict.fromkeys(f"{task.horizon:,}" for task in tasks)
        about = "; ".join(dict.fromkeys(group.about for group in groups))
        rows.append((ability, about, ", ".join(models), str(len(tasks)), ", ".join(sessions)))
    header = ("kind of task", "what differs", "click models", "tasks", "sessions")
    return _table(header, *rows)


def _click_model(task: ScoredTask) -> str:
    """Return the short name of a task's click model, such as "PBM"."""
    return re.sub(r"^(NonStationary|Contextual)|Rank-v0$", "", task.env)


CHECK_RESULTS = {
    "PBM": "passes",
    "UBM": "undecided",
    "CCM": "undecided",
    "DBN": "undecided",
    "DCM": "undecided",
    "CM": "fails",
}
"""What ``clickgym check-models`` says of each click model on the sample of real sessions (see
docs/fit.md): the interval of *predicted* lies above one half, contains it, or lies below.
"""


def _click_models() -> str:
    """Return the table of the click models of the scored tasks without features."""
    n_tasks = Counter(_click_model(task) for task in scored_tasks(features=False))
    names = [*CHECK_RESULTS, *sorted(n_tasks.keys() - CHECK_RESULTS)]
    rows = [(name, str(n_tasks[name]), CHECK_RESULTS.get(name, "not tested")) for name in names]
    return _table(("click model", "tasks", "check on the real log"), *rows)


def _ranked(tasks: Sequence[ScoredTask]) -> list[tuple[BoardLine, Summary]]:
    """Return the agents that played at least half of the tasks, with their scores, best first."""
    summaries = [(line, line.summary(tasks)) for line in published_lines()]
    scored = [(line, summary) for line, summary in summaries if summary is not None]
    return sorted(scored, key=lambda pair: -pair[1].value)


def _boards() -> dict[str, str]:
    """Return the boards: all tasks without features, those with the PBM, *memory*, *features*."""
    all_but_features = scored_tasks(features=False)
    pbm = [task for task in all_but_features if _click_model(task) == "PBM"]
    memory, features = scored_tasks(ability="memory"), scored_tasks(features=True)
    observe_states = [pair for pair in _ranked(memory) if "states" in pair[0].requires]
    others = [pair for pair in _ranked(memory) if pair not in observe_states]
    return {
        "board": _board(all_but_features, _ranked(all_but_features)),
        "pbm": _board(pbm, _ranked(pbm)[:12]),
        "memory": _board(memory, [*observe_states, *others[:3]]),
        "features": _board(features, _ranked(features)),
    }


LINKS = {"MixTS": "[MixTS](#mixts-our-own-agent)"}


def _board(tasks: Sequence[ScoredTask], ranked: Sequence[tuple[BoardLine, Summary]]) -> str:
    """Return a board, and sentences that name the agents that the runs cannot tell apart from the
    best published agent and, on a board of a single kind of task, those that cannot play all tasks.

    Args:
        tasks: the tasks that the board covers.
        ranked: the agents and their scores, best first.
    """
    # published, and not tuned
    best = next(line for line, _ in ranked if line.agent in AGENTS and line.agent not in OURS)
    by_ability = {name: [task for task in tasks if task.ability == name] for name in ABILITIES}
    has_abilities = sum(map(bool, by_ability.values())) > 1
    rows, undecided, incomplete = [], [], []
    for line, summary in ranked:
        played = [task for task in tasks if task.name in line.scores]
        is_incomplete = len(played) < len(tasks) and not has_abilities
        cells = [LINKS.get(line.agent, line.agent), f"{summary.value:z.2f}"]
        if line is best:
            cells += 3 * ["–"]
        else:
            it = difference(line.scores, best.scores, tasks)
            interval = f"{it.low:+z.2f} to {it.high:+z.2f}"
            cells += [f"{it.value:+z.2f}", interval, f"{it.improvement:.2f}"]
            undecided += [line.agent] * (it.is_undecided and not is_incomplete)
        if is_incomplete:
            it = difference(line.scores, best.scores, played)
            incomplete.append(
                f" {line.agent} cannot play {len(tasks) - len(played)} of these tasks; in the "
                f"others, its difference is {it.value:+z.2f}, with the interval {it.low:+z.2f} to "
                f"{it.high:+z.2f}."
            )
        if has_abilities:
            values = {
                ability: summarize(line.scores, of_ability, intervals=False).value
                for ability, of_ability in by_ability.items()
                if of_ability
            }
            cells.append(min(values, key=values.__getitem__))
        rows.append(cells)
    header = ["agent", "score", "difference", "95 % interval", "P(better)"]
    names = ", ".join(undecided[:-1]) + " and " * (len(undecided) > 1) + "".join(undecided[-1:])
    sentence = (
        f"Five runs of each task cannot tell {best.agent} apart from {names}."
        if undecided
        else f"Five runs of each task tell {best.agent} apart from all other agents."
    )
    table = _table([*header, *["worst at"] * has_abilities], *rows)
    return f"{table}\n\n{sentence}{''.join(incomplete)}"


def _runs() -> str:
    """Return the table of what each agent on a board requires, of its worst runs, of its time, and
    of the versions of clickgym that played and replayed its runs.
    """
    rows = {}
    for tasks in (
        scored_tasks(features=False),
        scored_tasks(ability="memory"),
        scored_tasks(features=True),
    ):
        for line, summary in _ranked(tasks):
            cells = [f"{summary.worst_run:z.2f}", line.time_text, *_versions(line.agent)]
            rows.setdefault(line.agent, [line.agent, line.requires or "–", *cells])
    header = ("agent", "requires", "worst run", "µs per session", "played with", "replayed with")
    return _table(header, *rows.values())


def _versions(agent: str) -> tuple[str, str]:
    """Return the versions of clickgym that played an agent's shipped runs, such as "4.0, 5.0", and
    the version that last replayed a sample of them.
    """
    _, made = read_results(line_file(DATA, agent))
    played = [made["clickgym"], made.get("added", {}).get("clickgym")]
    replayed = replayed_with().get(agent, "–")
    short = [
        it.removesuffix(".dev0").removesuffix(".0") for it in (*played, replayed) if it is not None
    ]
    return ", ".join(short[:-1]), short[-1]


def _recommended() -> str:
    """Return the table of the best published agent for each kind of task, with default settings:
    the best agent that requires nothing, and the best agent of all if it is a different one.
    """
    header = ("agent", "score", "worst run", "if you know more", "score")
    rows = []
    agents = [line for line in published_lines() if line.agent in AGENTS and line.agent not in OURS]
    without_knowledge = [line for line in agents if line.requires in ("", "features")]
    for ability in ABILITIES:
        tasks = scored_tasks(ability=ability)
        best, best_of_all = _best(without_knowledge, tasks), _best(agents, tasks)
        cells = [*best, *(["", ""] if best_of_all == best else best_of_all[:2])]
        rows.append([SITUATIONS.get(ability, ""), f"*{ability}*", *cells])
    return _table(["your situation", "kind of task", *header], *rows)


def _best(lines: Sequence[BoardLine], tasks: Sequence[ScoredTask]) -> list[str]:
    """Return the best agent over some tasks, its score, and the score of its worst runs."""
    summaries = {line.agent: line.summary(tasks) for line in lines}
    scored = {agent: summary for agent, summary in summaries.items() if summary is not None}
    agent = max(scored, key=lambda name: scored[name].value)
    return [agent, f"{scored[agent].value:.2f}", f"{scored[agent].worst_run:.2f}"]


# ------------------------------------------------------------ studies


@cache
def scripts() -> dict[str, ModuleType]:
    """Import the experiments of papers, and return their modules by name."""
    names = [file.stem for file in sorted(PAPERS.glob("*.py")) if file.stem not in SHARED]
    return {name: import_module(name) for name in names}


def _studies() -> str:
    """Return the table of the experiments, with the number of statements for each verdict."""
    rows = []
    for name, script in scripts().items():
        title, paper, *_ = (" ".join(part.split()) for part in (script.__doc__ or "").split("\n\n"))
        (results, _), _ = study.shipped(script)
        statements = script.statements(results) if hasattr(script, "statements") else []
        counts_of = Counter(verdict for _, verdict in study.verdicts(statements))
        counts = [str(counts_of[verdict] or "–") for verdict in VERDICTS]
        link = f"[{paper.removesuffix('.')}](../examples/papers/results/{name}.md)"
        rows.append([link, title.removesuffix("."), *counts])
    return _table(("paper", "what it shows", *VERDICTS), *rows)


def study_pages(has_picture: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and page of each experiment, with a picture for the website or without."""
    for name, script in scripts().items():
        yield name, study.page(script, *study.shipped(script), has_picture)


def study_figures() -> Iterator[tuple[str, Figure]]:
    """Yield the name and figure of each experiment, for the website."""
    for name, script in scripts().items():
        (results, _), _ = study.shipped(script)
        yield name, script.draw(results)


def main() -> None:
    """Write the files whose text has changed, and the picture for docs/rl_results.md."""
    for file, text in pages().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            write_whole(file, text)
            print(file.relative_to(ROOT))
    rl_page.write_picture()


if __name__ == "__main__":
    main()
