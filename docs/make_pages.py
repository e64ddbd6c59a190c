"""Write what is made from docstrings and from results that ship: the pages of environments and studies, tables, figures.

make pages
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import polars
import prose
import yaml
from matplotlib.figure import Figure
from pages.citing import bibtex, citing_page
from pages.environments import page, pictures

from clickgym import Results, Tuning, list_agents, tune
from clickgym.agents import LEARNERS
from clickgym.core.files import read_json
from clickgym.core.formats import amount, duration, markdown_table, markdown_text, regret_text
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, load_instance
from clickgym.runner import PUBLISHED, STANDS, stands
from clickgym.runner.describe import abilities
from clickgym.runner.reports.exports import to_markdown
from clickgym_lab.bench.boards import boards_notes, boards_tables, source_file
from clickgym_lab.bench.conclusions import RECOMMENDING, conclusions, own_agent, referee
from clickgym_lab.bench.figures import leaderboard_figure
from clickgym_lab.bench.leaderboard import Place, row_of
from clickgym_lab.bench.leaderboard import header as heads
from clickgym_lab.bench.pages import leaderboard_html
from clickgym_lab.bench.protocol import CURRENT, Board
from clickgym_lab.bench.task import Task
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.page import figure_name
from clickgym_lab.studies.page import page as study_page
from clickgym_lab.studies.play import draw, findings, read_study
from clickgym_lab.studies.setting import Setting, by_setting
from clickgym_lab.studies.study import CM, number
from clickgym_lab.studies.warm_start import warm

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FOLDER = DOCS / "environments"
RESULTS, PAGES, SWEEPS, TUNED = ROOT / "lab" / "results", DOCS / "studies", DOCS / "sweeps", DOCS / "tuned"
LATE = ("name", "learns from", "log", "candidates", "replace", *STANDS)
"""The columns of the table of clicks as they come."""
SHOWN = ("contextual", "first", "rl")
"""The sweeps of which a page shows the figure."""
MEASUREMENTS = ROOT / "benchmarks" / "README.md"
STABILITY = ROOT / "benchmarks" / "reliability" / "stability.json"


def pages() -> dict[Path, str]:
    """The text of every page, by its file."""
    environments = ENVIRONMENTS | CONTEXTUAL | MEMORY
    texts = {FOLDER / f"{name}.md": f"# {name}\n\n{page(name)}" for name in environments}
    texts |= {FOLDER / file: picture for name in environments for file, picture in pictures(name).items()}
    rows = [(f"[`{name}`](environments/{name}.md)", environment.about) for name, environment in environments.items()]
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
    readme, listed, named = ROOT / "README.md", DOCS / "environments.md", DOCS / "agents.md"
    made = {
        readme: _between(readme.read_text(encoding="utf-8"), "teaches", "\n".join(conclusions(PAGE)[:RECOMMENDING])),
        listed: _fill(listed.read_text(encoding="utf-8"), "environments", ("id", "users"), rows),
        named: _fill(named.read_text(encoding="utf-8"), "agents", ("name", "source", "made for", "is given"), agents),
    }
    made[named] = _fill(made[named], "late", LATE, late)
    made |= {DOCS / "citing.md": citing_page(), ROOT / "paper.bib": bibtex()}
    made[ROOT / ".zenodo.json"] = _zenodo()
    texts |= made | _sweeps() | _studies() | _when_rl_pays() | _practice() | _leaderboard() | _rules()
    old = prose.entries()
    new = prose.computed(old)
    for file in prose.marked():
        texts[file] = prose.renewed(texts.get(file) or file.read_text(encoding="utf-8"), old, new)
    return texts | {prose.FILE: prose.written(new)}


DESCRIPTION = (
    "Gymnasium environments in which an agent ranks items and learns from simulated clicks, published algorithms, a fast "
    "runner, and a scorecard: a frozen benchmark, whose reference results lie in the archive with a data card "
    "(lab/src/clickgym_lab/bench/data). All users are simulated; there are no data of persons."
)
"""Of the archive of a release."""


def _zenodo() -> str:
    """What an archive of a release says of it: the facts of ``CITATION.cff``."""
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    record = {
        "title": facts["title"],
        "description": DESCRIPTION,
        "upload_type": "software",
        "access_right": "open",
        "license": facts["license"],
        "version": str(facts["version"]),
        "publication_date": str(facts["date-released"]),
        "language": "eng",
        "creators": [{"name": author["name"]} for author in facts["authors"]],
        "keywords": facts["keywords"],
        "related_identifiers": [
            {"identifier": facts["repository-code"], "relation": "isSupplementTo", "scheme": "url", "resource_type": "software"}
        ],
    }
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _linked(shown_by: str) -> str:
    """What shows that an agent stands something, with a link to the page of a study, and code where an argument is needed."""
    study, comma, condition = shown_by.partition(", ")
    linked = f"[{study}](studies/{study}.md)" if study in STUDIES else study
    return linked + comma + re.sub(r"\w+=", r"`\g<0>`", condition)


@cache
def sweeps() -> dict[str, Results]:
    """What `clickgym run` wrote into the folders that ship, by the name of their figure."""
    return {folder.name: Results(folder) for folder in sorted(SWEEPS.iterdir())}


@cache
def settings() -> dict[str, list[Setting]]:
    """Every study on each set of queries whose results ship, judged."""
    shipped = [name for name in STUDIES if (RESULTS / f"{name}.parquet").exists()]
    return {name: by_setting(name, read_study(name, RESULTS)) for name in shipped}


def _sweeps() -> dict[Path, str]:
    """The pages that show sweeps, with their tables; that of generic reinforcement learning has those of its defaults, too."""
    first = sweeps()["first"]
    scoreboard, contextual = DOCS / "scoreboard.md", DOCS / "contextual.md"
    return {
        scoreboard: _between(
            scoreboard.read_text(encoding="utf-8"), "results", to_markdown(first.frame, first.timings, first.config)
        ),
        contextual: _fill(contextual.read_text(encoding="utf-8"), "sweep", *_regrets(sweeps()["contextual"])),
        DOCS / "rl.md": _fill(_learners(), "sweep", *_regrets(sweeps()["rl"])),
    }


def _regrets(results: Results) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of a table of final regrets, environments side by side, in the order of the first."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in results.table().iter_rows(named=True):
        rows.setdefault(row["agent"], {})[row["env"]] = row
    envs = results.config["envs"]
    header = ("agent", *(f"regret, `{env.rpartition('instance=')[2]}`" for env in envs), "a session takes")
    table = []
    for agent, of_env in rows.items():
        times = [duration(row["ns_per_session"]) for row in sorted(of_env.values(), key=lambda row: row["ns_per_session"])]
        regrets = (regret_text(of_env[env]["regret"], of_env[env]["regret_ci95"]) for env in envs)
        table.append((f"`{agent}`", *regrets, " to ".join(dict.fromkeys(times))))
    return header, table


def _studies() -> dict[Path, str]:
    """The pages of the studies, their findings, and the page that lists them all."""
    texts = {PAGES / f"{name}.md": study_page(name, found) for name, found in settings().items()}
    texts |= {RESULTS / f"{name}.json": findings(name, found) for name, found in settings().items()}
    index, lines = [], []
    for name, found in settings().items():
        study = STUDIES[name]
        counts = [Counter(finding.verdict for _, finding in setting.found) for setting in found]
        told = "; ".join(f"{setting.name}: {_counts(count)}" for setting, count in zip(found, counts, strict=True))
        index.append((f"[`{name}`](studies/{name}.md)", study.paper, study.title, told))
        lines += [f"### [{name}](studies/{name}.md)", "", f"{study.title}; {study.paper}.", ""]
        lines += [f"- {setting.name} queries: {_size(setting)}" for setting in found]
        header = ["statement", "the paper", *(f"{setting.name} queries" for setting in found)]
        rows = [
            [statement.text, statement.paper, *(f"**{finding.words}**: {finding.measured}" for finding in beside)]
            for statement, *beside in _beside(found)
        ]
        lines += ["", *markdown_table([header, *(_escaped(row) for row in rows)]), ""]
    text = (DOCS / "studies.md").read_text(encoding="utf-8")
    text = _fill(text, "studies", ("study", "paper", "what it shows", "statements: yes, no, cannot tell"), index)
    return texts | {DOCS / "studies.md": _between(text, "verdicts", "\n".join(lines))}


def _beside(found: Sequence[Setting]) -> Iterator[tuple[Any, ...]]:
    """Each statement, with what was found on each set of queries."""
    for every in zip(*(setting.found for setting in found), strict=True):
        yield every[0][0], *(finding for _, finding in every)


def _counts(verdicts: Counter[str]) -> str:
    return ", ".join(str(verdicts[verdict]) for verdict in ("yes", "no", "cannot tell"))


def _size(setting: Setting) -> str:
    """What the verdicts rest on."""
    sizes = []
    for each, result in zip(setting.plans, setting.results, strict=True):
        instances = len(result.made["instances"])
        sizes.append(f"{instances:,} instance{'s' if instances > 1 else ''}, {each.runs:,} runs of {each.horizon:,} sessions")
    return "; ".join(dict.fromkeys(sizes))


def _escaped(row: Sequence[str]) -> list[str]:
    """Cells as Markdown shows them, except the verdicts, which are set in bold."""
    return [re.sub(r"^\\\*\\\*(.*?)\\\*\\\*", r"**\1**", markdown_text(cell)) for cell in row]


def _when_rl_pays() -> dict[Path, str]:
    """The page of users with a memory, with the table of its study, and what the families of these users lose by impatience."""
    text = (DOCS / "when_rl_pays.md").read_text(encoding="utf-8")
    families = []
    for name in ("independent", "clickbait", "clickbait:query=yandex-9982", "habit"):
        users = load_instance(name).model("CascadeMDP")
        best = users.first @ users.value
        lost = [f"{max(1 - users.first @ users.policy_value(policy) / best, 0.0):.1%}" for policy in users.myopic()]
        sizes = (users.n_states, users.n_items, users.n_positions, f"{users.mean_sessions:g}")
        families.append((f"`{name}`", *map(str, sizes), f"{best:.2f}", *lost))
    header = ("family", "S", "L", "K", "H", "a life earns at best", "lost by the best myopic lists", "by the worst")
    text = _fill(text, "families", header, families)
    if "when-rl-pays" in settings():
        ((_, (header, *rows)),) = (setting.table for setting in settings()["when-rl-pays"] if setting.table is not None)
        text = _fill(text, "regret", header, rows)
    return {DOCS / "when_rl_pays.md": text}


PRACTICE = (
    ("clicks at once", "late-clicks", ""),
    ("in batches of 1,000", "late-clicks", ":arrival=batch:1000"),
    ("in batches of 5,000", "late-clicks", ":arrival=batch:5000"),
    ("clicks of half the sessions lost", "late-clicks", ":arrival=immediate:lost=0.5"),
    ("no bots, no new items", "click-farms", ""),
    ("a farm in 0.25 % of the sessions", "click-farms", ":bots=farm:share=0.0025"),
    ("a farm in the first 1,000", "click-farms", ":bots=farm:first=1000"),
    ("a new item every 10,000 sessions", "churn", ":churn=0.0001"),
    ("a new item every 1,000", "churn", ":churn=0.001"),
)
"""What users do in the table of the page for practice, each with a part of a study and arguments of its environment; a study
of other length begins with a column of its own without any of it."""
IN_PRACTICE = (
    "PBMHB", "CascadeTS", "PBMTS", "GRAB", "CascadeKLUCB", "GLRCascadeKLUCB", "UniRank", "TopRank", "EpsilonGreedy",
    "MergeRank", "BatchRank", "CascadeSWUCB", "CascadeDUCB", "RankedExp3", "BubbleRank", "Fixed",
)  # fmt: skip


def _practice() -> dict[Path, str]:
    """The page for practice, with what agents lose when clicks come late, are lost or false, when items change, after a log."""
    names = ("late-clicks", "click-farms", "churn", "warm-start")
    curves = {part: each for name in names for part, each in settings()[name][0].evidence.items()}

    def share(part: str, env: str, agent: str) -> str:
        """In percent of what random lists lose there; empty where the agent does not play."""
        if agent not in curves[part].agents:
            return ""
        means = [curves[part].end_units(env, label).mean() for label in (agent, "Random")]
        return number(100 * means[0] / means[1], 2)

    rows = []
    for agent in IN_PRACTICE:
        without, after = (share("warm-start", CM, label) for label in (agent, warm(agent, 100_000)))
        log = without and f"{without} → {after or '–'}"
        rows.append((f"`{agent}`", *(share(part, f"{CM}{arguments}", agent) for _, part, arguments in PRACTICE), log))
    header = ("agent", *(head for head, *_ in PRACTICE), "no log → a log of 100,000")
    path = DOCS / "practice.md"
    return {path: _fill(path.read_text(encoding="utf-8"), "practice", header, rows)}


SORTED = "The same, to be sorted and filtered: [{0}]({0}), which opens in any browser, without a network."


def _leaderboard() -> dict[Path, str]:
    """The boards in Markdown, and as a page to sort and filter; what they teach; and the tasks."""
    current, own = DOCS / "leaderboard.md", DOCS / "ubm_ts.md"
    boards = _between(current.read_text(encoding="utf-8"), "boards", "\n\n".join(_boards()))
    return {
        current: _between(boards, "teaches", "\n".join(conclusions(PAGE))),
        DOCS / "referee.md": referee(list(read_json(STABILITY).values())),
        own: _between(own.read_text(encoding="utf-8"), "scores", own_agent()),
        DOCS / "leaderboard.html": leaderboard_html(),
        DOCS / "tasks.md": _tasks(),
    }


def _boards() -> Iterator[str]:
    """The boards in Markdown, each with a heading."""
    yield SORTED.format("leaderboard.html")
    for table in boards_tables(CURRENT):
        yield f"### {table.title}"
        yield table.about
        rows = _rows(table.places, table.board)
        yield "\n".join(markdown_table([heads(CURRENT, table.board), *rows]))
    yield from boards_notes(CURRENT)


def _rows(places: Iterable[Place], board: Board) -> list[list[str]]:
    """The rows of a board, with a link from each agent to its source, and intervals that stay in one line."""
    rows = []
    for place in places:
        cells = dict(zip(heads(CURRENT, board), row_of(place, CURRENT, board), strict=True))
        name, comma, setting = place.agent.partition(",")
        cells["agent"] = f"[`{name}`](../{source_file(name)}){comma}{setting}"
        cells["overall"] = cells["overall"].replace(" ", "\N{NO-BREAK SPACE}")
        rows.append([*cells.values()])
    return rows


def _rules() -> dict[Path, str]:
    """The rules of version 2 of the scorecard, with what the rules of its tasks make of the test set."""
    rows = []
    for ability, about in CURRENT.abilities.items():
        own = [task for task in CURRENT.candidates if task.ability == ability]
        models, [horizon] = dict.fromkeys(task.click_model for task in own), {task.horizon for task in own}
        dropped = ", ".join(f"`{task.name}`" for task in own if not CURRENT.anchor(task).kept)
        counts = [len(own), len({task.query for task in own}), sum(task.quick for task in own)]
        rows.append((f"`{ability}`", about, *map(str, counts), ", ".join(models), f"{horizon:,}", dropped or "–"))
    header = ("ability", "what it is about", "tasks", "instances", "in `--quick`", "click models", "sessions", "dropped")
    path = DOCS / "scorecard.md"
    return {path: _fill(path.read_text(encoding="utf-8"), "abilities", header, rows)}


def _tasks() -> str:
    """The page of the tasks of the scorecard, each with its anchors, and whether it counts."""
    rows = [("task", "environment", "instance", "what it measures", "random", "best", "whose", "counts")]
    parts = [
        "# The tasks of the scorecard",
        f"The tasks of version {CURRENT.version} of the [protocol](scorecard.md), grouped by ability. `clickgym run` accepts "
        "the names of environments and instances. *random* is the loss of random lists, *best* the loss of the best agent of "
        "the reference, and *whose* its name. A task counts if the two losses differ by a factor of three or more.",
    ]
    for ability, about in CURRENT.abilities.items():
        own = [
            (f"`{task.name}`", f"`{task.env}`", f"`{task.instance}`", task.about, *_anchors(task))
            for task in CURRENT.candidates
            if task.ability == ability
        ]
        parts += [f"## {ability}", f"{about[0].upper()}{about[1:]}.", "\n".join(markdown_table([*rows, *own]))]
    return "\n\n".join(parts) + "\n"


def _anchors(task: Task) -> tuple[str, ...]:
    """The anchors of a task, and whether it counts."""
    anchor = CURRENT.anchor(task)
    return amount(anchor.random), amount(anchor.best), f"`{anchor.agent}`", "yes" if anchor.kept else "no"


PAGE = "https://github.com/clickgym/clickgym/blob/main/docs"


def figures() -> Iterator[tuple[Path, Figure]]:
    """The leaderboard, the figures of sweeps, and that of every study on each set of queries, by their files."""
    yield DOCS / "leaderboard.png", leaderboard_figure(CURRENT)
    for name in SHOWN:
        yield DOCS / f"{name}.png", sweeps()[name].plot()
    for found in settings().values():
        for setting in found:
            yield PAGES / f"{figure_name(setting, found)}.png", draw(setting)


def _learners() -> str:
    """The page of generic reinforcement learning, with the tables of its algorithms, their settings, times and protocols."""
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
    text = _fill(text, "defaults", ("", "argument", "default", "why"), defaults)
    header = ("agent", "regret", "tuned", "seconds", "tuned", "`settings=tuned` stands for", "matter most")
    text = _fill(text, "tuned", header, _tuned())
    header, rows = _regrets(sweeps()["relatives"])
    text = _fill(text, "relatives", header, rows)
    times = re.search(r"<!-- start of learners.py -->\s+(.*?)\s+<!-- end", MEASUREMENTS.read_text(encoding="utf-8"), re.DOTALL)
    assert times
    return _between(text, "times", times[1])


@cache
def tuning(name: str) -> Tuning:
    """What `clickgym tune` proposed for a learner; it is finished, so that nothing is played."""
    config = read_json(TUNED / name / "tuning.json")
    searched = ",".join(f"{key}={values}" for key, values in config["search_space"].items())
    arguments = {key: config[key] for key in ("horizon", "runs", "instances", "seed")}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*made with other versions", UserWarning)
        budget = config["result"]["budget"]
        return tune(f"{name}:{searched}", config["envs"], budget, **arguments, out=TUNED / name, progress=False)


def _tuned() -> Iterator[Sequence[str]]:
    """Rows of the table of tuned settings, beside the defaults."""
    for name in LEARNERS:
        settings = tuning(name).agent.partition(":")[2].replace(",", ", ").replace("[64, 64]", "[64,64]")
        (first, share), (second, other), *_ = tuning(name).importances().items()
        regret, seconds = _cost(name)
        tuned, tuned_seconds = _cost(f"{name}:settings=tuned") if settings else ("–", "–")
        most = f"`{first}` ({share:.2f}), `{second}` ({other:.2f})"
        yield (
            f"`{name}`",
            regret,
            tuned,
            seconds,
            tuned_seconds,
            f"`{settings}`" if settings else "no trial was better than the defaults",
            most,
        )


def _cost(agent: str) -> tuple[str, str]:
    """The regret of an agent in percent of random lists', mean and range of its runs; and the seconds of the fastest run."""
    results = sweeps()["learners"]
    ends = results.frame.filter(step=results.config["horizon"])
    random = ends.filter(agent="Random").group_by("instance").agg(random=polars.col("regret").mean())
    runs = ends.filter(agent=agent).join(random, on="instance")
    shares = 100 * runs["regret"] / runs["random"]
    seconds = results.timings.filter(agent=agent)["seconds"].min()
    return f"{shares.mean():.1f} % ({shares.min():.0f} to {shares.max():.0f})", f"{seconds:.0f}"


def _fill(text: str, name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Put a table between the marks of its name."""
    return _between(text, name, "\n".join(markdown_table([header, *rows])))


def _between(text: str, name: str, content: str) -> str:
    """Put something between the marks of its name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*{end}", lambda _: f"{start}\n{content}\n{end}", text, flags=re.DOTALL)


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
