"""Tests that every example runs at a small size, and that the Python code of the pages runs."""

import re
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.bench import tasks
from clickgym.envs import load_instance
from tests.helpers.judged_queries import write_judgments

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

IN_PARTS = {"contextual": "Judged queries"}
"""Pages whose programs run in two parts: those before this heading and those after it."""

needs_rl = pytest.mark.skipif(
    find_spec("stable_baselines3") is None, reason='needs pip install "clickgym[rl]"'
)


@pytest.fixture
def example(program, tmp_path):
    """What an example prints."""

    def run(command):
        name, *options = command.split()
        return program(ROOT / "examples" / name, *options, folder=tmp_path)

    return run


def text_of(page):
    """The text of a page before its heading in `IN_PARTS`, or, for ``contextual#Judged queries``,
    after this heading.
    """
    name, _, part = page.partition("#")
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    before, heading, after = text.partition(f"\n## {IN_PARTS.get(name)}\n")
    return heading + after if part else before


def code_of(page):
    return re.findall(r"```python\n(?!>>>)(.*?)```", text_of(page), flags=re.DOTALL)


def shown_by(page):
    """The output that a page shows below the programs that the tests do not shorten."""
    pairs = r"```\w+\n((?:(?!```).)*)```\n\n```text\n(.*?)```"
    found = re.findall(pairs, text_of(page), flags=re.DOTALL)
    return [shown for code, shown in found if shorten_runs(code) == code]


FIRST = {
    "show_a_list.py": "random lists get 679 clicks in an episode, and lose 426 against the best",
    "compare_algorithms.py": "comparison.png has the figure",
    "your_own_algorithm.py": "\nmine, 0.2 ",
    "train_ppo.py": "\nPPO ",
    "your_own_training_loop.py": "\nREINFORCE ",
    "your_own_click_model.py": "\ntiring users\n",
    "users_who_change.py": "\nthey change\n",
    "fit_a_log.py": "\nFixed ",
    "tune_with_optuna.py": "\ntuned ",
}
"""The first programs of `examples/README.md`, in its order, and a part of what they print."""
SHORTER = {
    r'\["PBM", "DBN"\]': '["PBM"]',
    r', "yandex-9910".*\]': "]",
    r"\b20_480": "512",
    r"\[0, 5_000, 12_000\]": "[0, 30, 60]",
    r"\b(5|10|20)_000": "100",
    r"runs=\d": "runs=2",
    r"\b2_000": "600",
    r"n_trials=\d": "n_trials=1",
    r"eval_freq=\d+": "eval_freq=8",
}


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize(
    "is_short",
    [pytest.param(True, marks=pytest.mark.uncompiled), pytest.param(False, marks=pytest.mark.slow)],
)
def test_first_programs(name, is_short, program, tmp_path):
    """Each program runs; the slow tests run it at full size."""
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    for library in ("stable_baselines3", "optuna"):
        if library in code or name == "tune_with_optuna.py":
            pytest.importorskip(library)
    for full, short in SHORTER.items() if is_short else ():
        code = re.sub(full, short, code)
    (tmp_path / name).write_text(code, encoding="utf-8")
    assert FIRST[name] in program(tmp_path / name, folder=tmp_path)


@pytest.mark.uncompiled
def test_from_scratch(example, tmp_path):
    """The algorithm in plain NumPy loses as many clicks as the one in the package, up to chance."""
    printed = example("from_scratch.py --horizon 250 --runs 40 --out scratch.png")
    (plain, plus), (packaged, minus) = re.findall(r": +([\d.]+) ± ([\d.]+)", printed)
    assert abs(float(plain) - float(packaged)) < np.hypot(float(plus), float(minus)) * 1.5
    assert (tmp_path / "scratch.png").exists()


