"""Write what is made from docstrings and from results that ship: the pages of environments and studies, tables, figures.

make pages
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

import prose
from matplotlib.figure import Figure
from pages.agent_pictures import idea_figure
from pages.citing import bibtex, citing_page
from pages.environments import page

from clickgym import list_agents
from clickgym.agents import LEARNERS
from clickgym.core.files import read_json
from clickgym.core.formats import duration, markdown_table, regret_text
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, load_instance
from clickgym.runner import PUBLISHED, STANDS, stands
from clickgym.runner.describe import abilities
from clickgym.runner.make import place_of, player_of
from clickgym.runner.pairs import why_not
from clickgym.runner.reports.exports import to_markdown
from clickgym_lab.bench.boards import REPOSITORY, Table, boards_notes, boards_tables, source_file, strip_text
from clickgym_lab.bench.conclusions import RECOMMENDING, conclusions, own_agent, referee
from clickgym_lab.bench.figures import leaderboard_figure
from clickgym_lab.bench.leaderboard import HEADS, cells_of
from clickgym_lab.bench.pages import leaderboard_html
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import agent_of
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.page import figure_name
from clickgym_lab.studies.page import page as study_page
from clickgym_lab.studies.play import draw, findings, read_study
from clickgym_lab.studies.setting import Setting, by_setting
from clickgym_lab.studies.study import number
from clickgym_lab.studies.warm_start import warm

ROOT, DOCS = prose.ROOT, prose.DOCS
FOLDER, PAGES = DOCS / "environments", DOCS / "studies"
RESULTS = ROOT / "lab" / "results"
LATE = ("name", "learns from", "log", "candidates", "replace", *STANDS)
"""The columns of the table of clicks as they come."""
SHOWN = ("contextual", "first", "rl")
"""The sweeps of which a page shows the figure."""
STABILITY = ROOT / "benchmarks" / "reliability" / "stability.json"


def pages() -> dict[Path, str]:
    """The text of every page, by its file."""
    texts = {FOLDER / f"{name}.md": f"# {name}\n\n{page(name)}" for name in ENVIRONMENTS | CONTEXTUAL | MEMORY}
    texts |= {PAGES / f"{name}.md": study_page(name, found) for name, found in settings().items()}
    texts |= {RESULTS / f"{name}.json": findings(name, found) for name, found in settings().items()}
    texts |= {DOCS / "citing.md": citing_page(), ROOT / "paper.bib": bibtex()}
    texts[DOCS / "leaderboard.html"] = leaderboard_html()
    for (file, name), content in marked_parts().items():
        texts[file] = _between(texts.get(file) or file.read_text(encoding="utf-8"), name, content)
    old = prose.entries()
    new = prose.computed(old)
    for file in prose.marked():
        texts[file] = prose.renewed(texts.get(file) or file.read_text(encoding="utf-8"), old, new)
    return texts | {prose.FILE: prose.written(new)}


def marked_parts() -> dict[tuple[Path, str], str]:
    """What stands between the marks of pages that are written by hand, by file and name of the marks."""
    taught = conclusions(f"{REPOSITORY}docs")
    every = ENVIRONMENTS | CONTEXTUAL | MEMORY
    environments = [(f"[`{name}`](environments/{name}.md)", each.about) for name, each in every.items()]
    (agents, late), first = _agents(), prose.sweep("first")
    return {
        (ROOT / "README.md", "teaches"): "\n".join(taught[:RECOMMENDING]),
        (DOCS / "environments.md", "environments"): _table(("id", "users"), environments),
        (DOCS / "environments.md", "families"): _families(),
        (DOCS / "environments.md", "regret"): _memory(),
        (DOCS / "agents.md", "agents"): agents,
        (DOCS / "agents.md", "late"): late,
        (DOCS / "report.md", "results"): to_markdown(first.frame, first.timings, first.config),
        (DOCS / "contextual.md", "sweep"): _regrets("contextual"),
        (DOCS / "rl.md", "algorithms"): _algorithms(),
        (DOCS / "rl.md", "places"): _places(),
        (DOCS / "rl.md", "sweep"): _regrets("rl"),
        (DOCS / "studies.md", "studies"): _studies(),
        (DOCS / "practice.md", "practice"): _practice(),
        (DOCS / "leaderboard.md", "boards"): "\n\n".join(_boards()),
        (DOCS / "leaderboard.md", "teaches"): "\n".join(taught),
        (DOCS / "mix_ts.md", "scores"): own_agent(),
        (DOCS / "scorecard.md", "abilities"): _abilities(),
        (DOCS / "scorecard.md", "referee"): referee(list(read_json(STABILITY).values())).removesuffix("\n"),
    }


def _between(text: str, name: str, content: str) -> str:
    """Put something between the marks of its name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*{end}", lambda _: f"{start}\n{content}\n{end}", text, flags=re.DOTALL)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(markdown_table([header, *rows]))


