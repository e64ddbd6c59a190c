"""How the files in this folder were made, once, by clickgym 2.0.0; later versions must open them and go on from them.

python make.py FOLDER [PART ...], with that version installed. `tests/test_compatibility.py` reads what it writes.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, FrozenPolicy
from clickgym.envs import load_instance
from clickgym.offline import ClickLog, compare, fit_models, read_log, write_tidy
from clickgym.runner.callback import Callback

L, K, D, S = 6, 3, 3, 2


def archive(folder: Path, kind: str = "zip") -> None:
    """Pack a folder of many small files; ``"xztar"`` is smaller where they are alike."""
    shutil.make_archive(str(folder), kind, folder)
    shutil.rmtree(folder)


def command(*words: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "clickgym", *words], check=True, cwd=cwd, stdout=subprocess.DEVNULL)


def write(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


# --------------------------------------------------------------------------------------------------------------- agents

LEARNED, AFTER, MOST_OPEN = 300, 20, 6
"""Sessions before an agent was saved and after it, and how many displays it kept open."""
LONGEST = 8
"""The longest delay of clicks, in sessions."""
START = LEARNED - LONGEST
"""From this session on all is kept that is needed to go on."""
LIFE = 7
"""After so many sessions a user leaves, and the next one comes."""
KNOWN = {
    "horizon": 1000,
    "ranking": [4, 0, 2],
    "initial": [4, 0, 2, 1, 5, 3],
    "examination": [0.9, 0.6, 0.3],
    "epsilon": 0.2,
    "n_features": D,
    "n_states": S,
    "mean_sessions": 7.0,
    "click_rewards": [[1.0, 0.5, 2.0, 1.0, 1.5, 0.25], [1.0] * L],
}
VARIANTS = {"UBMTS-safe": {"safe": True}, "CascadeKLUCB-corruption": {"corruption": 5.0}}
"""Agents beside those with the defaults."""


def agents(folder: Path) -> None:
    """Every agent after some sessions, saved after `update` and again after the next `rank`, and the lists that follow.

    Where the agent allows it, clicks come late or never, displays are dropped, lists were not seen to their end, candidates
    differ, items are replaced, and a log was learned first.
    """
    rng = np.random.default_rng(0)
    n = LEARNED + AFTER
    clicks = (rng.random((n, K)) < [0.5, 0.3, 0.2]).astype(int)
    clicks[::9, -1] = -1  # not seen
    features = rng.uniform(-0.5, 0.5, (n, L, D)).round(3)
    states, leaves = rng.integers(S, size=n), np.arange(1, n + 1) % LIFE == 0
    candidates = rng.random((n, L)) < 0.75
    candidates[:, :K] |= candidates.sum(axis=1, keepdims=True) < K
    candidates[::2] = True
    replaced = np.where(np.isin(np.arange(n), [60, 150, 240, LEARNED - 2, LEARNED + 10]), rng.integers(L, size=n), -1)
    arrives: list[list[int]] = [[] for _ in range(n)]
    for t, delay in enumerate(rng.integers(LONGEST, size=n)):
        if rng.random() < 0.9 and t + delay < n:
            arrives[t + delay].append(t)
    log = SimpleNamespace(
        rankings=np.array([rng.permutation(L)[:K] for _ in range(30)]),
        clicks=rng.integers(0, 2, (30, K)), context=rng.uniform(-0.5, 0.5, (30, K, D)).round(3),
    )  # fmt: skip
    lists, ends = {}, {}
    saved = folder / "saved"
    for point in ("after_update", "before_update"):
        (saved / point).mkdir(parents=True)
    published = AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS
    for name in [*published, *VARIANTS]:
        agent_class = published[name.partition("-")[0]]
        parameters = inspect.signature(agent_class).parameters
        arguments = {argument: value for argument, value in KNOWN.items() if argument in parameters}
        if name == "UBMLinUCB":
            arguments["examination"] = [[0.9, 0, 0], [0.6, 0.8, 0], [0.4, 0.5, 0.75]]
        agent = agent_class(L, K, seed=1, **arguments | VARIANTS.get(name, {}))
        in_time = agent.learns_from == "the last display"
        agent.max_open = MOST_OPEN
        if agent.learns_from == "any list":
            with suppress(TypeError):  # an agent of other users
                agent.learn(log)
        shown: list[Any] = []
        for t in range(n):
            if t == LEARNED:
                agent.save(saved / "after_update" / f"{name}.npz")
            given = [candidates[t]] if agent.takes_candidates() else []
            shown.append(agent.rank(observation(features, states, t, name), *given))
            if t == LEARNED:
                agent.save(saved / "before_update" / f"{name}.npz")
            for s in [t] if in_time else arrives[t]:
                number = agent.display - (t - s)
                if agent.is_open(number):
                    seen = np.maximum(clicks[s], 0) if in_time else clicks[s]
                    late = {} if in_time else {"display": number}
                    agent.update(observation(features, states, s, name), shown[s], seen, float((seen > 0).sum()), **late)
            if replaced[t] >= 0 and agent.can_replace():
                agent.replace(replaced[t])
            if leaves[t]:
                agent.leave()
        lists[name] = np.array(shown)[START:].tolist()
        ends[name] = [agent.display, agent.dropped, agent.n_open]
    arrays = {"clicks": clicks, "features": features, "states": states, "leaves": leaves, "candidates": candidates}
    after = {key: array[START:].tolist() for key, array in (arrays | {"replaced": replaced}).items()}
    after["arrives"] = [[s - START for s in of if s >= START] for of in arrives[START:]]
    write(folder / "lists.json", {"start": LEARNED - START, **after, "lists": lists, "ends": ends})
    archive(saved, "xztar")


def observation(features: Any, states: Any, t: int, name: str) -> dict[str, Any]:
    """What an agent observes; those of one agent are the same in all sessions."""
    return {"features": features[START if name == "RecurRank" else t], "state": int(states[t])}


# ------------------------------------------------------------------------------------------------------------- learners

LEARNERS = {
    "PPO": {"n_envs": 8, "n_steps": 8, "batch_size": 32, "n_epochs": 2, "net_arch": [8]},
    "A2C": {"n_envs": 8, "n_steps": 8, "net_arch": [8]},
}
TASK = {"id": "PBMRank-v0", "instance": "uniform:n_items=6,n_positions=3,seed=1"}


def learners(folder: Path) -> None:
    """Learners whose actions are codes: their losses, weights as arrays, and the lists of the frozen policy.

    A policy of weights alone, of NumPy, plays by codes, by scores and item by item.
    """
    then: dict[str, Any] = {"task": TASK}
    arrays = {}
    clicks = np.random.default_rng(0).integers(0, 2, (20, K))
    for name, settings in LEARNERS.items():
        learner = clickgym.agents.LEARNERS[name](L, K, actions="codes", seed=1, **settings)
        first = clickgym.run(learner, gym.make(**TASK), 256, seed=3).regret.tolist()
        for key, weights in learner.model.policy.state_dict().items():
            arrays[f"{name}/{key}"] = weights.numpy().copy()
        frozen = FrozenPolicy(L, K, model=learner.model, actions=learner.actions, items=learner.items)
        lists = [frozen.rank(one.astype(np.int8)).tolist() for one in clicks]
        regret = clickgym.run(frozen, gym.make(**TASK), 50, seed=4).regret.tolist()
        then[name] = {
            "settings": settings, "items": learner.items.tolist(), "regret": first, "lists": lists, "frozen": regret,
            "again": clickgym.run(learner, gym.make(**TASK), 128, seed=5).regret.tolist(),
        }  # fmt: skip
    then["clicks"] = clicks.tolist()
    rng = np.random.default_rng(6)
    matrix, then["policies"] = rng.normal(size=(L, K)).round(3), {}
    for actions in ("codes", "scores", "items"):
        policy = FrozenPolicy(L, K, model=_Linear(matrix, actions), actions=actions, items=[2, 0, 5, 1, 4, 3])
        lists = [policy.rank(one if actions != "items" else {"observation": one}).tolist() for one in clicks]
        then["policies"][actions] = {
            "lists": lists,
            "regret": clickgym.run(policy, gym.make(**TASK), 50, seed=4).regret.tolist(),
        }
    then["matrix"] = matrix.tolist()
    write(folder / "then.json", then)
    np.savez_compressed(folder / "weights.npz", **arrays)


class _Linear:
    """Scores of items are a matrix times the last clicks; a code is the place of the best item among those left."""

    def __init__(self, matrix: Any, actions: str) -> None:
        self.matrix, self.actions = matrix, actions

    def predict(self, observed: Any, deterministic: bool = True) -> Any:
        clicks = np.asarray(observed["observation"] if self.actions == "items" else observed)
        scores = self.matrix @ (1 + clicks.ravel()[:K])
        if self.actions == "scores":
            return scores
        if self.actions == "codes":
            return np.array([np.argmax(scores[: L - k]) for k in range(K)])
        return np.argmax(np.where(observed["placed"].any(axis=0), -np.inf, scores))


# ------------------------------------------------------------------------------------------------------------ instances

OPTIONS = {
    "late": {"arrival": "delay:geometric:5:lost=0.1"},
    "batch": {"arrival": "batch:20", "bots": "farm:share=0.2"},
    "churn": {"churn": 0.02, "available": 5},
    "all": {"arrival": "delay:3", "bots": "random:share=0.1", "churn": 0.01, "available": 5},
}
"""Options of an environment, which stand in its name: ``PBMRank-v0:arrival=batch:20,...``."""
INSTANCES = {
    "in-production": "in-production:n_items=6,n_positions=3,seed=1",
    "switching": "li2019-switching:n_positions=3,n_epochs=4,length=50,seed=1",
    "linear": "linear:n_items=5,n_positions=3,n_features=4,n_pool=12,n_users=6,seed=1",
    "clickbait": "clickbait:n_items=5,n_positions=2,seed=1",
}


def instances(folder: Path) -> None:
    """Instances of some families, of all kinds of users; the regret in their environments, also with options."""
    played: dict[str, dict] = {}
    for name, spec in INSTANCES.items():
        load_instance(spec).save(folder / f"{name}.json")
    for file in sorted(folder.glob("*.json")):
        played[file.name] = {}
        for kind in load_instance(file).models:
            outer, _, base = kind.rpartition(" of ")
            env_id = f"{ {'': '', 'PiecewiseStationaryModel': 'NonStationary'}.get(outer, 'Contextual') }{base}Rank-v0"
            played[file.name][kind] = [_played(env_id, file, options) for options in ({}, *_suited(file.stem, kind))]
    write(folder / "played.json", played)


def _suited(name: str, kind: str) -> list[dict[str, Any]]:
    return list(OPTIONS.values()) if name == "in-production" and kind in ("PBM", "DBN") else []


def _played(env_id: str, file: Path, options: dict[str, Any]) -> dict[str, Any]:
    env = gym.make(env_id, instance=str(file), **options)
    agent = "EpsilonGreedy" if env_id[:4] not in ("Cont", "Casc") else "Random"
    result = clickgym.run(clickgym.make_agent(agent, env, seed=2), env, 200, seed=3, checkpoints=[50, 200])
    return {"env": env_id, "options": options, "agent": agent, "regret": result.regret.tolist()}


# ------------------------------------------------------------------------------------ sweeps, tunings, scorecards

EXPERIMENT = """\
envs = ["PBMRank-v0", "DBNRank-v0:arrival=delay:5,bots=random:share=0.1"]
agents = [
    "little=PPO:n_envs=8,n_steps=8,batch_size=32,n_epochs=2,net_arch=8",
    "EpsilonGreedy:epsilon={0.1,0.3}",
    "UBMTS",
    "Random",
]
horizon = 128
runs = 2
instances = ["in-production:n_items=6,n_positions=3,seed=1"]
seed = 3
checkpoints = [10, 50, 128]
metrics = ["any_click", "ndcg"]
"""


def sweep(folder: Path) -> None:
    """What `clickgym run` made of an experiment file with PPO in it, and the trials from which it is resumed."""
    inner = folder / "sweep"
    inner.mkdir()
    (inner / "experiment.toml").write_text(EXPERIMENT)
    command("run", "experiment.toml", "--out", "results", "--jobs", "1", cwd=inner)
    for name in ("regret.png", "regret.svg", "report.html"):  # large, and not read again
        (inner / "results" / name).unlink(missing_ok=True)
    archive(inner, "xztar")


TUNED: dict[str, Any] = {"envs": ["PBMRank-v0"], "budget": 6000, "horizon": 100, "runs": 2, "n_jobs": 1, "progress": False}


class _Stop(Callback):
    """Stops after so many runs, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self.after = after

    def finished(self, *_: Any, **__: Any) -> None:
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


