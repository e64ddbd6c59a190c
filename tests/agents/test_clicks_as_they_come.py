"""Agents that learn from any list, followed through a slow simulation of late, lost and false clicks, and of changing items.

The simulation is written from what the axes are said to do, with a dict of displays and of when they are due; it shares
nothing with the environments but the seeds. References in plain Python allow each list, and the compiled engine comes to the
same regret and clicks in every session, and to the same state.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_agents import make, plain, reference_of
from slow import slow

import clickgym
from clickgym.envs import CascadeModel, ClickEnv, PositionBasedModel

L, K, SESSIONS = 6, 3, 300
ATTRACTION, EXAMINATION = [0.2, 0.7, 0.1, 0.5, 0.35, 0.6], [1.0, 0.7, 0.4]
MODELS = {"CM": CascadeModel(ATTRACTION, n_positions=K), "PBM": PositionBasedModel(ATTRACTION, EXAMINATION)}
AXES = {
    "batch": {"arrival": "batch:20"},
    "delay": {"arrival": "delay:15:lost=0.2"},
    "geometric": {"arrival": "delay:geometric:8:lost=0.1"},
    "random bots": {"bots": "random:share=0.3:rate=0.8"},
    "farm": {"bots": "farm:share=0.3:targets=2+4", "arrival": "delay:5"},
    "quit": {"bots": "quit:first=60:target=2"},
    "churn": {"churn": 0.1},
    "late churn": {"churn": 0.1, "arrival": "delay:geometric:8"},
    "available": {"available": 4},
    "all": {"arrival": "batch:7:lost=0.1", "bots": "farm:share=0.2:targets=2+4", "churn": 0.05, "available": 4},
}
CASCADE = ("CascadeUCB1", "CascadeKLUCB", "CascadeTS", "EpsilonGreedy")

POSITION = ("PBMUCB", "PBMTS", "BCMPTS")
PAIRS = [(name, axis) for name in CASCADE for axis in AXES]
PAIRS += [(name, axis) for name in ("DCMKLUCB", *POSITION) for axis in AXES]
QUICK = [("CascadeUCB1", axis) for axis in ("batch", "farm", "late churn", "all")] + [("PBMUCB", "geometric")]


def generator(seed, *axis):
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0xC11C, *axis))))


def options(text):
    kind, *rest = text.split(":")
    values = [part for part in rest if "=" not in part]
    return kind, values, dict(part.split("=") for part in rest if "=" in part)


def value(kind, attraction, ranking):
    shown = [attraction[item] for item in ranking]
    if kind == "CM":
        return 1 - math.prod(1 - each for each in shown)
    return sum(each * examination for each, examination in zip(shown, EXAMINATION, strict=True))


def clicks_of_user(kind, attraction, ranking, u):
    if kind == "PBM":
        return [int(u[k] < EXAMINATION[k] * attraction[item]) for k, item in enumerate(ranking)]
    clicks = [0] * K
    for k, item in enumerate(ranking):
        if u[k] < attraction[item]:
            clicks[k] = 1
            break
    return clicks


def due(kind, values, session, u):
    if kind == "immediate":
        return session
    if kind == "batch":
        return math.ceil(session / int(values[0])) * int(values[0])
    if values[0] != "geometric":
        return session + int(values[0])
    rho = 1 / (1 + float(values[1]))
    return session + math.floor(math.log(1 - u) / math.log(1 - rho))


def learn(reference, ranking, clicks, void):
    """What a reference learns of a list with void entries: the same examined positions, and of these the others."""
    positions = [k for k in reference.examined(clicks) if not void[k]]
    for k in positions:
        reference.seen[ranking[k]] += 1
        reference.clicks[ranking[k]] += clicks[k]
        if hasattr(reference, "shown"):
            reference.shown[ranking[k]][k] += 1
            reference.clicked[ranking[k]][k] += clicks[k]


def forget(reference, item):
    reference.seen[item] = reference.clicks[item] = 0
    if hasattr(reference, "shown"):
        reference.shown[item], reference.clicked[item] = [0] * K, [0] * K


def simulate(agent, reference, kind, axes, seed):
    """Regret and clicks of each session, and what was void, lost, or false."""
    users, (late, fake, new, there) = generator(seed), (generator(seed, 0xA8E5, axis) for axis in range(4))
    arrival, values, given = options(axes.get("arrival", "immediate"))
    bots, _, of_bots = options(axes.get("bots", "none"))
    targets = {int(item) for item in of_bots.get("targets", of_bots.get("target", "")).split("+") if item}
    if "bots" in axes:
        fake.random(L)  # ties of targets that are not given
    attraction, size = list(ATTRACTION), axes.get("available", L)
    displays, replaced_after = {}, dict.fromkeys(range(L), 0)
    regrets, clicks_seen, events = [], [], {"void": 0, "lost": 0, "false": 0}

    def draw_available():
        deck = list(range(L))
        u = there.random(L)
        for a in range(size):
            swap = a + int(u[a] * (L - a))
            deck[a], deck[swap] = deck[swap], deck[a]
        return sorted(deck[:size])

    available = draw_available() if size < L else list(range(L))
    for session in range(1, SESSIONS + 1):
        mask = np.isin(np.arange(L), available)
        ranking = agent.rank(None, mask if size < L else None).tolist()
        assert set(ranking) <= set(available)
        if size == L:  # a reference allows lists of all items
            reference.t = session
            assert reference.allows(ranking, agent.state), session
        true = reported = clicks_of_user(kind, attraction, ranking, users.random(K))
        best = sorted(available, key=lambda item: -attraction[item])[:K]
        regret = value(kind, attraction, best) - value(kind, attraction, ranking)
        counted = true
        if "bots" in axes:
            u = fake.random(1 + K)
            if session <= int(of_bots.get("first", 0)) or u[0] < float(of_bots.get("share", 0)):
                if bots == "random":
                    reported = [int(u[1 + k] < float(of_bots["rate"])) for k in range(K)]
                else:
                    reported = [int(item in targets) for item in ranking]
                events["false"] += reported != true
                if bots != "quit":
                    regret, counted = 0.0, [0] * K
        u = late.random(2) if "arrival" in axes else (0.0, 1.0)
        if u[1] < float(given.get("lost", 0)):
            events["lost"] += 1
        else:
            displays[session] = due(arrival, values, session, u[0]), ranking, reported
        for display in [number for number, (then, *_) in displays.items() if then == session]:
            _, shown, clicks = displays.pop(display)
            void = [replaced_after[item] >= display for item in shown]
            events["void"] += any(void)
            agent.update(None, np.array(shown), np.array(clicks), display=display, void=np.array(void) if any(void) else None)
            learn(reference, shown, clicks, void)
        assert reference.agrees(agent.state), session
        if "churn" in axes:
            whether, which, what = new.random(3)
            if whether < axes["churn"]:
                item = int(which * L)
                attraction[item] = ATTRACTION[int(what * L)]
                replaced_after[item] = session
                agent.replace(item)
                forget(reference, item)
        available = draw_available() if size < L else available
        regrets.append(regret)
        clicks_seen.append(sum(counted))
    return regrets, clicks_seen, events


@pytest.mark.parametrize(("name", "axis"), [*QUICK, *slow(*(pair for pair in PAIRS if pair not in QUICK))])
def test_an_agent_shows_what_the_plain_simulation_of_its_feedback_allows(name, axis):
    kind, axes = "PBM" if name in POSITION else "CM", AXES[axis]
    agent, compiled = (make(name, MODELS[kind], horizon=SESSIONS, seed=3) for _ in range(2))
    regrets, clicks, events = simulate(agent, reference_of(agent), kind, axes, seed=4)
    result = clickgym.run(
        compiled, ClickEnv(MODELS[kind], **axes), SESSIONS, seed=4, engine="compiled", checkpoints=range(1, SESSIONS + 1)
    )
    assert np.diff(result.clicks, prepend=0).tolist() == clicks
    np.testing.assert_allclose(np.diff(result.regret, prepend=0), regrets, atol=1e-9)
    ours, theirs = plain(agent.state), plain(compiled.state)
    assert ours == theirs
    assert (events["lost"] > 0) == ("lost" in axes.get("arrival", ""))
    assert (events["false"] > 10) == ("bots" in axes)
    assert (events["void"] > 10) == ("churn" in axes and "arrival" in axes)
