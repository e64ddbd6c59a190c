"""Theory where a user meets it: bounds in figure, page and command line, and `clickgym show`."""

import json
import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from slow import slow

import clickgym
from clickgym.command_line import main
from clickgym.envs import CascadeModel, Instance, load_instance
from clickgym.runner.make import make_env
from clickgym.runner.reports.bounds import HOW_TO_READ, theory_of
from clickgym.runner.reports.figures import COLOURS, outside, regret_figure, save_figure
from clickgym.runner.reports.page import to_html
from clickgym.runner.reports.report import write_report
from clickgym.runner.results import read_results
from clickgym.runner.theory.applicable import applicable_bounds
from clickgym.runner.theory.assumptions import check_assumptions
from clickgym.runner.theory.bounds import BOUNDS, batch_rank_upper, cascade_lower, cascade_swucb_upper, pbm_lower, pbm_ucb_upper
from clickgym.runner.theory.describe import describe_instance

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["BatchRank", "PBMUCB", "CascadeSWUCB:epsilon=0.75", "Random"]
EASY = {
    "model": "PBM",
    "attraction": [0.9, 0.1, 0.2],
    "examination": [0.9],
}  # its upper bound is among the curves


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("theory") / "out"
    clickgym.sweep(ENVS, AGENTS, 2000, 2, out=out, instances=["yandex-9", "yandex-990"])
    return out


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Results on an instance that is a file, and the file."""
    base = tmp_path_factory.mktemp("own")
    file = base / "easy.json"
    file.write_text(json.dumps(EASY))
    clickgym.sweep(["PBMRank-v0"], ["PBMUCB", "Random"], 10_000, 2, out=base / "out", instances=[str(file)])
    return base / "out", str(file)


# ----------------------------------------------------------------------------------------------------- which bounds apply


def test_bounds_of_a_pair_are_the_functions_values():
    env, steps = make_env("CMRank-v0"), [10, 1000, 100_000]
    curves, missing = applicable_bounds(env, {agent: agent for agent in AGENTS}, steps)
    found = {curve.label: curve.values for curve in curves}
    wanted = {
        "lower bound, asymptotic (Kveton et al. 2015, Theorem 4)": cascade_lower(env, steps),
        "upper bound of BatchRank (Zoghi et al. 2017, Theorem 1)": batch_rank_upper(env, steps),
        "upper bound of CascadeSWUCB:epsilon=0.75 (Li and de Rijke 2019, Theorem 2)": cascade_swucb_upper(
            env, steps, epsilon=0.75
        ),
    }
    assert list(found) == list(wanted)
    for label, values in wanted.items():
        assert np.array_equal(found[label], values)
    assert missing["Random"] == "clickgym knows none"
    assert "is about a PositionBasedModel; got CascadeModel" in missing["PBMUCB"]


@pytest.mark.parametrize(
    ("env", "agent", "whose", "reason"),
    [
        ("UBMRank-v0", "BatchRank", "BatchRank", "Zoghi 2017 Assumption 3 fails, χ"),
        ("UBMRank-v0", "BatchRank", "", "clickgym knows none for a UBM"),
        ("CMRank-v0", "CascadeDUCB", "CascadeDUCB", "the bound is infinite with these parameters"),
        ("CMRank-v0", "CascadeSWUCB:feedback=first_click", "CascadeSWUCB:feedback=first_click", "feedback"),
        ("PBMRank-v0", "BubbleRank", "BubbleRank", "K = L items"),
        ("PBMRank-v0:reward=any_click", "Random", "", "about the reward 'clicks'"),
        ("ContextualCMRank-v0:reward=clicks", "BatchRank", "BatchRank", "about a click model; got LinearModel"),
    ],
)  # fmt: skip
def test_a_bound_that_does_not_apply_is_named_with_its_reason(env, agent, whose, reason):
    curves, missing = applicable_bounds(make_env(env), {agent: agent}, [1000])
    assert re.search(reason, missing[whose])
    assert whose not in [curve.agent for curve in curves]


@pytest.mark.parametrize(
    ("env", "agent"),
    [
        ("PBMRank-v0", "PBMUCB"),
        ("PBMRank-v0", "BatchRank"),
        ("CMRank-v0", "CascadeDUCB:epsilon=0.6"),
        ("NonStationaryCMRank-v0", "CascadeSWUCB:epsilon=0.6"),
        ("CMRank-v0:n_positions=10", "BubbleRank"),
    ],
)
def test_every_upper_bound_is_reached_by_some_pair(env, agent):
    curves, missing = applicable_bounds(make_env(env), {agent: agent}, [1000])
    (curve,) = [curve for curve in curves if curve.agent]
    assert agent.partition(":")[0] in BOUNDS[curve.bound].agents
    assert agent not in missing


def test_bounds_are_averaged_as_the_curves_are(folder):
    config = read_results(folder)[2]
    theory = theory_of(config)
    for env, lower in (("PBMRank-v0", pbm_lower), ("CMRank-v0", cascade_lower)):
        each = [lower(make_env(env, name), config["checkpoints"]) for name in config["instances"]]
        for name, values in zip([*config["instances"], None], [*each, np.mean(each, axis=0)], strict=True):
            (curve,) = [curve for curve in theory.curves[env, name] if not curve.agent]
            assert curve.values == pytest.approx(values, rel=1e-12)


def test_a_bound_that_some_instance_refuses_has_no_mean(tmp_path):
    tied, clear = (
        Instance(name, {"CascadeModel": CascadeModel([0.5, 0.4, last], 2)}, 2) for name, last in (("tied", 0.4), ("clear", 0.1))
    )
    files = [str(tmp_path / f"{instance.name}.json") for instance in (clear, tied)]
    for instance, file in zip((clear, tied), files, strict=True):
        instance.save(file)
    clickgym.sweep(["CMRank-v0"], ["Random"], 100, 1, out=tmp_path / "out", instances=files)
    theory = theory_of(read_results(tmp_path / "out")[2], files)
    assert [len(theory.curves["CMRank-v0", name]) for name in ("clear", "tied", None)] == [1, 0, 0]
    assert theory.notes[0] == "no upper bound of Random: clickgym knows none"
    assert theory.notes[1].startswith("no lower bound: tied: the cascade lower bound needs one best set of items")


def test_a_reason_is_told_once(folder):
    notes = theory_of(read_results(folder)[2]).notes
    assert notes.count("no upper bound of Random: clickgym knows none") == 1
    assert sum("upper bound of PBMUCB in CMRank-v0: PBM-UCB's regret bound is about" in note for note in notes) == 1


def test_an_instance_that_is_a_file_must_be_given_again(own):
    out, file = own
    config = read_results(out)[2]
    theory = theory_of(config)
    assert theory.curves["PBMRank-v0", None] == []
    assert theory.notes[0].startswith(
        "no lower bound and no upper bound of PBMUCB, Random: its model is a file, or has changed"
    )
    assert len(theory_of(config, [file]).curves["PBMRank-v0", None]) == 2


def test_bounds_are_not_those_of_a_model_that_has_changed_since(folder):
    config = read_results(folder)[2]
    config["models"]["CMRank-v0 yandex-990"] = "0" * 16
    theory = theory_of(config)
    assert theory.curves["CMRank-v0", "yandex-990"] == theory.curves["CMRank-v0", None] == []
    assert theory.curves["CMRank-v0", "yandex-9"]
    assert any("yandex-990: its model is a file, or has changed" in note for note in theory.notes)


# ------------------------------------------------------------------------------------------------------------ the figure


def lines_of(panel, colour):
    """The dotted lines of a colour."""
    return [line for line in panel.lines if line.get_color() == colour and line.get_linewidth() < 1.5]


def test_a_drawn_bound_has_the_functions_values_and_a_look_of_its_own(own):
    out, file = own
    table, _, config = read_results(out)
    figure = regret_figure(table, config, theory_of(config, [file]))
    env = make_env("PBMRank-v0", file)
    for colour, bound in (("black", pbm_lower), (COLOURS[0], pbm_ucb_upper)):
        (line,) = lines_of(figure.axes[0], colour)
        assert line.is_dashed()
        assert np.array_equal(line.get_xdata(), config["checkpoints"])
        assert np.array_equal(line.get_ydata(), bound(env, config["checkpoints"]))
    legend = [" ".join(text.get_text().split()) for text in figure.legends[0].get_texts()]
    assert legend[-2:] == [
        "lower bound, asymptotic (Lagrée et al. 2016, Theorem 6)",
        "upper bound of PBMUCB, up to a constant (Lagrée et al. 2016, Theorem 9)",
    ]


def test_bounds_leave_the_axes_to_the_curves_and_say_how_far_off_they_are(folder):
    table, _, config = read_results(folder)
    theory = theory_of(config)
    plain, bounded = regret_figure(table, config), regret_figure(table, config, theory)
    for one, other in zip(plain.axes, bounded.axes, strict=True):
        assert (one.get_xlim(), one.get_ylim()) == (other.get_xlim(), other.get_ylim())
    far = outside(table, config, theory)
    value = np.mean([batch_rank_upper(make_env("CMRank-v0", name), 2000) for name in config["instances"]])
    assert f"upper bound of BatchRank in CMRank-v0: {value:.2g}, beyond the figure" in far
    caption = bounded._supxlabel.get_text()
    for line in (HOW_TO_READ, *far):
        assert line in " ".join(caption.split())
    assert not lines_of(bounded.axes[1], COLOURS[0])


@pytest.mark.usefixtures("only_svg")
def test_without_bounds_the_figure_is_what_it_was(own, tmp_path):
    folder = own[0]
    table, _, config = read_results(folder)
    _, before = [file.read_bytes() for file in save_figure(regret_figure(table, config), tmp_path / "regret")]
    assert b"<svg" in before
    assert b"bound" not in before
    for bounds in (True, False):
        write_report(folder, Console(file=StringIO()), bounds=bounds)
        assert ((folder / "regret.svg").read_bytes() == before) == (not bounds)


# -------------------------------------------------------------------------------------------------------------- the page


def test_the_page_holds_the_bounds_of_every_view(folder):
    table, timings, config = read_results(folder)
    page = to_html(table, timings, config, theory_of(config))
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])
    assert [(bound["name"], bound["agent"]) for bound in data["bounds"]] == [
        ("lower bound", None),
        ("lower bound", None),
        ("upper bound of BatchRank", 0),
        ("upper bound of PBMUCB", 1),
        ("upper bound of CascadeSWUCB:epsilon=0.75", 2),
    ]
    assert (data["bounds"][0]["light"], data["bounds"][0]["dark"]) == ("#000000", "#FFFFFF")
    assert data["bounds"][2]["light"] == data["agents"][0]["light"]
    for view, name in ((1, "yandex-9"), (2, "yandex-990")):
        values = data["promises"][f"1-{view}"]
        wanted = cascade_lower(make_env("CMRank-v0", name), config["checkpoints"])
        assert values["1"] == pytest.approx(wanted, rel=1e-4)
        assert values["2"][0] is None  # infinite below 5 sessions
    assert page.count('name="bound"') == 5
    assert "No upper bound of Random: clickgym knows none." in page


def test_the_page_without_bounds_speaks_of_none(folder):
    table, timings, config = read_results(folder)
    page = to_html(table, timings, config)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])
    assert (data["bounds"], data["promises"]) == ([], {})
    assert 'name="bound"' not in page
    assert "asymptotic" not in page


# ------------------------------------------------------------------------------------------------------ the command line


@pytest.mark.slow
@pytest.mark.usefixtures("only_svg")
def test_run_and_report_draw_bounds_on_request(tmp_path, capsys, printed):
    file = tmp_path / "easy.json"
    file.write_text(json.dumps(EASY))
    words = ["run", "PBMRank-v0", "--agents", "PBMUCB", "Random", "--horizon", "1e4", "--runs", "1", "--instance", str(file)]
    assert main([*words, "--out", str(tmp_path / "out"), "--bounds"]) == 0
    assert "no upper bound of Random: clickgym knows none" in capsys.readouterr().out
    bounded = (tmp_path / "out" / "regret.svg").read_bytes()
    assert "its model is a file" in printed(["report", str(tmp_path / "out"), "--bounds", "--html"])
    assert main(["report", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "regret.svg").read_bytes() != bounded
    assert re.search("lower bound|upper bound", capsys.readouterr().out) is None


@pytest.mark.parametrize("name", ["lagree2016-small", "uniform:n_items=4,n_positions=2", *slow("yandex-990")])
def test_show_prints_every_model_with_its_best_lists_and_each_failing_assumption(name, printed, monkeypatch):
    for variable, value in {"COLUMNS": "80", "TTY_COMPATIBLE": "1", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(variable, value)
    out = re.sub("\x1b[^m]*m", "", printed(["show", name]))
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    instance, text, n_failing = load_instance(name), re.sub(r"\s", "", out), 0
    for kind in instance.models:
        model = instance.model(kind)
        assert kind in out
        for reward in model.rewards:
            best = model.optimal_ranking(reward)
            assert re.search(rf"{reward} +{model.expected_reward(best, reward):.4f} .*{' '.join(map(str, best))}", out)
        findings = check_assumptions(model)
        for finding in findings:
            assert finding.name in out
            assert re.sub(r"\s", "", finding.counterexample) in text
        n_failing += len({finding.statement for finding in findings if not finding.holds})
    assert out.count("FAILS") == n_failing


@pytest.mark.slow
def test_show_compares_with_the_list_in_production(printed):
    out = printed(["show", "yandex-990"])
    instance = load_instance("yandex-990")
    assert f"{instance.model('UserBrowsingModel').expected_reward(instance.initial_ranking[:5]):.4f}" in out
    assert "in production" not in printed(["show", "lagree2016-small"])


def test_show_names_items_as_the_log_did(tmp_path, printed):
    model = CascadeModel([0.2, 0.6, 0.4], 2)
    labels = ["red [shoes]", "blue", "green"]
    Instance("shoes", {model.kind: model}, 2, estimation={"items": labels}).save(tmp_path / "shoes.json")
    out = printed(["show", str(tmp_path / "shoes.json")])
    assert "0 (red [shoes]), 1 (blue), 2 (green)" in out
    assert "1 (blue), 2 (green)\n" in re.sub(" +\n", "\n", out)


def test_show_says_what_is_too_many_and_how_to_make_it_smaller(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = " ".join(printed(["show", "uniform:n_items=20"]).split())
    assert "1.86e+06 lists of 5 out of 20 items are more than the 50,000 that are tried; with 3 positions they can be" in words
    assert "FAILS" not in words
    words = " ".join(printed(["show", "uniform:n_items=20", "--positions", "3"]).split())
    assert "were not checked" not in words
    assert "Zoghi 2017 Assumption 3 holds" in words


def test_show_speaks_of_the_first_epoch_and_of_no_fixed_candidates(capsys, printed):
    assert main(["show", "li2019-switching:n_epochs=2"]) == 0
    assert "The users change: this is about the first of 2 epochs, up to step 10,000." in capsys.readouterr().out
    assert "The candidates change from session to session" in printed(["show", "linear"])


def test_show_refuses_what_there_is_not(refused):
    assert "metric or study 'yandx-9'; did you mean the instance 'yandex-9'?" in refused(["show", "yandx-9"])
    assert "n_positions is 9" in refused(["show", "lagree2016-small", "--positions", "9"])


def test_an_instance_is_described_in_a_notebook_too():
    description = describe_instance(load_instance("yandex-990"), n_positions=2)
    assert (description.n_positions, description.labels) == (2, [])
    model = description.models[1]
    assert model.parameters["examination"] == "0.869 0.603"
    assert [finding.holds for finding in model.findings] == [True] * 9
    with pytest.raises(ValueError, match="n_positions is 0"):
        describe_instance(load_instance("yandex-990"), 0)
