"""Phrases that readers did not understand, and that must not come back: in docs, docstrings, messages and ``--help``."""

import re
from pathlib import Path

import pytest

from clickgym.command_line import COMMANDS, _load

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "envs", "agents", "lab/src", "lab/submissions", "docs", "examples", "benchmarks")
FILES = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "CITATION.cff", "paper.md")
SUFFIXES = (".py", ".md", ".toml", ".html", ".ipynb")
PHRASES = {
    "not to be told costs": "agents that must estimate ... lose little against agents that are given it",
    "who expects change": "if users' preferences change abruptly, use ...",
    "safe is slow": "stays close to the production ranking and therefore learns slowly",
    "exact ruler": "regret is computed exactly from the click model",
    "same ruler": "measured in the same way",
    "what takes part, and what": "say what the function parses and returns",
    "seeds hang on": "seeds derive from the label",
    "stands in braces": "is written in braces",
    "and their like stand": "name them: PPO, A2C, DQN, ...",
    "what each will cost": "the command estimates the time of the runs",
    "later on that way": "later, also during the development of version 2",
    "what names the model": "an estimator whose model_class is the model",
    "who reads the file needs": "a program that reads the file must import ...",
    "whoever has come": "truncated after N sessions",
    "what cannot work ends": "a combination that cannot work raises an error",
    "says in a line each": "raises an error with one line for each fault",
    "teaches the shell": "installs shell completion",
    "tried to break this": "attempts to break clickgym",
    "who meets the lists": "base class of simulated users",
    "whole or not there": "written atomically",
    "files that are whole": "written atomically",
    "how often each leader has led": "counts how often each leader was chosen",
    "results that are passed on": "compact result files that ship with the package",
    "weigh as few": "contain only N effective sessions",
    "those that tell of the list": "contain only N effective sessions for the list",
    "is no parameter:": "has no argument",
    "gone on with": "resumed",
    "only the newcomer plays": "runs only AGENT",
    "runs the code of its agent!": "Warning: this executes the submitted agent's code",
    "nothing else excuses": "an agent may skip a task only for these reasons",
    "for what is going on": "say what the function returns or does",
    "the line of an agent.": "say what the function returns or does",
    "what there is to run": "the names of environments, instances, agents, metrics and studies",
    "go on later with": "resume with the same command",
    "too, with fonts that": "also write ..., with embedded fonts",
    "made if need be, and": "created if missing",
    "what a list earns:": "the reward of a session is ...",
    "what it leaves over": "its errors",
    "and no promise": "test the list in an experiment",
    "what speaks assumes": "all estimates of it assume a click model",
    "nothing in the log tells": "the log cannot show it",
    "lost least": "had the lowest regret",
    "nothing is left of": "the difference is explained",
    "takes a decision back": "revises a decision",
    "before noisy users": "with noisy users",
    "to be told is": "being told is",
}
"""What to write instead, by phrase; lower case, spaces stand for any white space."""


def texts(folder):
    if folder not in FOLDERS:
        return [ROOT / name for name in FILES]
    paths = sorted((ROOT / folder).rglob("*"))
    return [path for path in paths if path.suffix in SUFFIXES and not {"results", "sweeps"} & {*path.relative_to(ROOT).parts}]


def phrases_in(text):
    flat = re.sub(r"\s+", " ", text).lower()
    return [phrase for phrase in PHRASES if phrase in flat]


def test_a_phrase_is_found_across_lines():
    assert phrases_in("made if need be, gone on\n    with if begun") == ["gone on with"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_texts_are_without_these_phrases(command, printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # no line end and no frame within a sentence
    text = printed([*command.split(), "--help"])
    assert "Usage" in text
    assert phrases_in(text) == []


@pytest.mark.parametrize("folder", [*FOLDERS, "."])
def test_phrases_that_nobody_understood_do_not_come_back(folder):
    found = [
        f"{path.relative_to(ROOT)}: {phrase!r}; write: {PHRASES[phrase]}"
        for path in texts(folder)
        for phrase in phrases_in(path.read_text(encoding="utf-8"))
    ]
    assert found == []


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "paper.md")] + sorted((ROOT / "docs").rglob("*.md"))
OF_OTHERS = {
    *("--slates", "--epsilon", "--cover", "--squarecb", "--cb_type", "--save_resume", "--ccb_explore_adf"),  # Vowpal Wabbit
    "--per-module",  # benchmarks/reliability/mutations.py
}
"""Options of other programs that pages name by themselves."""
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def options_of(command):
    return {name for parameter in _load(command).params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def options_named(text):
    """Of a page the options in commands, with the command, and those that stand alone in a code span."""
    text = re.sub(r"\\\n\s*", " ", text)
    in_commands = [
        (command, option)
        for command, rest in re.findall(rf"clickgym ({'|'.join(COMMANDS)})\b((?:(?!clickgym )[^`|&#)\n])*)", text)
        for option in OPTION.findall(rest)
    ]
    alone = [option for span in re.findall(r"`(--[^`\n]*)`", text) for option in OPTION.findall(span)]
    return in_commands, alone


def test_options_are_found_in_commands_of_several_lines_and_in_spans():
    text = "```\nclickgym fit log.csv \\\n    --model PBM | cat --n\n```\n`--top 5` and `clickgym run X --out Y`"
    assert options_named(text) == ([("fit", "--model"), ("run", "--out")], ["--top"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_a_page_names_exists(page):
    in_commands, alone = options_named(page.read_text(encoding="utf-8"))
    assert [(command, option) for command, option in in_commands if option not in options_of(command)] == []
    every = OF_OTHERS.union(*map(options_of, COMMANDS))
    assert [option for option in alone if option not in every] == []