def tuning(folder: Path) -> None:
    """A tuning that ended, and the same one stopped in its middle."""
    inner = folder / "tuning"
    inner.mkdir()
    found = clickgym.tune("EpsilonGreedy", out=inner / "finished", **TUNED)
    with suppress(KeyboardInterrupt):
        clickgym.tune("EpsilonGreedy", out=inner / "stopped", callback=_Stop(25), **TUNED)
    trials = found.trials.to_dict(as_series=False)
    write(folder / "then.json", {"arguments": TUNED, "agent": found.agent, "score": found.score, "trials": trials})
    archive(inner, "xztar")


SUBMITTED = '''"""Thompson sampling with the least squares of clicks on features: what may be submitted."""

import numpy as np

from clickgym.agents import Agent


class MyAgent(Agent):
    """Ranks by least squares.

    Args:
        n_items, n_positions, n_features: L, K and d.
        seed: of its own generator.
    """

    def __init__(self, n_items, n_positions, *, n_features, seed=None):
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions
        self.clicks, self.squares, self.theta = np.zeros(n_features), np.eye(n_features), np.zeros(n_features)
        self.n = 0

    def rank(self, observation):
        scores = observation["features"] @ self.theta
        return np.argsort(-scores - 0.1 * (self.rng.random() < 0.1) * self.rng.random(len(scores)))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        seen = observation["features"][ranking]
        self.squares += seen.T @ seen
        self.clicks += seen.T @ clicks
        self.n += 1
        if self.n % 50 == 0:
            self.theta = np.linalg.solve(self.squares, self.clicks)
'''


