"""Choosing what is "auto": a short fixed list, judged on probe rows by error at the row and skill on changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limis.changes import Start
from limis.metrics import lmae, nse, skill_on_changes
from limis.rows import TrainingRows
from limis.table import Table
from limis.training.probes import ProbeRows
from limis.trees.carried import CarriedChanges
from limis.trees.fits import RecordsFrom, TreeFits, TreeModel
from limis.two_scales import SlopeWeighting, TwoScales
from limis.walk import GlobalFit, LocalFits, LocalModel, OneScale, fit_locally
from limis.weighting import ForestWeighting
from limis.weighting.retrieved import RetrievedWeighting

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
CANDIDATES = (64, 256)
PRIORS = (0.0, 0.1, 0.5, 2.0)
TOLD_SHARES = (1.0, 0.7, 0.4, 0.1)
REACHES = (1.0, 0.5, 0.0)
RECORD_REACHES = (0.03, 0.1, 0.3)  # in ranks


@dataclass
class Choice:
    """One entry of the list and the numbers it earned."""

    options: dict[str, Any]
    nse: float
    lmae: float
    skill: float | None
    merit: float
    chosen: bool = False

    @classmethod
    def of(cls, options: dict[str, Any], table: Table, fits: LocalFits, probes: ProbeRows) -> Choice:
        """Judge the fits that the options gave."""
        constant = np.ptp(probes.outputs) == 0
        return cls(
            options,
            **judge(table, fits, probes),
            merit=float("nan") if constant else merit(table, fits, probes),
        )

    @classmethod
    def tried(
        cls,
        options: dict[str, Any],
        training: TrainingRows,
        model: LocalModel,
        fallback: GlobalFit,
        probes: ProbeRows,
        memory_limit: float,
    ) -> Choice:
        """Fit the probe rows with the options' model, and judge it."""
        fits = LocalFits.join(list(fit_locally(training, model, fallback, probes.values, memory_limit)))
        return cls.of(options, training.table, fits, probes)

    def to_dict(self) -> dict[str, Any]:
        """One line of the table of choices."""
        skill = {} if self.skill is None else {"skill": self.skill}
        return {**self.options, "nse": self.nse, "lmae": self.lmae, **skill, "merit": self.merit, "chosen": self.chosen}


def judge(table: Table, fits: LocalFits, probes: ProbeRows) -> dict[str, Any]:
    """NSE, LMAE and, where moves were asked, skill on changes of finished fits on probe rows."""
    predictions, foreseen = fits.predictions(), _foreseen(table, fits, probes)
    constant = np.ptp(probes.outputs) == 0
    return {
        # A black box that says the same of every probe row leaves no variance to foresee.
        "nse": float("nan") if constant else nse(probes.outputs, predictions),
        "lmae": lmae(probes.outputs, predictions),
        "skill": None if foreseen is None else skill_on_changes(*foreseen),
    }


def merit(table: Table, fits: LocalFits, probes: ProbeRows) -> float:
    """What decides: the share of what the black box does that is foreseen, at the row and on changes.

    Shares of squares and of absolute values, all counting alike. Squares alone would let the few changes that cross a
    jump of the black box decide, which no slope foresees; absolute values alone would like no slopes at all where
    most changes do nothing.
    """
    centred = probes.outputs - probes.outputs.mean()
    pairs = [(centred, probes.outputs - fits.predictions())]
    foreseen = _foreseen(table, fits, probes)
    if foreseen is not None:
        pairs.append((foreseen[0], foreseen[0] - foreseen[1]))
    shares = [
        1 - (np.abs(left) ** power).sum() / (np.abs(all_) ** power).sum() for all_, left in pairs for power in (1, 2)
    ]
    return float(np.mean(shares))


def _foreseen(table: Table, fits: LocalFits, probes: ProbeRows) -> tuple[np.ndarray, np.ndarray] | None:
    """What the black box did under the moves it was asked about, and what the fits say of them."""
    if probes.asked is None or not np.any(probes.asked.changes):
        return None
    return probes.asked.changes, fits.changes(probes.asked.rows, probes.asked.moved(table))