@pytest.mark.uncompiled
def test_films(example, tmp_path):
    """Ratings become attractions and features, and a linear agent learns their linear part."""
    rng = np.random.default_rng(1)
    users, films = np.nonzero(rng.random((30, 40)) < 0.7)
    stars = rng.integers(1, 11, len(users)) / 2
    rows = [f"{user},{film},{s},0" for user, film, s in zip(users, films, stars, strict=True)]
    (tmp_path / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *rows]))
    options = "ratings.csv --candidates 8 --positions 3"
    example(f"movielens.py {options} --out films.json")
    example(f"movielens.py {options} --out linear.json --linear")
    model = load_instance(tmp_path / "films.json").models["ContextualModel of UBM"]
    assert model.n_features == 21
    assert model.attraction[0] == pytest.approx(0.05 + 0.95 * (2 ** stars[users == 0] - 1) / 2**5)
    env = gym.make("ContextualUBMRank-v0", instance=str(tmp_path / "linear.json"))
    lost = [clickgym.run(agent, env, 1250, seed=0).regret[-1] for agent in ("LinearTS", "Random")]
    assert lost[0] < lost[1] / 2


CLEANRL = "cleanrl_style_ppo.py --sessions 256 --env "
EXAMPLES = {
    f"{CLEANRL} ContextualPBMRank-v0 --instance personal": "LinearTS ",
    f"{CLEANRL} CascadeMDPRank-v0 --gamma 0.967": "PPO ",
}


@needs_rl
@pytest.mark.uncompiled
@pytest.mark.parametrize("command", EXAMPLES)
def test_programs_that_train(example, command):
    """The programs run at a small size. Slow tests check what they learn."""
    assert EXAMPLES[command] in example(command)


