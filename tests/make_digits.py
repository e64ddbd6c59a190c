"""Make ``tests/data/digits.json``, and the log beside it: ``python tests/make_digits.py``, with the
code whose digits are kept.

It has run on version 3.0 (commit 2fda8eef). Run it again only to add cases, on a checkout of that
commit.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import test_digits as digits
import torch

import clickgym

SEED = 61
MODELS = ["CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM"]
IDS = [form + model for form in ("", "NonStationary", "Contextual") for model in MODELS] + [
    "CascadeMDP"
]
CHANGING = {"instance": "abrupt:length=500"}

# Where an agent plays: the default instance of an id without "Rank-v0", or [id, arguments].
HOMES: dict[str, list[Any]] = {
    "Fixed": ["PBM", "CM", "UBM"],
    "Fixed:ranking=[4,3,2,1,0]": ["PBM", ["NonStationaryCM", CHANGING]],
    "Random": ["PBM", "CM", "DCM", "CCM", ["NonStationaryPBM", CHANGING], "CascadeMDP"],
    "Oracle": ["PBM", "CM", "DBN", "UBM", "TPBM"],
    "EpsilonGreedy": ["PBM", "CM", "DCM", "TPBM", ["NonStationaryUBM", CHANGING], "CascadeMDP"],
    "CascadeUCB1": ["CM", "CCM", "PBM", ["CM", {"instance": "kveton2015"}]],
    "CascadeUCB1:feedback=first_click": ["DBN"],
    "CascadeTS": ["CM", "DCM", "PBM", ["NonStationaryCM", CHANGING]],
    "CascadeTS:feedback=first_click": ["DBN"],
    "CascadeKLUCB": [
        "CM",
        "DBN",
        "PBM",
        "UBM",
        ["CM", {"instance": "rare-clicks"}],
        ["NonStationaryCM", CHANGING],
        "CascadeMDP",
    ],
    "CascadeKLUCB:feedback=first_click": ["DCM"],
    "DCMKLUCB": ["DCM", "CM", "CCM", ["DCM", {"instance": "uniform:seed=1"}]],
    "RankedExp3": ["PBM", "CM", "UBM", ["NonStationaryPBM", CHANGING]],
    "RankedKLUCB": ["PBM", "CM", "DBN"],
    "BatchRank": ["CM", "PBM", "UBM", "DBN"],
    "TopRank": [
        "PBM",
        "CM",
        "DCM",
        "UBM",
        "TPBM",
        ["PBM", {"instance": "li2019-chi-min:i=3"}],
        "CascadeMDP",
    ],
    "BubbleRank": [
        "CM",
        "PBM",
        "DCM",
        "DBN",
        ["PBM", {"instance": "in-production"}],
        ["CM", {"instance": "in-production"}],
    ],
    "CascadeDUCB": [
        ["NonStationaryCM", CHANGING],
        ["NonStationaryDBN", CHANGING],
        "NonStationaryPBM",
        "CM",
    ],
    "CascadeSWUCB": [
        ["NonStationaryCM", CHANGING],
        ["NonStationaryDCM", CHANGING],
        "NonStationaryPBM",
        "CM",
    ],
    "GLRCascadeKLUCB": [
        ["NonStationaryCM", CHANGING],
        ["NonStationaryCM", {"instance": "li2019-two-changes:length=700"}],
        ["NonStationaryPBM", CHANGING],
        "CM",
    ],
    "PBMUCB": [
        "PBM",
        ["PBM", {"instance": "lagree2016-small"}],
        ["PBM", {"instance": "uniform:seed=1"}],
        "TPBM",
    ],
    "PBMPIE": [
        "PBM",
        ["PBM", {"instance": "lagree2016-small"}],
        ["PBM", {"instance": "uniform:seed=1"}],
        "TPBM",
    ],
    "PBMTS": [
        "PBM",
        ["PBM", {"instance": "lagree2016-small"}],
        ["PBM", {"instance": "uniform:seed=1"}],
        "TPBM",
    ],
    "BCMPTS": [
        "PBM",
        ["PBM", {"instance": "lagree2016-small"}],
        ["PBM", {"instance": "uniform:seed=1"}],
        "TPBM",
    ],
    "PBMHB": ["PBM", "TPBM", "UBM", ["PBM", {"instance": "position-bias"}]],
    "GRAB": ["PBM", "TPBM", "CM", ["PBM", {"instance": "position-bias"}]],
    "UniRank": ["PBM", "CM", "DBN", ["PBM", {"instance": "position-bias"}]],
    "MixTS": ["PBM", "UBM", "DBN", ["NonStationaryPBM", CHANGING]],
    "UBMLinUCB": ["ContextualUBM", "ContextualPBM", ["ContextualUBM", {"instance": "personal"}]],
    "C2UCB": [
        "ContextualPBM",
        "ContextualUBM",
        "ContextualDBN",
        ["ContextualPBM", {"instance": "personal:form=inner"}],
    ],
    "CMLinUCB": ["ContextualCM", "ContextualUBM", ["ContextualCM", {"instance": "personal"}]],
    "DCMLinUCB": ["ContextualDCM", "ContextualCCM", "ContextualUBM"],
    "PBMLinUCB": ["ContextualPBM", "ContextualUBM", "ContextualTPBM"],
    "LinearTS": [
        "ContextualPBM",
        "ContextualCM",
        "ContextualUBM",
        ["ContextualUBM", {"instance": "personal"}],
    ],
    "PDGD": [
        "ContextualPBM",
        "ContextualDBN",
        "ContextualUBM",
        ["ContextualUBM", {"instance": "network"}],
    ],
    "CascadeVI": [
        "CascadeMDP",
        ["CascadeMDP", {"instance": "habit"}],
        ["CascadeMDP", {"instance": "independent"}],
    ],
}

# Sessions of one seed beside those of the default instances.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("CM", {"instance": "kveton2015"}),
    ("PBM", {"instance": "position-bias:eta=0.5"}),
    ("TPBM", {"instance": "position-bias"}),
    ("DBN", {"instance": "rare-clicks"}),
    ("PBM", {"instance": "lagree2016-small"}),
    ("PBM", {"instance": "li2019-chi-min:i=3"}),
    *((model, {"instance": "uniform:seed=1"}) for model in MODELS),
    *((model, {"instance": "yandex-like:n_items=20"}) for model in MODELS),
    ("DCM", {"instance": "in-production"}),
    ("CCM", {"instance": "yandex-9"}),
    ("PBM", {"attraction": [0.6, 0.4, 0.2, 0.1], "examination": [1.0, 0.5]}),
    ("CM", {"reward": "any_click", "cutoff": 3}),
    ("DCM", {"reward": "satisfaction"}),
    ("DBN", {"reward": "satisfaction"}),
    ("UBM", {"reference": [9, 8, 7, 6, 5], "cutoff": 2}),
    ("PBM", {"n_positions": 3}),
    *(("NonStationary" + model, {"instance": "abrupt:length=10"}) for model in MODELS),
    ("NonStationaryCM", {"instance": "li2019-switching:length=10"}),
    ("NonStationaryCM", {"instance": "li2019-two-changes:length=10"}),
    ("NonStationaryPBM", {"instance": "random-walk:length=10"}),
    *(("Contextual" + model, {"instance": "personal"}) for model in MODELS),
    ("ContextualPBM", {"instance": "personal:form=inner"}),
    ("ContextualPBM", {"instance": "personal:features=products"}),
    ("ContextualUBM", {"instance": "network"}),
    ("ContextualUBM", {"reward": "clicks"}),
    ("CascadeMDP", {"instance": "independent"}),
    ("CascadeMDP", {"instance": "habit"}),
]

ESTIMATORS: list[tuple[str, dict[str, Any]]] = [
    *((f"{model}Estimator", {}) for model in ("CM", "DCM", "SDBN", "DBN", "PBM", "UBM", "CCM")),
    ("DCMEstimator", {"method": "em"}),
]

LEARNERS = [
    ("PPO", "PBM", "uniform:seed=1", 20_000),
    ("A2C", "PBM", "uniform:seed=1", 20_000),
    ("PPO", "ContextualUBM", "linear", 20_000),
    ("DQN", "PBM", "uniform:seed=1", 10_000),
    ("SAC", "PBM", "uniform:seed=1", 10_000),
    ("TD3", "PBM", "uniform:seed=1", 10_000),
    ("MaskablePPO", "PBM", "uniform:seed=1", 20_000),
    ("RecurrentPPO", "PBM", "uniform:seed=1", 20_000),
]


def runs() -> Iterator[dict[str, Any]]:
    for agent, homes in HOMES.items():
        for home in homes:
            model, kwargs = (home, {}) if isinstance(home, str) else home
            case = {"agent": agent, "env": f"{model}Rank-v0", "kwargs": kwargs, "seed": SEED}
            yield case | digits.play(case)


def environments() -> Iterator[dict[str, Any]]:
    defaults = [(name, {}, seed, n) for name in IDS for seed in (SEED, SEED + 1) for n in (None, 3)]
    for name, kwargs, seed, num_envs in [*defaults, *((*other, SEED, None) for other in OTHERS)]:
        space: Any = gym.make(f"{name}Rank-v0", **kwargs).action_space
        sizes = {"n_items": space.n_items, "n_positions": space.n_positions}
        case = {
            "env": f"{name}Rank-v0",
            "kwargs": kwargs,
            "seed": seed,
            "num_envs": num_envs,
        } | sizes
        yield case | digits.watch(case)


def write_log() -> None:
    """Random lists of two queries, and clicks by the DBN; one list in ten ends after three
    items.
    """
    rows = ["query,items,clicks"]
    for query, instance in enumerate(("yandex-9982", "yandex-990")):
        env = gym.make("DBNRank-v0", instance=instance)
        log = clickgym.record(clickgym.make_agent("Random", env, seed=SEED), env, 2000, seed=SEED)
        for session, (items, clicks) in enumerate(
            zip(log.items.tolist(), log.clicks.tolist(), strict=True)
        ):
            end = len(items) if session % 10 else 3
            rows.append(
                f"{query},{' '.join(map(str, items[:end]))},{''.join(map(str, clicks[:end]))}"
            )
    digits.LOG.write_text("\n".join([*rows, ""]), "utf-8")


def estimators() -> Iterator[dict[str, Any]]:
    log = digits.read_log()
    for estimator, kwargs in ESTIMATORS:
        case: dict[str, Any] = {"estimator": estimator, "kwargs": kwargs}
        fitted = digits.fit(case, log)
        models = {
            query: fitted.click_model(query, list(log.item_labels)) for query in log.query_labels
        }
        parameters = {
            query: {
                key: value
                for key, value in model.to_dict().items()
                if key not in ("model", "n_positions")
            }
            for query, model in models.items()
        }
        yield case | {"score": fitted.score(log).hex(), "parameters": parameters}


def learners() -> Iterator[dict[str, Any]]:
    """The interval is the mean plus and minus four standard errors, or a quarter of it if that is
    more.
    """
    for agent, model, instance, horizon in LEARNERS:
        kwargs = {"instance": instance}
        case: dict[str, Any] = {
            "agent": agent,
            "env": f"{model}Rank-v0",
            "kwargs": kwargs,
            "horizon": horizon,
            "seeds": [0, 1, 2],
        }
        regrets = digits.learn(case)
        mean = float(np.mean(regrets))
        half = max(4 * float(np.std(regrets, ddof=1)) / len(regrets) ** 0.5, mean / 4)
        yield case | {
            "mean": round(mean, 1),
            "interval": [round(mean - half, 1), round(mean + half, 1)],
        }


def made() -> dict[str, str]:
    """By what the digits were made."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    processor = next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")),
        platform.machine(),
    )
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    versions = {"numba": numba.__version__, "numpy": np.__version__, "torch": torch.__version__}
    return {
        "clickgym": clickgym.__version__,
        "commit": commit,
        "processor": processor,
        "python": sys.version.split()[0],
    } | versions


def main() -> None:
    write_log()
    file: dict[str, Any] = {"made": made()}
    for part in (runs, environments, estimators, learners):
        file[part.__name__] = list(part())
    lines = [f'"made": {json.dumps(file.pop("made"))}']
    for part, rows in file.items():
        lines.append(f'"{part}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    digits.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
