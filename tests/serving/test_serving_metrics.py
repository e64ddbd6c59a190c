"""What operators read: metrics for Prometheus, whether the store answers, and warnings with fields."""

from __future__ import annotations

import logging
import math
import re

import pytest

from clickgym import Ranker
from clickgym.serving.memory import Agents

ABC = ["a", "b", "c"]
SAMPLE = re.compile(r'(clickgym_[a-z_]+)(?:\{(source|le)="([^"]+)"\})? (\d+(?:\.\d+)?(?:e-?\d+)?)')


def read(text):
    """The samples of an exposition, whose form is checked: each family once, a help, a type, then its samples."""
    samples, families, kind = {}, [], ""
    assert text.endswith("\n")
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            families.append(line.split()[2])
            assert lines[i + 1].startswith(f"# TYPE {families[-1]} ")
            kind = lines[i + 1].split()[3]
        elif not line.startswith("# TYPE "):
            name, _, label, value = SAMPLE.fullmatch(line).groups()
            assert name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == families[-1]
            assert (kind == "counter") == name.endswith("_total")
            assert (name, label) not in samples
            samples[name, label] = float(value)
    assert len({*families}) == len(families)
    return samples


def test_metrics_say_what_this_process_has_done(both, tmp_path, monkeypatch):
    settings = {"n_positions": 2, "seed": 0, "store": tmp_path / "s.db", "memory": 1, "update_every": 2}
    with Ranker(production={"q": ["a", "b"]}, production_share=0.5, **settings) as ranker:
        shown = [ranker.rank("q", ABC) for _ in range(6)] + [ranker.rank("p", ABC)]
        for impression in shown[:3]:
            assert ranker.click(impression.id, position=1)
            assert not ranker.click(impression.id, position=1)
            ranker.close(impression.id)
        ranker.click(shown[0].id, position=2)
        ranker.snapshot()
        text = ranker.metrics()
        samples = {name: value for (name, label), value in read(text).items() if label is None}
        assert sum(n for (name, _), n in read(text).items() if name == "clickgym_impressions_total") == 7
        assert {name.removeprefix("clickgym_"): value for name, value in samples.items() if "seconds" not in name} == {
            "clicks_total": 4, "late_clicks_total": 1, "loads_total": 1, "snapshots_total": 1, "refused_events_total": 0,
            "guarded_queries_total": 0, "agents_in_memory": 1, "waiting_impressions": 1, "open_impressions": 4,
        }  # fmt: skip
        buckets = [n for (name, _), n in read(text).items() if name == "clickgym_rank_seconds_bucket"]
        assert buckets == sorted(buckets)
        assert buckets[-1] == samples["clickgym_rank_seconds_count"] == 7
        with monkeypatch.context() as patch:
            patch.setattr(ranker._journal, "n_open", lambda: (_ for _ in ()).throw(OSError("gone")))
            assert "open_impressions" not in ranker.metrics()
        ranker.check()
        ranker.check()
        assert ranker.report().impressions == 7
    with pytest.raises(ValueError, match="was shut down"):
        ranker.check()


def test_the_parser_of_prometheus_reads_them():
    parser = pytest.importorskip("prometheus_client.parser", reason="no prometheus_client")
    ranker = Ranker(n_positions=2, seed=0)
    ranker.rank("q", ABC)
    families = {family.name: family for family in parser.text_string_to_metric_families(ranker.metrics())}
    assert {family.type for family in families.values()} == {"counter", "gauge", "histogram"}
    assert families["clickgym_impressions"].samples[0][1:3] == ({"source": "agent"}, 1.0)
    assert sum(len(family.samples) for family in families.values()) == len(read(ranker.metrics()))


def test_other_workers_that_were_faster_are_counted(address):
    one, other = (Ranker(n_positions=2, seed=0, store=address) for _ in range(2))
    for worker in (one, other, one):
        worker.rank("q", ABC)
    assert [read(worker.metrics())["clickgym_refused_events_total", None] for worker in (one, other)] == [1, 0]


def test_a_store_that_does_not_answer_is_told_in_a_line(both, tmp_path):
    ranker = Ranker(n_positions=2, seed=0, store=tmp_path / "s.db")
    ranker.check()
    if ranker._journal.shared:
        ranker._journal._run("ALTER TABLE settings RENAME TO other")
    else:
        ranker._journal.connection.execute("PRAGMA query_only = 1")
    with pytest.raises(OSError, match=r"cannot be written|refuses a statement") as error:
        ranker.check()
    assert "\n" not in str(error.value)


def test_warnings_carry_their_figures(monkeypatch):
    records, handler = [], logging.Handler()
    handler.emit = lambda record: records.append(vars(record))
    logger = logging.getLogger("clickgym.serving")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, handler])
    now = [1e9]
    ranker = Ranker(n_positions=1, seed=0, clock=lambda: now[0], production={"q": ["a"]}, production_share=0.5)
    ranker.rank("q", ABC)
    now[0] -= 60
    with monkeypatch.context() as patch:
        patch.setattr(Ranker, "_is_worse", lambda self, served: True)
        ranker.close(ranker.rank("q", ABC).id)
    back, guarded = records
    assert (back["event"], back["seconds"]) == ("clock went back", 60.0)
    assert (guarded["event"], guarded["query"], guarded["n"], guarded["low"]) == ("guarded", "q", 0, -math.inf)
    assert read(ranker.metrics())["clickgym_guarded_queries_total", None] == 1
    shown = ranker.rank("other", ABC)
    ranker._agents.drop(ranker._agents.find("other"))
    monkeypatch.setattr(Agents, "_catch_up", lambda self, served: False)
    ranker.close(shown.id)
    failed = records[-1]
    assert (failed["event"], failed["query"], failed["levelname"]) == ("replay failed", "other", "ERROR")
    assert "events of the agent of 'other' are missing" in failed["msg"] % failed["args"]
