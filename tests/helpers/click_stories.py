"""Click models written as stories of coin flips, their exact distributions by enumeration, and a
test of samples against a distribution.

The stories follow the definitions of the models, with one flip for each latent event, and share no
code with clickgym. The story of a click model is an entry of `STORIES` or the function ``story`` in
the model's own test file.
"""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict

import numpy as np
from scipy.stats import chi2

from clickgym import envs
from tests.helpers.registries import from_own_test

# The probability that a test of a distribution fails by chance, for a random seed. The tests use
# fixed seeds.
FALSE_ALARM = 1e-6


def cascade(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        examined[k] = 1
        if flip(model.attraction[item]):
            clicks[k] = 1
            break
    return -1


def position_based(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        attractive = flip(model.attraction[item])
        examined[k] = flip(model.examination[k])
        clicks[k] = attractive and examined[k]
    return -1


def dependent_click(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        examined[k] = 1
        if flip(model.attraction[item]):
            clicks[k] = 1
            if flip(model.termination[k]):
                return k
    return -1


def user_browsing(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        clicked = [j + 1 for j in range(k) if clicks[j]]
        attractive = flip(model.attraction[item])
        examined[k] = flip(model.examination[k, clicked[-1] if clicked else 0])
        clicks[k] = attractive and examined[k]
    return -1


def dynamic_bayesian(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        examined[k] = 1
        if flip(model.attraction[item]):
            clicks[k] = 1
            if flip(model.satisfaction[item]):
                return k
        if not flip(model.perseverance):
            break
    return -1


def click_chain(flip, model, ranking, clicks, examined):
    for k, item in enumerate(ranking):
        examined[k] = 1
        go_on = model.parameters.continue_after_skip
        if flip(model.attraction[item]):
            clicks[k] = 1
            relevant = flip(model.attraction[item])  # a separate coin
            go_on = (
                model.parameters.continue_after_relevant
                if relevant
                else model.parameters.continue_after_click
            )
        if not flip(go_on):
            break
    return -1


def trust_bias(flip, model, ranking, clicks, examined):
    _, examination, trust_relevant, trust_irrelevant = model.parameters
    for k, item in enumerate(ranking):
        relevant = flip(model.attraction[item])
        examined[k] = flip(examination[k])
        clicks[k] = examined[k] and flip(trust_relevant[k] if relevant else trust_irrelevant[k])
    return -1


def mixture(flip, model, ranking, clicks, examined):
    *kinds, last = zip(model.models, model.parameters.weights, strict=True)
    left = 1.0
    for kind, weight in kinds:
        if flip(weight / left):
            return story_of(type(kind))(flip, kind, ranking, clicks, examined)
        left -= weight
    return story_of(type(last[0]))(flip, last[0], ranking, clicks, examined)


STORIES = {
    envs.CascadeModel: cascade,
    envs.PositionBasedModel: position_based,
    envs.DependentClickModel: dependent_click,
    envs.UserBrowsingModel: user_browsing,
    envs.DynamicBayesianModel: dynamic_bayesian,
    envs.ClickChainModel: click_chain,
    envs.TrustBiasModel: trust_bias,
    envs.MixtureModel: mixture,
}
TOLD = tuple(STORIES | dict.fromkeys(envs.CLICK_MODELS.values()))
"""The classes of all click models, each of which has a story."""


def story_of(model_class):
    """Return the story of a click model: its entry in `STORIES`, or the function ``story(flip,
    model, ranking, clicks, examined)`` in the model's own test file.
    """
    if model_class in STORIES:
        return STORIES[model_class]
    return from_own_test(model_class, "story")


def make_model(model_class, n_items, n_positions, probabilities):
    """Create a click model whose parameters are the return values of ``probabilities(shape)``."""
    if model_class is envs.MixtureModel:
        models = [
            make_model(kind, n_items, n_positions, probabilities)
            for kind in (envs.UserBrowsingModel, envs.TrustBiasModel, envs.CascadeModel)
        ]
        return envs.MixtureModel(models, [0.3, 0.2, 0.5])
    sizes = {"L": n_items, "K": n_positions, "KK": (n_positions, n_positions), "": 1}
    shapes = model_class.shapes
    # after the attraction numbers, then arrays
    order = sorted(shapes, key=lambda name: (name != "attraction", shapes[name] != ""))
    values = {name: probabilities(sizes[shapes[name]]) for name in order}
    if model_class is envs.TrustBiasModel:  # clicks on relevant items are at least as likely
        trust = [values[name] for name in ("trust_irrelevant", "trust_relevant")]
        values["trust_irrelevant"], values["trust_relevant"] = np.sort(trust, axis=0)
    values |= {name: float(values[name][0]) for name, shape in shapes.items() if not shape}
    if "n_positions" in inspect.signature(model_class).parameters:
        values["n_positions"] = n_positions
    return model_class(**values)


def arguments_of(env_id, n_items, n_positions):
    """Return random parameters for a registered environment, as keyword arguments. Users who can
    change get a single epoch.
    """
    environment, rng = envs.ENVIRONMENTS[env_id], np.random.default_rng(0)
    description = make_model(
        environment.click_model, n_items, n_positions, lambda shape: rng.uniform(0.2, 0.8, shape)
    ).to_dict()
    if environment.form:
        return {"models": [description], "starts": [0]}
    return {name: value for name, value in description.items() if name != "model"}


def play(model, ranking, script):
    """Play a session in which the first coin flips follow a script and all later flips come up
    true.

    Returns:
        The outcome of the session, the probability of exactly these flips, and the flips.
    """
    flips, probability = [], 1.0

    def flip(p):
        nonlocal probability
        flips.append(script[len(flips)] if len(flips) < len(script) else True)
        probability *= p if flips[-1] else 1 - p
        return flips[-1]

    clicks, examined = [0] * len(ranking), [0] * len(ranking)
    satisfied = story_of(type(model))(flip, model, ranking, clicks, examined)
    return (tuple(map(int, clicks)), tuple(map(int, examined)), satisfied), probability, flips


def exact_law(model, ranking):
    """Return the probability of each outcome ``(clicks, examined, satisfied)``, by playing every
    sequence of coin flips once.

    ``satisfied`` is the position at which the user left satisfied, or -1.
    """
    law = defaultdict(float)
    scripts = [[]]
    while scripts:
        script = scripts.pop()
        outcome, probability, flips = play(model, ranking, script)
        if probability > 0:
            law[outcome] += probability
        scripts += [[*flips[:n], False] for n in range(len(script), len(flips))]
    return dict(law)


def marginal(law, of):
    """Return the distribution of ``of(clicks, examined, satisfied)``, where ``of`` is any function
    of a session's outcome.
    """
    result = defaultdict(float)
    for outcome, probability in law.items():
        result[of(*outcome)] += probability
    return dict(result)


def realised_reward(reward, cutoff, clicks, satisfied):
    """Return the reward of a session by the definition of the reward."""
    return {
        "clicks": sum(clicks[:cutoff]),
        "any_click": int(any(clicks[:cutoff])),
        "satisfaction": int(0 <= satisfied < cutoff),
    }[reward]


def assert_uniform(samples, support):
    """Check that ``samples`` are independent uniform draws from a support. The check fails by
    chance with probability 10⁻⁵.
    """
    law = dict.fromkeys(support)
    law = dict.fromkeys(law, 1 / len(law))
    samples = list(samples)
    assert set(samples) <= set(law), "an impossible outcome was drawn"
    if len(law) > 1:
        assert_sampled_from(law, samples, 1e-5)


def assert_sampled_from(law, samples, false_alarm=FALSE_ALARM):
    """Check that ``samples`` are independent draws from ``law``, by a chi-square test.

    Rare outcomes are pooled into cells with at least 25 expected draws, so that the chi-square
    approximation is accurate even far out in the tail.
    """
    samples = list(samples)
    counts = Counter(samples)
    assert set(counts) <= set(law), "an impossible outcome was drawn"
    cells, pool = [], np.zeros(2)
    for outcome in sorted(law, key=law.get):
        pool += (counts[outcome], law[outcome] * len(samples))
        if pool[1] >= 25:
            cells.append(pool)
            pool = np.zeros(2)
    observed, expected = np.array(cells).T
    assert len(expected) > 1, "nothing to test"
    statistic = np.sum((observed - expected) ** 2 / expected)
    p = chi2.sf(statistic, df=len(expected) - 1)
    assert p >= false_alarm, f"p = {p:.2g}: the draws do not follow the law"
