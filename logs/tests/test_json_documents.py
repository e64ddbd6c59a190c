"""What `clickgym fit` and `clickgym evaluate` say to programs: JSON documents."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from clickgym.command_line import main
from clickgym_logs import ClickLog, compare, fit_models, read_log, write_tidy


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rng = np.random.default_rng(1)
    items = rng.permuted(np.tile(np.arange(5), (400, 1)), axis=1)[:, :3]
    write_tidy(
        ClickLog(items, rng.random(items.shape) < 0.3, [0] * 400, tuple("abcde"), ("shoes",)), path
    )
    return path


@pytest.fixture
def document(capsys):
    """The one document that a command prints, as strict JSON."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    def run(*words):
        assert main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=refuse)

    return run


def test_fit_in_json_is_what_python_says(document, log_file, tmp_path):
    said = document(
        "fit", log_file, "--model", "PBM", "CM", "SDBN", "--out", tmp_path / "shoes.json"
    )
    fitted = fit_models(read_log(log_file), ["PBM", "CM", "SDBN"])
    assert (said["train_sessions"], said["test_sessions"]) == (len(fitted.train), len(fitted.test))
    for row in said["models"]:
        estimator = fitted.scored[row["model"]]
        score = estimator.score(fitted.test)
        assert row["log_likelihood"] == (score if np.isfinite(score) else None)
        assert row["perplexity_by_rank"] == estimator.perplexity_by_rank(fitted.test).tolist()
        assert row["steps"] == getattr(estimator, "n_iter_", None)
    # of the CM, which excludes sessions with several clicks
    assert said["models"][1]["log_likelihood"] is None
    assert said["instances"][0]["file"] == str(tmp_path / "shoes.json")


def test_evaluate_in_json_is_what_python_says(document, log_file):
    said = document(
        "evaluate",
        log_file,
        "--policy",
        "fixed:a,b,c",
        "--logging",
        "uniform",
        "--estimator",
        "ips",
        "pbm",
    )
    compared = compare(read_log(log_file), "fixed:a,b,c", ["ips", "pbm"], logging="uniform")
    rows = [
        {"policy": "fixed:a,b,c", **asdict(each), "cautions": each.cautions}
        for each in compared.by_policy["fixed:a,b,c"]
    ]
    assert said["evaluations"] == json.loads(json.dumps(rows))
    assert said["policies"] == {"fixed:a,b,c": {"lists": {"shoes": ["a", "b", "c"]}}}
    assert said["refused"] == []


def test_nothing_but_the_document_is_on_standard_output(log_file, tmp_path, capfd):
    """Of the process: also what libraries print there by themselves."""
    assert (
        main(
            [*map(str, ["fit", log_file, "--model", "PBM", "--out", tmp_path / "q.json", "--json"])]
        )
        == 0
    )
    printed = capfd.readouterr()
    assert json.loads(printed.out)["models"][0]["model"] == "PBM"
    assert "Fitted to 320 sessions" in printed.err
