"""Stage 2: from the options of an explainer to a fitted local model, with what was chosen on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from limis.any_surrogate import AnySurrogate
from limis.changes import STARTS, ColumnSystems, RecordedChanges
from limis.errors import InputError
from limis.progress import progress
from limis.retrieval import Retriever
from limis.retrieval.retriever import MAX_FOREST_ROWS
from limis.rows import TrainingRows
from limis.spans import RecordedValues
from limis.training.choose import (
    CANDIDATES,
    SCALES,
    Choice,
    best_of,
    choose_candidates,
    choose_forest_weighting,
    choose_level,
    choose_start,
    choose_tree,
    choose_two_scales,
    n_tries,
)
from limis.training.levels import train_level
from limis.training.objectives import Objective
from limis.training.plans import PLANS, plan_for, plan_for_trees
from limis.training.probes import ProbeRows
from limis.training.retrieved import train_retrieved
from limis.training.slopes import train_slopes
from limis.training.terms import ChangeError, RowError, Term
from limis.training.trainer import TrainingLog, TreeSurrogate, train
from limis.trees.carried import CarriedChanges
from limis.trees.fits import TreeModel
from limis.trees.inputs import TreeInputs
from limis.two_scales import SlopeWeighting, TwoScales
from limis.walk import GlobalFit, LocalModel, OneScale
from limis.weighting import ForestWeighting, Weighting
from limis.weighting.random import RandomWeighting

START_CANDIDATES, START_SCALE, START_PRIOR = 256, 10.0, 0.1
# A learned kernel weighs all training rows for each row: few teach it nothing, and many cost too much. Where it would
# cost too much, a metric among the forest's rows is learned instead.
MIN_LEARNED_ROWS, MAX_LEARNED_ROWS = 200, 5_000
MAX_LEARNED_CELLS = 1_000_000  # rows × cells of the columns' systems, which every step goes through

# Below this share of rows with recorded changes, slopes look for such rows alone: hardly any near row would be one.
FEW_RECORDED = 0.1

TRAINED = tuple(PLANS)
WEIGHTINGS = ("auto", "two-scales", "forest", "retrieved", *TRAINED, "random")


@dataclass
class FitOptions:
    """What an explainer was told about stage 2, by the names of its parameters."""

    surrogate: Any  # "ridge", "tree" or a regressor
    max_depth: int
    weighting: str
    objective: Objective | Literal["auto"]
    reward: Sequence[Term] | None
    selection_penalty: float | Literal["auto"]
    candidates: int | Literal["auto"]
    inference: str
    device: str
    time_budget: float | None
    memory_limit: float
    n_jobs: int | None
    random_state: int
    verbose: bool


@dataclass
class FittedStage:
    """A local model, the list it was chosen from, the learning curves of what was trained, and the changes it is on."""

    model: LocalModel
    choices: list[Choice] = field(default_factory=list)
    logs: list[TrainingLog] = field(default_factory=list)
    recorded: RecordedChanges | None = None  # as the model counts them

    def choices_frame(self, unit: float) -> pd.DataFrame:
        """What was tried, a line each: options, or the λ of each training run; ``unit`` is that of the logs' errors."""
        if self.choices or not self.logs:
            return pd.DataFrame([choice.to_dict() for choice in self.choices])
        best = min(self.logs, key=lambda log: log.error)
        return pd.DataFrame(
            {
                "selection_penalty": log.penalty,
                "error": log.error * unit,
                "global_error": log.global_error * unit,
                "chosen": log is best,
            }
            for log in self.logs
        )