def bench(folder: Path) -> None:
    """What `clickgym bench` made of an agent of the package, and of one that was submitted, in the folder of a submission."""
    command("bench", "Random", "--quick", "--jobs", "1", "--out", "Random", cwd=folder)
    _stand(folder, folder / "Random")
    submitted = folder / "submission"
    submitted.mkdir()
    (submitted / "agent.py").write_text(SUBMITTED)
    (submitted / "README.md").write_text("# submission\n\n- **Agent**: `agent:MyAgent`, in `agent.py`.\n")
    command("bench", "agent:MyAgent", "--quick", "--jobs", "1", "--out", "results", cwd=submitted)
    _stand(folder, submitted / "results")
    shutil.rmtree(submitted / "__pycache__", ignore_errors=True)
    archive(folder / "Random", "xztar")
    archive(submitted, "xztar")


def judgement(folder: Path) -> None:
    """What `clickgym bench --judge` made of the submission: its scores, and its line of the board."""
    archived = folder.parent / "bench" / "submission.tar.xz"
    shutil.unpack_archive(archived, folder / "submission", filter="data")
    command("bench", "--judge", "submission", "--out", ".", "--seed", "7", "--jobs", "1", cwd=folder)
    shutil.rmtree(folder / "submission")


def _stand(folder: Path, results: Path) -> None:
    """Keep the scores of a scorecard and the text of its tasks, and remove what is large and not read again."""
    from clickgym.lab.bench.score import scored, standing
    from clickgym.lab.bench.verify import read_submission

    read = read_submission(results)
    overall, abilities, n_tasks, *_ = standing(scored(read.table, read.protocol), read.protocol, quick=read.quick)
    content = {"agent": read.agent, "overall": overall.value, "n_tasks": n_tasks, "n_runs": read.table.height}
    content["abilities"] = {name: estimate.value for name, estimate in abilities.items()}
    content["tasks"] = (results / "scorecard.md").read_text(encoding="utf-8").partition("## Tasks")[2].partition("\n## ")[0]
    write(folder / f"{results.name}.json", content)
    for name in ("scorecard.html", "scorecard.md", "scorecard.tex", "scorecard.bib"):
        (results / name).unlink()


