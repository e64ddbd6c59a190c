"""Interface to Optuna for a tuning: it proposes values from earlier trials, and says which trials to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..agents import Range
from .search import Space, contains

DIGITS = 3
"""Of a number that is proposed, so that it can be typed: on a logarithmic scale its own, else relative to the range."""


class Sampler:
    """Optuna's tree-structured Parzen estimator with its median pruner.

    Args:
        space: what is searched.
        seed: of the proposals; these depend on it and on the trials, and on nothing before.
    """

    def __init__(self, space: Space, seed: int) -> None:
        from optuna import create_study, logging
        from optuna.pruners import MedianPruner
        from optuna.samplers import TPESampler

        self._space = space
        self._distributions = {key: _distribution(values) for key, values in space.items()}
        verbosity = logging.get_verbosity()
        logging.set_verbosity(logging.WARNING)  # else it tells that there is a study
        try:
            self._study = create_study(sampler=TPESampler(seed=seed), pruner=MedianPruner())
        finally:
            logging.set_verbosity(verbosity)

    def tell(self, values: Mapping[str, Any], scores: Sequence[float], complete: bool) -> None:
        """Add a finished or stopped trial.

        Args:
            values: of all that is searched; a trial with others is passed over.
            scores: after each of its runs.
            complete: whether it was not given up.
        """
        from optuna.trial import TrialState, create_trial

        if all(contains(self._space[key], values.get(key)) for key in self._space):
            self._study.add_trial(
                create_trial(
                    state=TrialState.COMPLETE if complete else TrialState.PRUNED,
                    value=scores[-1],
                    params={key: _encoded(self._space[key], values[key]) for key in self._space},
                    distributions=self._distributions,
                    intermediate_values=_by_step(scores),
                )
            )

    def ask(self) -> Iterator[tuple[dict[str, Any], Callable[[], object]]]:
        """An endless iterator over proposals, each with a function to call if it will not be tried."""
        from optuna.trial import TrialState

        while True:
            trial = self._study.ask(self._distributions)
            values = {key: _decoded(self._space[key], value) for key, value in trial.params.items()}
            yield values, partial(self._study.tell, trial, state=TrialState.FAIL)

    def gives_up(self, scores: Sequence[float]) -> bool:
        """Whether a trial is worse than the median of the complete ones after as many runs; not before there are five of them.

        Args:
            scores: after each run so far.
        """
        from optuna.trial import TrialState, create_trial

        trial = create_trial(state=TrialState.RUNNING, intermediate_values=_by_step(scores))
        return bool(self._study.pruner.prune(self._study, trial))

    def importances(self) -> dict[str, float]:
        """How much each hyper-parameter matters in the best quarter of the trials, by PED-ANOVA; the largest first."""
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        # A quarter, for the best tenth of a few dozen trials, which Optuna takes by default, are two or three.
        return get_param_importances(self._study, evaluator=PedAnovaImportanceEvaluator(target_quantile=0.25))


def _by_step(scores: Sequence[float]) -> dict[int, float]:
    return dict(enumerate(scores, start=1))


def _distribution(values: Range | tuple[Any, ...]) -> Any:
    """As Optuna has it; of a set the places, which are a scale if they are those of numbers in their order."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(values, Range):
        kind: Any = IntDistribution if values.whole else FloatDistribution
        return kind(values.low, values.high, log=values.log)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values) and list(values) == sorted(
        values
    ):
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution(tuple(range(len(values))))


def _encoded(values: Range | tuple[Any, ...], value: Any) -> Any:
    """A value as Optuna has it."""
    if isinstance(values, Range):
        return value
    return next(place for place, entry in enumerate(values) if contains((entry,), value))


def _decoded(values: Range | tuple[Any, ...], value: Any) -> Any:
    """A value of Optuna, in `DIGITS`."""
    if not isinstance(values, Range):
        return values[value]
    if values.whole:
        return int(value)
    if values.log:
        number = float(f"{value:.{DIGITS}g}")
    else:
        number = round(value, DIGITS - math.ceil(math.log10(values.high - values.low)))
    return min(max(number, values.low), values.high)