@dataclass
class Stage:
    """Everything a local model is fitted from."""

    options: FitOptions
    training: TrainingRows
    fallback: GlobalFit
    choosing: ProbeRows
    rng: np.random.Generator

    def fit(self, recorded: RecordedChanges | None) -> FittedStage:
        """Fit what the options ask for; on two scales where changes were recorded."""
        found = self.fit_ridge(recorded)
        if not isinstance(self.options.surrogate, str):
            found.model = AnySurrogate(found.model, self.options.surrogate, self.options.n_jobs)
            return found
        return found if self.options.surrogate == "ridge" else self.with_trees(found)

    def with_trees(self, found: FittedStage) -> FittedStage:
        """Trees in place of the ridges, on what these found near.

        A weighting that was trained for ridges is tried beside one that is trained for trees.
        """
        inputs, recorded = TreeInputs.learn(self.training), found.recorded
        carried, told_share = None, 1.0
        if recorded is not None:
            told_share = recorded.told_share
            carried = CarriedChanges.of(self.training, inputs, recorded.counted(self.training, recorded.start))
        choices = [*found.choices]
        best, tried = self._choose_tree(found.model, inputs, carried, told_share, "ridge")
        if self.options.weighting in TRAINED and tried:
            other = self.fit_trained(TreeSurrogate(inputs, self.options.max_depth))
            model, more = self._choose_tree(other.model, inputs, carried, told_share, "tree")
            tried += more
            found = replace(found, logs=[*found.logs, *other.logs])
            if best_of(tried) in more:
                best = model
        return replace(found, model=best, choices=[*choices, *tried])

    def _choose_tree(
        self,
        base: LocalModel,
        inputs: TreeInputs,
        carried: CarriedChanges | None,
        told_share: float,
        trained_with: str,
    ) -> tuple[TreeModel, list[Choice]]:
        model, choices = choose_tree(
            self.training,
            TreeModel(base, inputs, depth=self.options.max_depth),
            carried,
            told_share,
            self.fallback,
            self.choosing,
            self.options.memory_limit,
        )
        if self.options.weighting in TRAINED:
            for choice in choices:
                choice.options["trained_with"] = trained_with
        return model, choices

    def fit_ridge(self, recorded: RecordedChanges | None) -> FittedStage:
        """Ridges for each row."""
        weighting = self.options.weighting
        if recorded is not None:
            return self.fit_two_scales(recorded)
        if weighting in TRAINED:
            return self.fit_trained()
        if weighting == "random":
            return FittedStage(OneScale(RandomWeighting(seed=self.options.random_state)))
        if weighting == "forest":
            return self.fit_forest()
        if weighting == "retrieved":
            self._need_probes()
        return self.fit_retrieved(beside_forest=weighting == "auto")

    def fit_two_scales(self, recorded: RecordedChanges) -> FittedStage:
        """Levels from the forest's rows, slopes from recorded changes: of its rows, or of rows weighed by a kernel."""
        check_device(self.options.device)
        training, options = self.training, self.options
        weightings: dict[str, SlopeWeighting | None] = {"forest": None}
        # More copies than that could not be grown on.
        copies = recorded.copies(min(len(training), MAX_FOREST_ROWS), self.rng)
        asked = np.zeros(len(training), dtype=bool)
        asked[recorded.rows] = True
        with progress(1, "growing the forest", options.verbose) as bar:
            retriever = Retriever.fit(
                training,
                rng=self.rng,
                copies=copies,
                n_jobs=self._threads(),
                beyond_trend=isinstance(options.surrogate, str),
                marked=asked if asked.mean() < FEW_RECORDED else None,
            )
            bar.update()
        level_rows, values = self._candidate_list(), RecordedValues.of(recorded, training)
        recorded, start, choices = self._choose_start(
            recorded,
            lambda systems: TwoScales(
                retriever,
                copies,
                systems,
                values,
                None,
                self._start_candidates(),
                level_rows[0],
                START_PRIOR,
                device=options.device,
            ),
        )
        systems = start.systems
        seed = int(self.rng.integers(2**31))
        affordable = len(training) <= MAX_LEARNED_ROWS and np.prod(systems.grams.shape) <= MAX_LEARNED_CELLS
        if len(training) >= MIN_LEARNED_ROWS and affordable and len(recorded):
            weightings["learned"] = train_slopes(
                training,
                recorded,
                systems,
                self.choosing,
                seed,
                time_budget=options.time_budget,
                verbose=options.verbose,
            )
        with progress(n_tries(weightings), "choosing on probe rows", options.verbose) as bar:
            model = choose_two_scales(
                training,
                start,
                weightings,
                level_rows,
                choices,
                self.fallback,
                self.choosing,
                options.memory_limit,
                done=bar.update,
            )
            bar.total = bar.n  # the best of some tries spares others
        # The metric raises the forest's weights to a power: rows that count more than others would count yet more.
        if choices and not affordable and training.sample_weight is None:
            wide = model.with_options(n_level=max(level_rows))
            metric = train_level(
                training, wide, seed, options.memory_limit, time_budget=options.time_budget, verbose=options.verbose
            )
            if metric is not None:
                learned = wide.with_options(level_metric=metric)
                model = choose_level(
                    training, model, learned, choices, self.fallback, self.choosing, options.memory_limit
                )
        if choices:
            recorded = recorded.counted(training, recorded.start, best_of(choices).options["told_share"])
        return FittedStage(model, choices, recorded=recorded)

    def _choose_start(
        self, recorded: RecordedChanges, model_on: Callable[[ColumnSystems], TwoScales]
    ) -> tuple[RecordedChanges, TwoScales, list[Choice]]:
        """The changes, counted from what serves best, a first model on them, and what was tried."""
        training = self.training
        counted = {start: recorded.counted(training, start) for start in STARTS}
        models = {
            start: model_on(changes.systems(training.table, training.values, training.sample_weight))
            for start, changes in counted.items()
        }
        best, choices = choose_start(training, models, self.fallback, self.choosing, self.options.memory_limit)
        return counted[best], models[best], choices

    def fit_forest(self) -> FittedStage:
        """A ridge on the forest's rows; how many, and what they are worth, chosen on probe rows."""
        with progress(
            1 + len(SCALES) * len(self._candidate_list()), "fitting the explainer", self.options.verbose
        ) as bar:
            retriever = Retriever.fit(self.training, rng=self.rng, n_jobs=self._threads())
            bar.update()
            return self._choose_forest(retriever, bar.update)

    def _choose_forest(self, retriever: Retriever, done: Callable[[], object]) -> FittedStage:
        start = ForestWeighting(retriever, self._start_candidates(), START_SCALE)
        weighting, choices = choose_forest_weighting(
            self.training, start, self._candidate_list(), self.fallback, self.choosing, self.options.memory_limit, done
        )
        return FittedStage(self._one_scale(weighting), choices)

    def fit_retrieved(self, beside_forest: bool) -> FittedStage:
        """A ridge on the forest's rows, weighed by what is learned; beside the forest's own weights where "auto"."""
        options, training = self.options, self.training
        retriever = Retriever.fit(training, rng=self.rng, n_jobs=self._threads())
        found = FittedStage(OneScale(ForestWeighting(retriever, self._start_candidates(), START_SCALE)))
        if beside_forest:
            found = self._choose_forest(retriever, lambda: None)
            if len(training) < MIN_LEARNED_ROWS or len(self.choosing) == 0:
                return found
        weighting, log = train_retrieved(
            training,
            retriever,
            self.choosing,
            (RowError(squared=True), ChangeError()) if options.reward is None else options.reward,
            self._start_candidates(),
            int(self.rng.integers(2**31)),
            time_budget=options.time_budget,
            verbose=options.verbose,
        )
        choices = choose_candidates(
            training, weighting, self._candidate_list(), self.fallback, self.choosing, options.memory_limit
        )
        best = best_of([*found.choices, *choices])
        if best in choices:
            found.model = self._one_scale(replace(weighting, n_candidates=best.options["n_candidates"]))
        return FittedStage(found.model, [*found.choices, *choices], [log])

    def fit_trained(self, trees: TreeSurrogate | None = None) -> FittedStage:
        """A weight estimator over all training rows, rewarded by ridges on what it weighs, or by trees."""
        options, training = self.options, self.training
        self._need_probes()
        check_device(options.device)
        plan = (plan_for if trees is None else plan_for_trees)(options.weighting, options.objective)
        if options.selection_penalty != "auto":
            plan = replace(plan, penalty=float(options.selection_penalty))
        if options.reward is not None:
            plan = replace(plan, terms=tuple(options.reward))
        weighting, logs = train(
            training,
            self.choosing,
            self.fallback,
            replace(plan, time_budget=self._time_budget()),
            int(self.rng.integers(2**31)),
            options.verbose,
            device=options.device if trees is None else "cpu",
            trees=trees,
        )
        return FittedStage(self._one_scale(weighting), [], logs)

    def _threads(self) -> int:
        """For growing the forest."""
        return -1 if self.options.n_jobs is None else self.options.n_jobs

    def _time_budget(self) -> float | None:
        """Seconds for one estimator; where trees explain, two are trained."""
        budget = self.options.time_budget
        return budget / 2 if budget is not None and self.options.surrogate == "tree" else budget

    def _need_probes(self) -> None:
        if len(self.choosing) == 0:
            raise InputError("training a weight estimator needs probe rows; give probe_rows or more rows")

    def _one_scale(self, weighting: Weighting) -> OneScale:
        return OneScale(weighting, self.options.inference, self.options.random_state)

    def _start_candidates(self) -> int:
        return START_CANDIDATES if self.options.candidates == "auto" else self.options.candidates

    def _candidate_list(self) -> tuple[int, ...]:
        return CANDIDATES if self.options.candidates == "auto" else (self.options.candidates,)


def check_device(name: str) -> None:
    """Refuse a device that is not here."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"there is no device {name!r} here; use device='cpu' ({str(error).splitlines()[0]})"
        ) from error