# ------------------------------------------------------------------------------------------------------- logs, decisions

FITTED = ["CM", "PBM", "DCM", "UBM", "DBN", "SDBN", "CCM", "RCM", "RCTR", "DCTR"]


def log(folder: Path) -> None:
    """A log as tables of every kind, the models fitted to it, and what policies would have earned."""
    env = gym.make("DBNRank-v0", instance="uniform:n_items=6,n_positions=3,seed=1")
    env.reset(seed=11)
    rng = np.random.default_rng(10)
    scores = np.linspace(1, 0, L)
    weights = np.exp(scores)
    items, clicks, propensities = [], [], []
    for _ in range(200):
        ranking = np.argsort(-(scores + rng.gumbel(size=L)))[:K]  # the law of Plackett and Luce
        left = weights.sum() - np.cumsum([0, *weights[ranking[:-1]]])
        items.append(ranking)
        clicks.append(env.step(ranking)[0])
        propensities.append(weights[ranking] / left)
    queries = (np.arange(len(items)) % 5 == 0).astype(int)
    documents, names = tuple(f"document {letter}" for letter in "abcdef"), ("red, or green?", "blue")
    whole = np.prod(propensities, axis=1)
    sessions = ClickLog(items, clicks, queries, documents, names, propensities=propensities, list_propensities=whole)
    for name in ("log.parquet", "log.csv"):
        write_tidy(sessions, folder / name)
    sessions = read_log(folder / "log.parquet")  # which numbers items in the order of their first display
    fitted = fit_models(sessions, FITTED, names, test_share=0)
    (folder / "fitted").mkdir()
    for number, query in enumerate(names):
        fitted.instances[query].save(folder / "fitted" / f"{number}.json")
    estimates = {
        name: [estimator.click_model(query, documents).to_dict() for query in names]
        for name, estimator in fitted.estimators.items()
    }
    write(folder / "estimates.json", estimates)
    np.savez(folder / "policy.npz", scores=2 * scores[::-1], items=np.array(documents))
    os.chdir(folder)
    values = {}
    for policy in ("policy.npz", "fitted/0.json:PBM", "uniform"):
        comparison = compare(
            sessions[sessions.queries == sessions.query_labels.index(names[0])], policy, ["ips", "pbm"], bootstrap=50
        )
        values[policy] = [[each.estimator, each.value, *each.interval] for each in comparison.evaluations]
    write(folder / "values.json", values)