@needs_rl
@pytest.mark.uncompiled
def test_policies_for_unseen_queries(program, tmp_path, monkeypatch):
    """PPO and each bandit play the test queries and the real queries, with fewer streams and
    episodes than in the example.
    """
    code = (ROOT / "examples" / "unseen_queries.py").read_text(encoding="utf-8")
    for full, small in {"40_000 //": "1_000 //", '400, "real": 320': '200, "real": 16'}.items():
        assert full in code
        code = code.replace(full, small)
    (tmp_path / "unseen_queries.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(ROOT / "examples")
    options = ["--horizon", "5", "--sessions", "2e3", "--figure", "unseen.svg", "--final"]
    printed = program(tmp_path / "unseen_queries.py", *options, folder=tmp_path)
    lost = re.findall(r"^(\w+), 5 sessions: [\d.]+ ± [\d.]+ lost by (\w+)", printed, re.MULTILINE)
    assert sorted(lost) == [
        (split, name)
        for split in ("real", "test")
        for name in sorted(["PPO", "MixTS", "CascadeTS", "CascadeKLUCB", "BCMPTS", "Random"])
    ]
    assert (tmp_path / "unseen.svg").exists()


@needs_rl
@pytest.mark.slow
def test_loop_in_the_style_of_cleanrl_learns(example):
    """Rule: in 9,984 sessions PPO loses less than 60 % of what random lists lose. Null: PPO does
    not learn, and loses as much as random lists, within 2 %. With seed 0 it lost 41 %.
    """
    printed = example("cleanrl_style_ppo.py --sessions 1e4 --seed 0")
    found = re.findall(r"(\w+) +regret +([\d,]+) in 9,984 sessions", printed)
    lost = {agent: float(regret.replace(",", "")) for agent, regret in found}
    assert lost["CascadeKLUCB"] < lost["PPO"] < 0.6 * lost["Random"]


@needs_rl
def test_program_of_the_page_on_rl_learns(capsys):
    """Rule: the mean return of ten episodes is above 85 % of the best. Null: the policy has learned
    nothing, and earns as much as random lists, 61 % of the best, within 3 % (six standard errors).
    """
    codes = [*code_of("rl"), *code_of("own_rl_loop")]
    code = "".join(code for code in codes if not re.match(r"# \w+\.py\n", code))
    pytest.importorskip("optuna")
    code = re.sub("8_192|4_?096", "512", shorten_runs(code))
    exec(code.replace("eval_freq=32", "eval_freq=8"), {})
    printed = capsys.readouterr().out
    mean, best = map(int, re.match(r"(\d+) ± \d+ of (\d+) clicks\n", printed).groups())
    assert 0.85 * best < mean < 1.05 * best


def test_search_of_the_page_on_rl_learns():
    """Rule: in 20,000 sessions, the search loses less than 80 % of the 6,413 clicks that random
    lists lose, as a mean of ten trainings. It lost 68 %.
    """
    (code,) = (code for code in code_of("own_rl_loop") if code.startswith("# cross_entropy.py\n"))
    exec(code, defined := {})
    lost = [defined["train"](seed, 20_000).regret[-1] for seed in range(10)]
    assert np.mean(lost) < 0.8 * 6413


# ------------------------------------------------------------ the code of pages


SHORTER_RUNS = {
    '("PDGD:eta=0.1", "DBGD", "LinearTS", "C2UCB:alpha=0.1")': '("PDGD:eta=0.1",)',
    "agents, 1000, 10, instances": "agents, 100, 2, instances",
    "checkpoints=range(100, 1001, 100)": "checkpoints=range(10, 101, 10)",
    "starts=[0, 5_000]": "starts=[0, 50]",
    "0_000, runs=5": "00, runs=2",
    "env, 10_000, seed=0": "env, 500, seed=0",
    "20_000, seed=0)  # or": "600, seed=0)  # or",
    "20_000, seed=0": "2_000, seed=0",
    "100_000, seed=0": "1_000, seed=0",
    "10_000, 5)": "200, 2)",
    "n_trials=30": "n_trials=2",
    "10_000, runs, instances": "100, runs, instances",
    "runs=20, seed": "runs=2, seed",
    "runs=100, seed": "runs=3, seed",
    "100_000,\n    5,": "300, 2,",
    "10**4,\n    5,": "100, 2,",
    "permutations(range(12), 4)": "permutations(range(6), 4)",
}


def shorten_runs(code):
    for full, small in SHORTER_RUNS.items():
        code = code.replace(full, small)
    return code


ELSEWHERE = {
    "wrappers": "tests/docs/test_wrappers_page.py, tests/docs/test_other_libraries.py",
    "idea_to_table": "tests/docs/test_tutorials.py",
    "first_log": "tests/docs/test_first_log.py",
    "rl": "above",
    "own_rl_loop": "above",
}
"""Pages whose code other tests run."""
EXACT = ("agents", "compiled_agent", "contextual", "environments", "stateful_users")
"""Pages that show exactly what their programs print."""
PAGES = [
    page
    for page in [
        *(file.stem for file in sorted(DOCS.glob("*.md"))),
        *("#".join(parts) for parts in IN_PARTS.items()),
        "site/index",
    ]
    if page not in ELSEWHERE and code_of(page)
]


@pytest.mark.uncompiled
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "page",  # the contextual one shows what many sessions give
    [pytest.param(page, marks=[pytest.mark.compiled] * (page == "contextual")) for page in PAGES],
)
def test_code_of_a_page_runs(page, program, tmp_path, monkeypatch):
    """A block that begins with the name of a file is written to that file; the other blocks
    together form a script.
    """
    monkeypatch.setattr(tasks, "ABILITIES", dict(tasks.ABILITIES))  # a page adds one
    for name in ("train.txt", "test.txt"):
        write_judgments(tmp_path / name, 10)
    script = []
    for code in map(shorten_runs, code_of(page)):
        file = re.match(r"# (\w+\.py)\n", code)
        if file:
            (tmp_path / file[1]).write_text(code, encoding="utf-8")
        else:
            script.append(code)
    main = f"if __name__ == '__main__':\n    exec({''.join(script)!r})\n"
    (tmp_path / "page.py").write_text(main, encoding="utf-8")
    printed = program(tmp_path / "page.py", folder=tmp_path)
    if page in EXACT:
        for shown in shown_by(page):
            assert shown in printed