# ------------------------------------------------------------------------------------------------- agents and environments


def _agents() -> tuple[str, str]:
    """The table of all agents, and that of what they make of clicks as they come."""
    agents, late = [], []
    for need, group in groupby(list_agents().rows, key=lambda row: row["needs"]):
        agents.append((f"**needs {need}**", "", "", ""))
        late.append((f"**needs {need}**", *("" for _ in LATE[1:])))
        for row in group:
            name, agent = f"`{row['name']}`", PUBLISHED[row["name"]]
            can = ("yes" if each else "–" for each in abilities(agent).values())
            shown_by = (_linked(stands(agent).get(what, "–")) for what in STANDS)
            agents.append((name, row["paper"], row["click_models"], row["told"] or "–"))
            late.append((name, agent.learns_from, *can, *shown_by))
    return _table(("name", "source", "made for", "is given"), agents), _table(LATE, late)


def _linked(shown_by: str) -> str:
    """What shows that an agent stands something, with a link to the page of a study, and code where an argument is needed."""
    study, comma, condition = shown_by.partition(", ")
    linked = f"[{study}](studies/{study}.md)" if study in STUDIES else study
    return linked + comma + re.sub(r"\w+=", r"`\g<0>`", condition)


# ------------------------------------------------------------------------------------------------------- sweeps and studies


def _regrets(name: str) -> str:
    """The table of final regrets of a sweep, environments side by side, in the order of the first."""
    results = prose.sweep(name)
    envs = results.config["envs"]
    header = ("agent", *(f"regret, `{env.rpartition('instance=')[2]}`" for env in envs), "a session takes")
    table = []
    for (agent,), rows in results.table().group_by(["agent"], maintain_order=True):
        of_env = {row["env"]: row for row in rows.iter_rows(named=True)}
        times = [duration(ns) for ns in sorted(row["ns_per_session"] for row in of_env.values())]
        regrets = (regret_text(of_env[env]["regret"], of_env[env]["regret_ci95"]) for env in envs)
        table.append((f"`{agent}`", *regrets, " to ".join(dict.fromkeys(times))))
    return _table(header, table)


@cache
def settings() -> dict[str, list[Setting]]:
    """Every study on each set of queries whose results ship, judged."""
    shipped = [name for name in STUDIES if (RESULTS / f"{name}.parquet").exists()]
    return {name: by_setting(name, read_study(name, RESULTS)) for name in shipped}


def _studies() -> str:
    """The table of the studies."""
    rows = []
    for name, found in settings().items():
        verdicts = [Counter(finding.verdict for _, finding in setting.found) for setting in found]
        counts = [", ".join(str(of[verdict]) for verdict in ("yes", "no", "cannot tell")) for of in verdicts]
        told = "; ".join(f"{setting.name}: {count}" for setting, count in zip(found, counts, strict=True))
        rows.append((f"[`{name}`](studies/{name}.md)", STUDIES[name].paper, STUDIES[name].title, told))
    return _table(("study", "paper", "what it shows", "statements: yes, no, cannot tell"), rows)