DECIDED: dict[str, Any] = {"agents": ["TopRank"], "horizon": 500, "runs": 1, "n_jobs": 1}


def decision(folder: Path) -> None:
    """What `clickgym decide` made of a query, and `clickgym decide --all` of all of them, from where it is resumed."""
    sizes, rng = {"shoes": 2000, "hats": 900, "gloves": 2}, np.random.default_rng(0)
    users = clickgym.envs.PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])
    lists, clicks = [], []
    for place, (query, size) in enumerate(sizes.items()):
        shown = rng.permuted(np.tile(np.arange(4), (size, 1)), axis=1)[:, :K]
        shown = np.where(rng.random((size, 1)) < 0.5, [3, 2, 1] if query == "hats" else [0, 1, 2], shown)
        clicks.append(rng.random(shown.shape) < users.attraction[shown] * users.examination)
        lists.append(shown + 4 * place)
    labels = tuple(f"{query} {letter}" for query in sizes for letter in "abcd")
    order, queries = rng.permutation(sum(sizes.values())), np.repeat(np.arange(len(sizes)), [*sizes.values()])
    write_tidy(
        ClickLog(np.vstack(lists)[order], np.vstack(clicks)[order], queries[order], labels, tuple(sizes)),
        folder / "log.parquet",
    )
    words = ["--agents", "TopRank", "--horizon", "500", "--runs", "1"]
    command("decide", "log.parquet", "--query", "shoes", *words, "--out", "one", cwd=folder)
    for name in ("decision.html", "decision.png", "decision.svg"):  # large, and not read again
        (folder / "one" / name).unlink()
    shutil.rmtree(folder / "one" / "agents")  # a sweep, which names the folder of the machine
    command("decide", "log.parquet", "--all", *words, "--jobs", "1", "--out", "all", cwd=folder)
    for page in folder.glob("all/**/*.html"):
        page.write_text("<!-- large, and not read again -->\n")
    files = {file: file.stat().st_mtime_ns for file in folder.glob("all/queries/**/*")}
    os.chdir(folder)
    decisions = clickgym.decide_all("log.parquet", "all", **DECIDED)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("all/queries/**/*")} == files  # resumed, not done again
    for page in folder.glob("all/*.html"):
        page.write_text("<!-- large, and not read again -->\n")
    env = gym.make("PBMRank-v0", instance="one/instance.json")
    result = clickgym.run(clickgym.make_agent("Random", env, seed=2), env, 200, seed=3)
    write(folder / "then.json", {
        "arguments": DECIDED, "verdicts": [[each.query, each.verdict, each.p_value] for each in decisions.queries],
        "regret": result.regret.tolist(),
    })  # fmt: skip
    archive(folder / "one", "xztar")
    archive(folder / "all", "xztar")


