"""From a click log to a decision: fit, choose a model, compare agents on it, and ask the log what the learned list would earn.

    python examples/from_log_to_decision.py log.tsv.gz --out results/decision

The log is whatever ``clickgym fit`` reads. Without one, a log is simulated from an instance that comes with clickgym: users
of a user browsing model, and a production list whose order changes a little from session to session. Then the truth is known
too.

1. Click models are fitted to a part of the sessions and scored on the rest; examination depends on the query or does not. The
   best of them becomes the users of a query.
2. Agents that learn to rank meet these users. The one that loses least has a list to propose.
3. What would that list have earned? The held-out sessions answer, which neither the models nor the agents have seen. The log
   does not say with which probability it showed what, so these are counted in it, query by query. That is right if, within
   the query, the list shown had nothing to do with the user or the time. An estimator is refused where the log never shows
   what the list does: that leaves mostly those that assume a click model.
4. Which of them to believe? Every list that the log shows often is taken out, estimated from the other sessions, and compared
   with what it did earn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import clickgym
from clickgym.envs import ClickModel
from clickgym.envs.instances import Instance
from clickgym.offline import (
    ClickLog,
    CMEstimator,
    DBNEstimator,
    DCMEstimator,
    Estimator,
    Evaluation,
    FixedPolicy,
    PBMEstimator,
    SDBNEstimator,
    UBMEstimator,
    empirical_policies,
    evaluate,
    hold_out,
    query_instance,
    read_log,
)
from clickgym.runner.reports.figures import COLOURS

AGENTS = ("BatchRank", "TopRank", "BubbleRank", "CascadeKLUCB", "EpsilonGreedy")
WITHOUT_MODEL, WITH_MODEL = ("ips", "cascade", "item-position"), ("pbm", "ubm", "dcm", "dbn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="?", help="a click log; without it, one is simulated")
    parser.add_argument("--query", help="its label in the log (default: the most frequent)")
    parser.add_argument("--horizon", type=float, default=1e5, help="T, sessions per run of an agent (default 1e5)")
    parser.add_argument("--runs", type=int, default=5, help="runs per agent (default 5)")
    parser.add_argument("--sessions", type=int, default=30_000, help="of the simulated log (default 30000)")
    parser.add_argument("--out", type=Path, default=Path("results/decision"), help="folder of instance, results and figure")
    arguments = parser.parse_args()

    if arguments.log is not None and not arguments.log.is_file():
        parser.error(f"there is no log {arguments.log}; without one, a log is simulated")
    if arguments.log is None:
        log, truth = simulated_log(arguments.sessions)
        print(f"No log given: {len(log):,} sessions simulated from yandex-9982, a user browsing model\n")
    else:
        log, truth = read_log(arguments.log), None
        print(f"{len(log):,} sessions of {len(log.query_labels):,} queries in {arguments.log.name}\n")
    query = arguments.query or log.query_labels[int(np.bincount(log.queries).argmax())]
    if query not in log.query_labels:
        parser.error(f"the log has no query {query}")
    figure = Figure(figsize=(11, 8), layout="constrained")
    panels = figure.subplots(2, 2).flat

    train, test = hold_out(log, 0.3)
    estimators = fit(train, test, next(panels))
    chosen = max(estimators, key=lambda name: estimators[name].score(test))
    instance = query_instance(train, query, {chosen: estimators[chosen]})
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "instance.json"
    instance.save(file)
    print(f"The {chosen} predicts the held-out sessions best: the users of query {query} in {file}\n")

    env = f"{chosen.removesuffix(' by query').replace('SDBN', 'DBN')}Rank-v0"
    winner = compare(env, file, int(arguments.horizon), arguments.runs, next(panels))
    lists = proposals(env, instance, file, winner, int(arguments.horizon))
    sessions = test[test.queries == test.query_labels.index(query)]
    judge(sessions, instance, chosen, lists, truth, next(panels))
    check(log[log.queries == log.query_labels.index(query)], next(panels))
    for suffix in ("png", "svg"):
        figure.savefig(arguments.out / f"decision.{suffix}", dpi=100)
    print(f"\nfigure: {arguments.out / 'decision.png'} and .svg")


class Production(clickgym.agents.Agent):
    """What the simulated log shows: a list in production, its order blurred by noise."""

    def __init__(self, n_items: int, n_positions: int, *, ranking: np.ndarray, seed: int | None = None) -> None:
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions
        self.score = -np.argsort(ranking).astype(float)

    def rank(self, observation: object) -> np.ndarray:
        return np.argsort(-(self.score + self.rng.gumbel(size=len(self.score))))[: self.n_positions]

    def update(self, observation: object, ranking: np.ndarray, clicks: np.ndarray, reward: float) -> None:
        """It does not learn."""


def simulated_log(n_sessions: int) -> tuple[ClickLog, ClickModel]:
    """A log of users that are known, and these users."""
    env = gym.make("UBMRank-v0")
    users = env.unwrapped
    agent = Production(users.model.n_items, users.model.n_positions, ranking=users.initial_ranking, seed=0)
    return clickgym.record(agent, env, n_sessions, seed=0), users.model


def fit(train: ClickLog, test: ClickLog, axes: Axes) -> dict[str, Estimator]:
    """Fit every model to one part of the log and score it on the other."""
    estimators: dict[str, Estimator] = {
        "CM": CMEstimator(),
        "DCM": DCMEstimator("em", 1000, 1e-7),
        "SDBN": SDBNEstimator(),
        "PBM": PBMEstimator(1000, 1e-7),
        "UBM": UBMEstimator(1000, 1e-7),
        "DBN": DBNEstimator(1000, 1e-7),
        "PBM by query": PBMEstimator(1000, 1e-7, per_query=True),
        "UBM by query": UBMEstimator(1000, 1e-7, per_query=True),
    }
    print(f"Fitted to {len(train):,} sessions, scored on {len(test):,}:   log-likelihood   perplexity")
    for (name, estimator), colour in zip(estimators.items(), COLOURS, strict=True):
        by_rank, score = estimator.fit(train).perplexity_by_rank(test), estimator.score(test)
        print(f"  {name:<46} {score:>18.4f} {by_rank.mean():>12.4f}")
        axes.plot(np.arange(len(by_rank)) + 1, by_rank, color=colour, marker=".", label=f"{name}, {score:.3f}")
    axes.set(title="Click models on held-out sessions", xlabel="rank", ylabel="perplexity of clicks (1 is perfect)")
    axes.legend(title="log-likelihood per session", fontsize="small")
    return estimators


def compare(env: str, file: Path, horizon: int, runs: int, axes: Axes) -> str:
    """Let the agents meet the fitted users; the name of the one that loses least."""
    table = clickgym.sweep([env], ["Fixed", *AGENTS], horizon, runs, instances=[str(file)], out=file.parent / "agents")
    means = table.group_by("agent", "step").agg(polars.col("regret").mean()).sort("step")
    final = dict(means.filter(polars.col("step") == horizon).select("agent", "regret").rows())
    print(f"Regret after {horizon:,} sessions in {env}, mean of {runs} runs")
    for (name, regret), colour in zip(sorted(final.items(), key=lambda pair: pair[1]), COLOURS, strict=False):
        print(f"  {name:<14} {regret:>9,.0f} clicks")
        curve = means.filter(polars.col("agent") == name)
        axes.plot(curve["step"], np.maximum(curve["regret"], 0.1), color=colour, label=name)
    axes.set(title=f"Agents in {env}", xlabel="session", ylabel="cumulative regret (clicks)", xscale="log", yscale="log")
    axes.legend()
    return min(AGENTS, key=final.__getitem__)


def proposals(env: str, instance: Instance, file: Path, winner: str, horizon: int) -> dict[str, np.ndarray]:
    """The lists to be judged, of the instance's items; in production is the log's most frequent one, as far as these go."""
    arena = gym.make(env, instance=str(file))
    agent = clickgym.make_agent(winner, arena, horizon=horizon, seed=0)
    clickgym.run(agent, arena, horizon, seed=0)
    observation, _ = arena.reset(seed=0)
    (model,) = instance.models.values()
    assert instance.initial_ranking is not None
    return {
        "in production": instance.initial_ranking[: instance.n_positions],
        f"learned by {winner}": agent.rank(observation),
        "best under the model": model.optimal_ranking(),
    }


def judge(
    log: ClickLog, instance: Instance, chosen: str, lists: dict[str, np.ndarray], truth: ClickModel | None, axes: Axes
) -> None:
    """What each list would have earned in the sessions of one query."""
    (model,) = instance.models.values()
    number = np.array([log.item_labels.index(label) for label in instance.estimation["items"]])
    earned = log.clicks.sum() / len(log)
    print(f"\nClicks per session on {len(log):,} held-out sessions of the query; what was logged earned {earned:.3f}")
    refused: dict[str, str] = {}
    for row, (name, ranking) in enumerate(lists.items()):
        words = [f"the {chosen} predicts {model.expected_reward(ranking):.3f}"]
        if truth is not None:
            # Here the log's labels are the numbers of the items.
            known = truth.expected_reward([int(instance.estimation["items"][item]) for item in ranking])
            words.append(f"the truth is {known:.3f}")
            axes.plot([known], [row - 0.36], "k*", label="truth" if row == 0 else None)
        axes.plot([model.expected_reward(ranking)], [row - 0.27], "kx", label=f"predicted: {chosen}" if row == 0 else None)
        print(f"  {name}: {', '.join(words)}")
        for column, estimator in enumerate((*WITH_MODEL, *WITHOUT_MODEL)):
            result = estimate(log, number[ranking], estimator)
            if isinstance(result, str):
                refused[estimator] = f"  {estimator} is refused for the list {name}: {result}"
                continue
            low, high = result.interval
            print(f"    {estimator:<14} {result.value:.3f}  (95 % interval {low:.3f} to {high:.3f})")
            height, style = row - 0.18 + 0.09 * column, {"color": COLOURS[column], "marker": "o", "markersize": 4}
            axes.plot([low, high], [height, height], color=COLOURS[column])
            axes.plot([result.value], [height], **style, linestyle="", label=estimator if row == 0 else None)
    print(*refused.values(), sep="\n")
    axes.axvline(earned, color="grey", linestyle=":", label="earned by the log")
    axes.set(title="What lists would have earned", xlabel="clicks per session", yticks=range(len(lists)))
    axes.set_yticklabels([name.replace(" ", "\n", 1) for name in lists])
    axes.invert_yaxis()
    axes.legend(fontsize="small")


def estimate(log: ClickLog, ranking: np.ndarray, estimator: str, bootstrap: int = 1000) -> Evaluation | str:
    """An off-policy estimate, or why there is none."""
    logging = empirical_policies(log) if estimator in WITHOUT_MODEL else None  # the others count for themselves
    try:
        return evaluate(log, FixedPolicy(ranking), estimator, logging=logging, bootstrap=bootstrap)
    except ValueError as error:
        return str(error)


def check(log: ClickLog, axes: Axes, n_lists: int = 10) -> None:
    """Estimate each of the most frequent lists from the sessions that showed another, beside what it earned."""
    lists, index, counts = np.unique(log.items, axis=0, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:n_lists]
    clicks = log.clicks.sum(axis=1)
    earned = np.array([clicks[index == i].mean() for i in frequent])
    noise = np.array([clicks[index == i].std() for i in frequent]) / np.sqrt(counts[frequent])
    print(f"\nThe {len(frequent)} most frequent lists, each estimated from the sessions that showed another")
    axes.errorbar(earned, earned, xerr=1.96 * noise, color="grey", fmt="none", label="earned, 95 %")
    print(f"  they earned {earned.min():.3f} to {earned.max():.3f}, known up to a standard error of {noise.mean():.3f}")
    for estimator, colour in zip(WITH_MODEL, COLOURS, strict=False):
        results = [estimate(log[index != i], lists[i], estimator, bootstrap=1) for i in frequent]
        values = np.array([np.nan if isinstance(result, str) else result.value for result in results])
        possible = np.isfinite(values)
        print(
            f"  {estimator:<4} is off by {np.abs(values - earned)[possible].mean():.3f} clicks on average "
            f"({possible.sum()} lists), correlation {np.corrcoef(values[possible], earned[possible])[0, 1]:.2f}"
        )
        axes.plot(earned, values, "o", color=colour, markersize=5, label=estimator)
    axes.axline((earned.mean(), earned.mean()), slope=1, color="black", linewidth=0.8)
    axes.set(title="Estimates of logged lists, from other sessions", xlabel="earned (clicks per session)", ylabel="estimated")
    axes.legend()


if __name__ == "__main__":
    main()