def _families() -> str:
    """What the families of users with a memory lose by impatience."""
    rows = []
    for name in ("independent", "clickbait", "clickbait:query=yandex-9982", "habit"):
        users = load_instance(name).model("CascadeMDP")
        best = users.first @ users.value
        lost = [f"{max(1 - users.first @ users.policy_value(policy) / best, 0.0):.1%}" for policy in users.myopic()]
        rows.append((f"`{name}`", f"{best:.2f}", *lost))
    return _table(("family", "a life earns at best", "lost by the best myopic lists", "by the worst"), rows)


def _memory() -> str:
    """Agents by families of users with a memory: their regret after 10⁵ sessions."""
    [(_, (_, *rows))] = (setting.table for setting in settings()["when-rl-pays"] if setting.table is not None)
    regret = {(agent, users): after for users, agent, _, _, after, *_ in rows}
    agents, families = (tuple(dict.fromkeys(column)) for column in zip(*regret, strict=True))
    cells = ((f"`{agent}`", *(regret[agent, users] for users in families)) for agent in agents)
    return _table(("agent", *(f"`{users}`" for users in families)), cells)


PRACTICE = (
    ("clicks at once", "late-clicks", ""),
    ("in batches of 1,000", "late-clicks", "arrival=batch:1000"),
    ("in batches of 5,000", "late-clicks", "arrival=batch:5000"),
    ("clicks of half the sessions lost", "late-clicks", "arrival=immediate:lost=0.5"),
    ("no bots, no new items", "click-farms", ""),
    ("a farm in 0.25 % of the sessions", "click-farms", "bots=farm:share=0.0025"),
    ("a farm in the first 1,000", "click-farms", "bots=farm:first=1000"),
    ("a new item every 10,000 sessions", "churn", "churn=0.0001"),
    ("a new item every 1,000", "churn", "churn=0.001"),
)
"""What users do in the table of the page for practice, each with a part of a study and arguments of its environment; a study
of other length begins with a column of its own without any of it."""
IN_PRACTICE = (
    "PBMHB", "CascadeTS", "PBMTS", "GRAB", "CascadeKLUCB", "GLRCascadeKLUCB", "UniRank", "TopRank", "EpsilonGreedy",
    "BatchRank", "CascadeSWUCB", "CascadeDUCB", "RankedExp3", "BubbleRank", "Fixed",
)  # fmt: skip


def _practice() -> str:
    """What agents lose when clicks come late, are lost or false, when items change, after a log: in percent of what random
    lists lose there; empty where the agent does not play."""

    def share(part: str, agent: str, users: str = "") -> str:
        return number(prose.share(part, agent, users), 2) if agent in prose.practice(part).agents else ""

    rows = []
    for agent in IN_PRACTICE:
        without, after = (share("warm-start", label) for label in (agent, warm(agent, 100_000)))
        log = without and f"{without} → {after or '–'}"
        rows.append((f"`{agent}`", *(share(part, agent, users) for _, part, users in PRACTICE), log))
    return _table(("agent", *(head for head, *_ in PRACTICE), "no log → a log of 100,000"), rows)


# ------------------------------------------------------------------------------------------------------------ the scorecard


def _boards() -> Iterator[str]:
    """The boards in Markdown, each with a heading."""
    page = "[leaderboard.html](leaderboard.html)"
    yield f"The same, to be sorted and filtered: {page}, which opens in any browser, without a network."
    for table in boards_tables(CURRENT):
        yield f"### {table.title}"
        yield table.about
        yield _table((*HEADS, "abilities"), _rows(table))
        yield f"The abilities: {', '.join(table.abilities).replace('_', ' ')}; the higher the bar, the higher the score."
    yield from boards_notes(CURRENT)


def _rows(table: Table) -> list[list[str]]:
    """The rows of a board, with a link from each agent to its source, and intervals that stay in one line."""
    rows = []
    for place in table.places:
        of_line = cells_of(place, CURRENT, table.board)
        cells = {head: of_line[head] for head in HEADS}
        name, comma, setting = place.agent.partition(", ")
        known = agent_of(name) in PUBLISHED  # else it is retired, or a submission
        cells["agent"] = f"[`{name}`](../{source_file(agent_of(name))})" if known else f"`{name}` ({place.trust})"
        cells["agent"] += f"{comma}{setting}{' (recommended)' * place.recommended}"
        cells |= {head: cells[head].replace(" ", "\N{NO-BREAK SPACE}") for head in ("score", "bad run")}
        rows.append([*cells.values(), strip_text(table, place)])
    return rows