# --------------------------------------------------------------------------------------------------------------- stores

K_SHOP = 3
PRODUCTION: dict[Any, list[Any]] = {"red, or green?": ["sku-1", "sku-2", 3], 7: [3, "3", "sku-4"], "guarded": ["a", "b", "c"]}
"""Lists of production; there is none for the query "é"."""
STORES: dict[str, dict[str, Any]] = {
    "shop": {
        "agent": "CascadeTS", "n_positions": K_SHOP, "capacity": 7, "patience": 120.0, "update_every": 3,
        "production": PRODUCTION, "production_share": 0.3, "seed": 1,
    },
    "killed": {"agent": "UniRank", "n_positions": K_SHOP, "patience": 120.0, "update_every": 4, "memory": 2, "seed": 2},
    "of_a_log": {"agent": "CascadeKLUCB", "n_positions": K_SHOP, "patience": 120.0, "seed": 3},
    "by_features": {"agent": "LinearTS", "n_positions": K_SHOP, "patience": 120.0, "update_every": 2, "seed": 4},
}  # fmt: skip
"""The arguments of each `Ranker`."""
BEFORE, AFTER_OPENING = {"shop": 420, "killed": 150, "of_a_log": 60, "by_features": 90}, 30
"""Visits before a store was frozen, and those that followed."""
KEPT = 25
"""Users click on one of so many impressions, the last ones."""
UNTIL_KILLED = 8
"""The last visits of these, which only the write-ahead log of SQLite holds."""


