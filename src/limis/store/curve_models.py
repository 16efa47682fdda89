"""Curves as plain data and arrays, and back; what compiled code will follow is checked first."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from limis.curves.grids import Grids
from limis.curves.intervals import N_SIGNS, CurveIntervals
from limis.curves.kernels import MOST_DEEP, MOST_WAYS, Trees, deepest
from limis.curves.model import CurveGround, CurveModel, RecordedRows
from limis.curves.taught import TaughtModel
from limis.curves.weights import KINDS, ResponseWeights
from limis.fidelity.units import Units
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.store.plain import checked

Arrays = dict[str, np.ndarray]
RECORDED = ("origin", "values", "level", "residual", "residual_square", "change_square")


def pack_curves(model: CurveModel) -> tuple[dict[str, Any], Arrays]:
    """All but the retriever."""
    ground = model.ground
    arrays: Arrays = {f"recorded.{name}": getattr(ground.recorded, name) for name in RECORDED}
    arrays |= {"pairs": ground.pairs, "price": model.weights.price}
    arrays["reliance"] = ground.reliance
    arrays |= _pack_lists("units", ground.units.members)
    arrays |= _pack_lists("grids", ground.grids.donors) | _pack_lists("shown", ground.shown.donors)
    weights = asdict(model.weights)
    del weights["price"]
    learned = model.intervals.learned
    if learned is not None:
        arrays["intervals"] = np.array([*learned.slopes, learned.unit, learned.intercept, *learned.factors])
    # Numbers that differ between classes are arrays: what is described here all classes share.
    described = {"weights": weights, "unit_names": ground.units.names, "stand_in": ground.stand_in}
    arrays["taught.baseline"] = np.array([ground.taught.baseline])
    arrays |= {f"taught.{name}": part for name, part in ground.taught.trees._asdict().items()}
    arrays |= _pack_lists("breaks", ground.taught.breaks) | _pack_lists("order", ground.taught.level_order)
    return described, arrays


def unpack_curves(options: dict[str, Any], arrays: Arrays, training: TrainingRows, retriever: Retriever) -> CurveModel:
    """The inverse of `pack_curves`."""
    table = training.table
    units = Units(list(options["unit_names"]), _unpack_lists("units", arrays))
    columns = np.sort(np.concatenate(units.members))
    if len(units.names) != len(units) or not np.array_equal(columns, np.arange(len(table.columns))):
        raise ValueError("the units are not those of the columns")
    grids, shown = (_unpack_grids(name, arrays, units, training) for name in ("grids", "shown"))
    taught = _unpack_taught(arrays, training)
    recorded = _unpack_recorded(arrays, training, int(grids.starts[-1]))
    pairs = arrays["pairs"].reshape(-1, 2)
    if len(pairs) and not ((pairs >= 0) & (pairs < len(units))).all():
        raise ValueError("the pairs are not those of the units")
    weights = ResponseWeights(price=arrays["price"], **checked(ResponseWeights, options["weights"]))
    if weights.price.shape != (len(table.columns),) or weights.kind not in KINDS:
        raise ValueError("the weights are not those of the columns")
    reliance = arrays["reliance"].astype(np.float64)
    if reliance.shape != (len(units),) or not ((reliance >= 0) & (reliance <= 1)).all():
        raise ValueError("how far the taught model counts is not known of each unit")
    stand_in = bool(options["stand_in"])
    ground = CurveGround(table, units, grids, taught, reliance, recorded, pairs, shown, stand_in)
    model = CurveModel(retriever, ground, weights)
    if "intervals" in arrays:
        held = arrays["intervals"].astype(np.float64)
        if held.shape != (N_SIGNS + 2 + len(units),):
            raise ValueError("the intervals are not those of curves")
        unit, intercept = held[N_SIGNS : N_SIGNS + 2].tolist()
        model.intervals.learned = CurveIntervals(unit, held[:N_SIGNS], intercept, held[N_SIGNS + 2 :])
    _try_out(model, training)
    return model


def _try_out(model: CurveModel, training: TrainingRows) -> None:
    """Read one row's curves: parts that do not fit fail here, and not on some later row."""
    fits = model.fit(training, None, training.values[:1])
    first = np.array([0])
    fits.half_widths(first, fits.curves(first))


def _unpack_recorded(arrays: Arrays, training: TrainingRows, n_cells: int) -> RecordedRows:
    held = {name: arrays[f"recorded.{name}"] for name in RECORDED}
    n = len(held["origin"])
    whole = held["values"].shape == (n, len(training.table.columns)) and held["residual"].shape == (n, n_cells)
    sizes = {len(held[name]) for name in ("level", "residual_square", "change_square")}
    known = ((held["origin"] >= 0) & (held["origin"] < len(training))).all()
    if not (whole and sizes <= {n} and known):
        raise ValueError("the recorded rows are not those of the training rows")
    return RecordedRows(ranks=training.table.ranks(held["values"]), **held)


def _unpack_taught(arrays: Arrays, training: TrainingRows) -> TaughtModel:
    trees = Trees(**{name: arrays[f"taught.{name}"] for name in Trees._fields})
    breaks, order = _unpack_lists("breaks", arrays), _unpack_lists("order", arrays)
    table, n = training.table, len(trees.column)
    nodes, is_leaf = np.arange(n), trees.column < 0
    levels = [len(column.levels) if column.is_category else 0 for column in table.columns]
    inside = (trees.column < len(table.columns)).all() and ((trees.roots >= 0) & (trees.roots < n)).all()
    onward = is_leaf | ((trees.left > nodes) & (trees.right > nodes) & (trees.left < n) & (trees.right < n))
    sizes = {len(part) for part in (trees.cell, trees.missing_left, trees.left, trees.right, trees.value)}
    split = ~is_leaf
    enough = len(breaks) == len(order) == len(table.columns) and [len(own) for own in order] == levels
    if not (inside and onward.all() and sizes == {n} and enough):
        raise ValueError("the taught model's trees are not whole")
    n_breaks = np.array([len(own) for own in breaks])
    if not ((trees.cell[split] >= 0) & (trees.cell[split] < n_breaks[trees.column[split]])).all():
        raise ValueError("the taught model's thresholds are not those of its trees")
    if np.diff([*trees.roots.tolist(), n]).max(initial=0) > MOST_WAYS:
        raise ValueError("the taught model's trees are larger than any that it is taught")
    if deepest(trees.left, trees.right, is_leaf) > MOST_DEEP:
        raise ValueError("the taught model's trees are deeper than any that it is taught")
    return TaughtModel(trees, float(arrays["taught.baseline"][0]), breaks, order)


def _unpack_grids(name: str, arrays: Arrays, units: Units, training: TrainingRows) -> Grids:
    donors = _unpack_lists(name, arrays)
    if len(donors) != len(units) or not all(((own >= 0) & (own < len(training))).all() for own in donors):
        raise ValueError("the values of the curves are not those of the training rows")
    values = [training.values[own][:, members] for own, members in zip(donors, units.members, strict=True)]
    return Grids(units, donors, values)


def _pack_lists(name: str, parts: list[np.ndarray]) -> Arrays:
    return {f"{name}.sizes": np.array([len(part) for part in parts]), f"{name}.parts": np.concatenate(parts)}


def _unpack_lists(name: str, arrays: Arrays) -> list[np.ndarray]:
    sizes, parts = arrays[f"{name}.sizes"], arrays[f"{name}.parts"]
    if (sizes < 0).any() or sizes.sum() != len(parts):
        raise ValueError(f"the parts of {name} are not whole")
    return np.split(parts, np.cumsum(sizes)[:-1])