def choose_forest_weighting(
    training: TrainingRows,
    weighting: ForestWeighting,
    candidates: Sequence[int],
    fallback: GlobalFit,
    probes: ProbeRows,
    memory_limit: float,
    done: Callable[[], object],
) -> tuple[ForestWeighting, list[Choice]]:
    """The weights' scale and the number of candidates; the given ones stay when there are no probe rows.

    ``done`` is called after each entry of the list.
    """
    if len(probes) < 2:
        return weighting, []
    choices = []
    for n_candidates in candidates:
        for scale in SCALES:
            tried = OneScale(replace(weighting, n_candidates=n_candidates, scale=scale))
            entry = {"weighting": "forest", "n_candidates": n_candidates, "scale": scale}
            choices.append(Choice.tried(entry, training, tried, fallback, probes, memory_limit))
            done()
    best = best_of(choices).options
    return replace(weighting, n_candidates=best["n_candidates"], scale=best["scale"]), choices


def choose_candidates(
    training: TrainingRows,
    weighting: RetrievedWeighting,
    candidates: Sequence[int],
    fallback: GlobalFit,
    probes: ProbeRows,
    memory_limit: float,
) -> list[Choice]:
    """What a trained weighting of retrieved rows is worth on fewer and more of them."""
    choices = []
    for n_candidates in candidates:
        tried = OneScale(replace(weighting, n_candidates=n_candidates))
        entry = {"weighting": "retrieved", "n_candidates": n_candidates}
        choices.append(Choice.tried(entry, training, tried, fallback, probes, memory_limit))
    return choices


def choose_start(
    training: TrainingRows, models: dict[Start, TwoScales], fallback: GlobalFit, probes: ProbeRows, memory_limit: float
) -> tuple[Start, list[Choice]]:
    """What recorded changes are counted from, given the model with either; the first where nothing tells."""
    if len(probes) < 2:
        return next(iter(models)), []
    choices = [
        Choice.tried(_options_of(model, start), training, model, fallback, probes, memory_limit)
        for start, model in models.items()
    ]
    return best_of(choices).options["counted_from"], choices


def _options_of(model: TwoScales, start: Start) -> dict[str, Any]:
    """The options of a model whose slopes rest on all of the changes of the forest's rows."""
    given = {name: getattr(model, name) for name in ("n_candidates", "n_level", "reach", "level_from", "prior")}
    return {**given, "slopes_from": "forest", "counted_from": start, "told_share": 1.0}