class Visits:
    """Users of a `Ranker`, who come every seven seconds, click early, late and twice; and all that they did, as calls."""

    def __init__(self, name: str) -> None:
        self.name, self.time, self.rng = name, 1.7e9, random.Random(name)
        self.shown: list[Any] = []  # impressions, to which calls refer by their place
        self.calls: list[dict[str, Any]] = []

    def open(self, path: Path, log: ClickLog | None = None) -> None:
        settings = {**STORES[self.name], "store": path, "clock": lambda: self.time}
        self.ranker = clickgym.Ranker(**settings) if log is None else clickgym.Ranker.from_log(log, **settings)

    def go_on(self, n: int) -> None:
        for _ in range(n):
            self.time += 7
            self.rank()
            impression = self.rng.randrange(max(0, len(self.shown) - KEPT), len(self.shown))
            if self.calls[-1]["arguments"]["query"] == "guarded":
                impression = len(self.shown) - 1
            clicked = [place for place in range(1, K_SHOP + 1) if self.rng.random() < self.attraction(impression, place)]
            for place in clicked:
                self.call("click", impression, item=self.shown[impression].items[place - 1])
            if clicked and self.rng.random() < 0.2:  # the same again
                self.call("click", impression, position=clicked[-1])
            if self.rng.random() < 0.7:
                seen = self.rng.choice([None, K_SHOP, K_SHOP - 1])
                self.call("close", impression, **({} if seen is None or K_SHOP in clicked else {"seen": seen}))

    def rank(self) -> None:
        if self.name == "by_features":
            candidates = [f"document {number}" for number in self.rng.sample(range(9), 5)]
            features = np.random.default_rng(len(self.shown)).uniform(-0.5, 0.5, (5, 2)).round(3).tolist()
            self.call("rank", None, query=f"q{self.rng.randrange(3)}", candidates=candidates, features=features)
            return
        query = self.rng.choice(["é", "guarded"] if self.name == "of_a_log" else [*PRODUCTION, "é", "guarded"])
        own = PRODUCTION.get(query, [])
        others = [each for each in ["a", "b", "c", "sku-1", "sku-2", 3, "3", "sku-4", "é"] if each not in own]
        if self.name == "of_a_log":
            candidates = None
        elif query == "guarded":
            candidates = [*own, "sku-1", "sku-2"]
        else:
            candidates = [*own, *self.rng.sample(others, 5 - len(own))]
        self.call("rank", None, query=query, candidates=candidates)

    def leave_one_to_learn(self) -> None:
        """An impression that is closed, and that no agent has learned, unless agents learn at once."""
        self.ranker.update()
        self.rank()
        self.call("close", len(self.shown) - 1)

    def attraction(self, impression: int, place: int) -> float:
        items = self.shown[impression].items
        if {"a", "b", "c"} == set(items) and items != PRODUCTION["guarded"]:
            return 0.0
        return (1.0 if items == PRODUCTION["guarded"] else 0.15 + 0.05 * len(str(items[place - 1]))) / place**0.5

    def call(self, method: str, impression: int | None, **arguments: Any) -> None:
        if impression is None:
            answer = self.ranker.rank(**arguments)
            self.shown.append(answer)
            result: Any = [answer.items, answer.source]
        else:
            try:
                result = getattr(self.ranker, method)(self.shown[impression].id, **arguments)
            except ValueError:
                return  # who clicked on an item has seen it: a call of no interest
        call = {"time": self.time, "method": method, "impression": impression, "arguments": arguments, "result": result}
        self.calls.append(call)

    def facts(self, path: Path) -> dict[str, Any]:
        """What is known of a store: log, report, and the lists that its agents believe in."""
        log, read = self.ranker.log(), read_log(path)
        assert np.array_equal(log.items, read.items)
        assert np.array_equal(log.clicks, read.clicks)
        report = asdict(self.ranker.report())
        report.pop("time")
        kept = {name: getattr(log, name).tolist() for name in ("items", "clicks", "queries")}
        labels = {"item_labels": log.item_labels, "query_labels": log.query_labels}
        asked = [
            self.asked(query) for query in sorted({call["arguments"].get("query") for call in self.calls} - {None}, key=repr)
        ]
        return {"log": kept | labels, "report": report, "best": [[given, self.ranker.best(**given)] for given in asked]}

    def asked(self, query: Any) -> dict[str, Any]:
        """The arguments of `Ranker.best`."""
        candidates = [f"document {number}" for number in range(4)]
        features = [[0.5, 0.1], [-0.2, 0.4], [0.3, 0.3], [0.0, -0.1]]
        return {"query": query} | ({"features": features, "candidates": candidates} if self.name == "by_features" else {})


