"""Convert the published click models of 60 real web search queries into instance files.

python examples/convert_queries.py yandex60_clickmodels.json --out folder
clickgym run PBMRank-v0 --instances folder/yandex60-401.json

A co-author of Zoghi et al. 2017 fitted six click models to each query, using at least a million
Yandex sessions per query. The parameters are in the PyClickLambdas repository, whose terms do not
allow us to ship them with clickgym. The input file is
``{"origin": ..., "shared": {"PBM_examination": ..., ...}, "queries": {"401": {"CM": [...], ...},
...}}``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.envs.instances import Instance

CONTINUES = ("continue_after_skip", "continue_after_click", "continue_after_relevant")
"""The parameters of the click chain model that all queries share, in the order of the file."""


def converted(source: Path) -> list[Instance]:
    """Return the instances ``yandex60-<query>``, with five positions by default.

    The items keep the order of a logged result page, so the list 0, 1, 2, ... is the production
    list and becomes the initial ranking. In the file's UBM, the last column means "no click yet";
    in ours, column 0 does. The file's perseverance for the DBN is 1 up to rounding, an artefact of
    the fit, so the DBNs become SDBNs.
    """
    content = json.loads(source.read_text(encoding="utf-8"))
    return [
        instance(query, parameters, content["shared"])
        for query, parameters in content["queries"].items()
    ]


def instance(query: str, parameters: dict[str, Any], shared: dict[str, Any]) -> Instance:
    """Return the instance of a query, from its own parameters and the shared parameters."""
    examination = shared["PBM_examination"]
    browsing = np.roll(np.array(shared["UBM_gamma_rank_prev"], dtype=float), 1, axis=-1)
    n_positions = len(examination)
    models: list[ClickModel] = [
        CascadeModel(parameters["CM"], n_positions),
        PositionBasedModel(parameters["PBM"], examination),
        TrustBiasModel(parameters["PBM"], examination),  # standard trust, as in the shipped queries
        DependentClickModel(parameters["DCM"], shared["DCM_termination"]),
        UserBrowsingModel(parameters["UBM"], browsing),
        DynamicBayesianModel(
            parameters["DBN"], parameters["DBN_satisfaction"], n_positions=n_positions
        ),
    ]
    if "CCM" in shared:
        chain = dict(zip(CONTINUES, shared["CCM"], strict=True))
        models.append(ClickChainModel(parameters["CCM"], n_positions=n_positions, **chain))
    return Instance(
        name=f"yandex60-{query}",
        models={model.kind: model for model in models},
        n_positions=5,
        description="real search query of the PyClickLambdas collection, 10 items (all click "
        "models)",
        origin="fitted to Yandex Relevance Prediction 2011 sessions; "
        "github.com/changlicn/PyClickLambdas",
        initial_ranking=np.arange(len(parameters["CM"])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="the input file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the instance files")
    arguments = parser.parse_args()
    instances = converted(arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