def choose_two_scales(
    training: TrainingRows,
    model: TwoScales,
    slope_weightings: dict[str, SlopeWeighting | None],
    level_rows: Sequence[int],
    choices: list[Choice],
    fallback: GlobalFit,
    probes: ProbeRows,
    memory_limit: float,
    *,
    done: Callable[[], object],
) -> TwoScales:
    """Whose changes the slopes rest on, how much those of all rows count, whose rows give the level, and how.

    Then how much of the changes is told: those of rows that the black box was fitted on may be larger than those of
    other rows. If it is not all, the count of all rows is looked at again. How many rows the level rests on, and
    whether slopes carry it from there, comes after that, for the best of the rest.

    ``choices`` has what `choose_start` tried, and gets what is tried here; ``done`` is called after each try. The given
    model stays where nothing was tried.
    """
    if not choices:
        return model

    def judge_all(tries: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Judge those that were not judged before; the options of the best of all."""
        known = [choice.options for choice in choices]
        for options in tries:
            if options not in known:
                tried = with_options(options)
                choices.append(Choice.tried(options, training, tried, fallback, probes, memory_limit))
                done()
        return best_of(choices).options

    def with_options(options: dict[str, Any]) -> TwoScales:
        given = {name: options[name] for name in ("n_candidates", "n_level", "reach", "level_from", "prior")}
        whose, systems = slope_weightings[options["slopes_from"]], model.systems.telling(options["told_share"])
        return model.with_options(slope_weighting=whose, systems=systems, **given)

    start = best_of(choices).options
    best = judge_all(
        {**start, "slopes_from": whose, "level_from": level, "prior": prior}
        for whose, weighting in slope_weightings.items()
        for level in (("forest",) if weighting is None else ("forest", "slopes"))
        for prior in PRIORS
    )
    best = judge_all({**best, "told_share": share} for share in TOLD_SHARES)
    if best["told_share"] < 1:
        best = judge_all({**best, "prior": prior} for prior in PRIORS)
    best = judge_all({**best, "n_level": n, "reach": reach} for n in level_rows for reach in REACHES)
    return with_options(best)


def choose_level(
    training: TrainingRows,
    model: TwoScales,
    learned: TwoScales,
    choices: list[Choice],
    fallback: GlobalFit,
    probes: ProbeRows,
    memory_limit: float,
) -> TwoScales:
    """The model, or the same with learned weights for the level; what was tried is added to the choices."""
    best = best_of(choices)
    models = {id(best): model}
    for reach in REACHES:
        tried = learned.with_options(reach=reach)
        options = {**best.options, "level_from": "forest, learned metric", "n_level": learned.n_level, "reach": reach}
        choices.append(Choice.tried(options, training, tried, fallback, probes, memory_limit))
        models[id(choices[-1])] = tried
    return models[id(best_of(choices))]


def choose_tree(
    training: TrainingRows,
    model: TreeModel,
    carried: CarriedChanges | None,
    told_share: float,
    fallback: GlobalFit,
    probes: ProbeRows,
    memory_limit: float,
) -> tuple[TreeModel, list[Choice]]:
    """What trees are fitted on: weighted rows or, where there are any, recorded changes, whose, and how much of them.

    ``carried`` tells all of the changes. A share of them, which served the slopes, is tried beside: trees do not
    overshoot where lines do.
    """
    tries: list[dict[str, Any]] = [{"tree_on": "rows"}]
    if carried is not None:
        sources: tuple[RecordsFrom, ...] = ("forest", "slopes") if _has_own_slopes(model.base) else ("forest",)
        tries = [
            {"tree_on": "changes", "records_from": source, "record_reach": reach, "records_told_share": share}
            for source in sources
            for reach in RECORD_REACHES
            for share in dict.fromkeys((1.0, told_share))
        ] + tries
    models = [
        model
        if options["tree_on"] == "rows" or carried is None
        else replace(
            model,
            carried=carried.telling(options["records_told_share"]),
            records_from=options["records_from"],
            reach=options["record_reach"],
        )
        for options in tries
    ]
    if len(probes) < 2:
        return models[0], []
    bases = list(fit_locally(training, model.base, fallback, probes.values, memory_limit))
    starts = np.cumsum([0, *(len(part.levels) for part in bases)])
    choices = []
    for options, tried in zip(tries, models, strict=True):
        parts = [
            tried.grow(training, part, probes.values[start : start + len(part.levels)])
            for part, start in zip(bases, starts[:-1], strict=True)
        ]
        choices.append(Choice.of({"surrogate": "tree", **options}, training.table, TreeFits.join(parts), probes))
    return models[choices.index(best_of(choices))], choices


def _has_own_slopes(base: LocalModel) -> bool:
    return isinstance(base, TwoScales) and base.slope_weighting is not None


def n_tries(slope_weightings: dict[str, SlopeWeighting | None]) -> int:
    """How many times `choose_two_scales` fits the probe rows, about."""
    of_slopes = len(PRIORS) * (2 * len(slope_weightings) - 1)
    return of_slopes + len(TOLD_SHARES) + len(PRIORS) + len(CANDIDATES) * len(REACHES)


def best_of(choices: list[Choice]) -> Choice:
    """The choice with the highest merit, marked as chosen, and no other."""
    best = max(choices, key=lambda choice: choice.merit if np.isfinite(choice.merit) else -np.inf)
    for choice in choices:
        choice.chosen = choice is best
    return best