def stores(folder: Path) -> None:
    """Stores of `Ranker` with open impressions, late clicks, replaced items, a query back at production, and snapshots.

    One was shut down, one killed (the end of it is in the file ``-wal``), one learned from a log, one ranks by features.
    """
    files = folder / "stores"
    files.mkdir()
    then = {}
    for name in STORES:
        path, visits = files / f"{name}.sqlite", Visits(name)
        visits.open(path, _seen_elsewhere() if name == "of_a_log" else None)
        visits.go_on(BEFORE[name] - UNTIL_KILLED)
        if name == "killed":
            visits.ranker.shut_down()  # which empties the write-ahead log
            visits.open(path)
        visits.go_on(UNTIL_KILLED)
        visits.leave_one_to_learn()
        if name == "killed":
            for ending in ("", "-wal"):
                shutil.copy(f"{path}{ending}", folder / f"{path.name}{ending}")
        visits.ranker.shut_down()
        if name == "killed":
            for ending in ("", "-wal"):
                shutil.move(folder / f"{path.name}{ending}", f"{path}{ending}")
        Path(f"{path}-lock").unlink()
        # go on with a copy
        copies = folder / "copies"
        shutil.copytree(files, copies)
        n_shown, n_calls = len(visits.shown), len(visits.calls)
        visits.open(copies / path.name)
        opened = visits.facts(copies / path.name)
        visits.go_on(AFTER_OPENING)
        then[name] = {
            "settings": {key: value for key, value in STORES[name].items() if key != "production"},
            "production": list(PRODUCTION.items()) if "production" in STORES[name] else None,
            "time": visits.calls[n_calls - 1]["time"],
            "shown": [shown.id for shown in visits.shown[n_shown - KEPT : n_shown]],
            "opened": opened,
            "calls": [_since(call, n_shown - KEPT) for call in visits.calls[n_calls:]],
            "ended": visits.facts(copies / path.name),
        }
        visits.ranker.shut_down()
        shutil.rmtree(copies)
    write(files / "then.json", then)
    archive(files)


def _since(call: dict[str, Any], start: int) -> dict[str, Any]:
    """A call that refers to impressions by their place among those that are kept."""
    return call | {"impression": None if call["impression"] is None else call["impression"] - start}


def _seen_elsewhere() -> ClickLog:
    """A log that a store has learned from."""
    rng = np.random.default_rng(5)
    lists = rng.permuted(np.tile(np.arange(5), (50, 1)), axis=1)[:, :K_SHOP]
    queries = np.repeat([0, 1], 25)
    return ClickLog(lists, rng.random(lists.shape) < 0.4, queries, ("a", "b", "c", "sku-1", "sku-2"), ("é", "guarded"))


if __name__ == "__main__":
    target, parts = Path(sys.argv[1]).resolve(), sys.argv[2:]
    for make in (agents, learners, instances, sweep, tuning, bench, judgement, log, decision, stores):
        if make.__name__ in parts or not parts:
            (target / make.__name__).mkdir(parents=True)
            make(target / make.__name__)