def _abilities() -> str:
    """The abilities, with what the rules of their tasks make of the test set."""
    rows = []
    for ability, about in CURRENT.abilities.items():
        own = [task for task in CURRENT.candidates if task.ability == ability]
        models, [horizon] = dict.fromkeys(task.click_model for task in own), {task.horizon for task in own}
        anchored = ability not in CURRENT.playing
        dropped = ", ".join(f"`{task.name}`" for task in own if not CURRENT.anchor(task).kept) if anchored else "being played"
        counts = [len(own), len({task.query for task in own}), sum(task.quick for task in own)]
        rows.append((f"`{ability}`", about, *map(str, counts), ", ".join(models), f"{horizon:,}", dropped or "–"))
    header = ("ability", "what it is about", "tasks", "instances", "in `--quick`", "click models", "sessions", "dropped")
    return _table(header, rows)


# ------------------------------------------------------------------------------------------ generic reinforcement learning


def _algorithms() -> str:
    rows = []
    for name, learner in LEARNERS.items():
        regret, seconds = f"{learner.measured.regret} %", f"{learner.measured.seconds:.0f}"
        [share] = prose.measured("learners.py", rf"\| {name}(?::actions=codes)? +\|(?:[^|]+\|){{4}} +(\d+)%")
        defaults = ", ".join(f"{argument}={setting.default}" for argument, setting in learner.settings.items())
        rows.append((f"`{name}`", f"`{learner.representations[0]}`", regret, seconds, f"{share} %", f"`{defaults}`"))
    return _table(("name", "a list is", "regret", "seconds", "gradient steps", "defaults"), rows)


PLAYED = {
    "plain": "PBMRank-v0",
    "contextual": "ContextualPBMRank-v0",
    "arrival": "PBMRank-v0:arrival=batch:20",
    "bots": "PBMRank-v0:bots=farm:share=0.1",
    "churn": "PBMRank-v0:churn=0.01",
    "available": "PBMRank-v0:available=7",
    "memory": "CascadeMDPRank-v0",
    "memory, bots": "CascadeMDPRank-v0:bots=quit:share=0.1",
}
"""The columns of the table of what learners play, and an environment of each."""


def _places() -> str:
    """Which learner plays where, by which actions; and the reasons where the default does not."""
    rows, reasons = [], []
    for name, learner in LEARNERS.items():
        rows.append([f"`{name}`"])
        for column, env in PLAYED.items():
            place = place_of(env)
            ways = {way: why_not(player_of((name, {"actions": way})).make(place), place) for way in learner.representations}
            rows[-1].append(next((f"`{way}`" for way, reason in ways.items() if not reason), "–"))
            reasons += [f"- `{name}`, {column}: {reason}." for reason in list(ways.values())[:1] if reason]
    environments = ", ".join(f"`{env}`" for env in PLAYED.values())
    return "\n".join([_table(("", *PLAYED), rows), "", f"The columns are those of {environments}.", "", *reasons])


# ------------------------------------------------------------------------------------------------------------------ figures


def figures() -> Iterator[tuple[Path, Figure]]:
    """The leaderboard, the figures of sweeps, and that of every study on each set of queries, by their files."""
    yield DOCS / "leaderboard.png", leaderboard_figure(CURRENT)
    yield DOCS / "mix_ts.png", idea_figure()
    for name in SHOWN:
        yield DOCS / f"{name}.png", prose.sweep(name).plot()
    for found in settings().values():
        for setting in found:
            yield PAGES / f"{figure_name(setting, found)}.png", draw(setting)


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    written = pages()
    drawn = dict(figures())
    for file in {*FOLDER.iterdir(), *PAGES.iterdir()} - {*written, *drawn}:
        file.unlink()
    for file, text in written.items():
        file.write_text(text, encoding="utf-8")
    for file, figure in drawn.items():
        figure.savefig(file, dpi=110)
