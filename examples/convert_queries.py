"""Convert the published click models of 60 real queries of web search into instance files.

python examples/convert_queries.py yandex60_clickmodels.json --out folder
clickgym run PBMRank-v0 --instance folder/yandex60-401.json

Their terms do not allow shipping the parameters with clickgym. A co-author of Zoghi et al. 2017
fitted six click models to at least a million Yandex sessions of each query. The parameters are in
the PyClickLambdas repository; the input file is ``{"origin": ..., "shared": {"PBM_examination":
..., ...}, "queries": {"401": {"CM": [...], ...}, ...}}``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
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
"""The shared parameters of the click chain model, in the order of the file."""


def converted(source: Path) -> list[Instance]:
    """Return the instances ``yandex60-<query>``, of five positions by default.

    The items keep their order, that of a logged result page, so the identity is a production list:
    the initial ranking. The file's UBM has "no click yet" in the last column; here it is column 0.
    The file's perseverance of the DBN, 1 up to rounding, is an artefact of the fit: the models
    become SDBNs.
    """
    with faults_named(f"{source} is not the file of the 60 queries"):
        content = json.loads(source.read_text(encoding="utf-8"))
        shared, queries = content["shared"], dict(content["queries"])
        of_all = {
            "examination": shared["PBM_examination"],
            "termination": shared["DCM_termination"],
            "browsing": np.roll(np.array(shared["UBM_gamma_rank_prev"], dtype=float), 1, axis=-1),
            # optional in the file
            "chain": dict(zip(CONTINUES, shared["CCM"], strict=True)) if "CCM" in shared else None,
        }
    return [
        yandex_instance(f"{source}, query {query}", query, queries[query], of_all)
        for query in queries
    ]


def yandex_instance(
    where: str, query: str, parameters: dict[str, Any], of_all: dict[str, Any]
) -> Instance:
    """Return the instance of a query, from its own and the shared parameters."""
    n_positions = len(of_all["examination"])
    with faults_named(where):
        models: list[ClickModel] = [
            CascadeModel(parameters["CM"], n_positions),
            PositionBasedModel(parameters["PBM"], of_all["examination"]),
            # standard trust, as in the shipped queries
            TrustBiasModel(parameters["PBM"], of_all["examination"]),
            DependentClickModel(parameters["DCM"], of_all["termination"]),
            UserBrowsingModel(parameters["UBM"], of_all["browsing"]),
            DynamicBayesianModel(
                parameters["DBN"], parameters["DBN_satisfaction"], n_positions=n_positions
            ),
        ]
        if of_all["chain"]:
            models.append(
                ClickChainModel(parameters["CCM"], n_positions=n_positions, **of_all["chain"])
            )
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


@contextmanager
def faults_named(where: str) -> Iterator[None]:
    """Context that turns an error into a ValueError of one line, which begins with ``where``."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{where}: {error} is missing") from None
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="the file")
    parser.add_argument("--out", type=Path, required=True, help="folder of the instance files")
    arguments = parser.parse_args()
    instances = converted(arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
