"""The local model of an explainer, its weighting included, as plain data and arrays, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from limis.any_surrogate import AnySurrogate
from limis.changes import ColumnSystems
from limis.copies import ChangedCopies
from limis.curves.model import CurveModel
from limis.errors import StoreError
from limis.retrieval import Forest, LeafIndex, LevelMeans, Retriever
from limis.rows import TrainingRows
from limis.spans import NOWHERE, POINTS, Cells, RecordedValues
from limis.store.curve_models import pack_curves, unpack_curves
from limis.store.plain import checked
from limis.trees.carried import CarriedChanges
from limis.trees.fits import TreeModel
from limis.trees.inputs import TreeInputs
from limis.two_scales import TwoScales
from limis.walk import LocalModel, OneScale
from limis.weighting import (
    FactoredEstimator,
    FactoredWeighting,
    ForestWeighting,
    LearnedSlopes,
    PairwiseEstimator,
    PairwiseWeighting,
    RandomWeighting,
    RetrievedEstimator,
    RetrievedWeighting,
    SharedEstimator,
    SharedWeighting,
    Weighting,
)
from limis.weighting.level import LevelMetric

if TYPE_CHECKING:
    from limis.explainer import LimisExplainer

Arrays = dict[str, np.ndarray]
RECORDS = ("starts", "columns", "values", "answers")  # of carried changes; the rest follows from them


def pack_local_model(model: LocalModel) -> tuple[dict[str, Any], Arrays]:
    """What goes into the manifest, and what among the arrays."""
    if isinstance(model, TreeModel):
        return _pack_tree(model)
    if isinstance(model, TwoScales):
        return _pack_two_scales(model)
    if isinstance(model, CurveModel):
        retriever, arrays = _pack_retriever(model.retriever)
        described, own = pack_curves(model)
        return {"kind": "curves", "retriever": retriever, **described}, arrays | own
    if isinstance(model, OneScale):
        return _pack_weighting(model.weighting)
    if isinstance(model, AnySurrogate):
        raise StoreError(
            f"an explainer with surrogate={type(model.regressor).__name__} cannot be saved, since that would take "
            'pickle; fit it again when needed, or use "ridge" or "tree"'
        )
    raise StoreError(f"an explainer that explains by {type(model).__name__} cannot be saved")


def _pack_weighting(weighting: Weighting) -> tuple[dict[str, Any], Arrays]:
    if isinstance(weighting, RandomWeighting):
        return {"kind": "random", "share": weighting.share, "seed": weighting.seed}, {}
    if isinstance(weighting, (ForestWeighting, RetrievedWeighting)):
        described, arrays = _pack_retriever(weighting.retriever)
        entry = {"kind": "forest", "retriever": described, "n_candidates": weighting.n_candidates}
        if isinstance(weighting, ForestWeighting):
            return {**entry, "scale": weighting.scale}, arrays
        return {**entry, "kind": "retrieved"}, arrays | _pack_estimator(weighting.estimator)
    if isinstance(weighting, PairwiseWeighting):
        return {"kind": "pairwise", "inputs": weighting.estimator.inputs}, _pack_estimator(weighting.estimator)
    if isinstance(weighting, FactoredWeighting):
        return {"kind": "factored", "form": weighting.estimator.form}, _pack_estimator(weighting.estimator)
    if isinstance(weighting, SharedWeighting):
        return {"kind": "shared"}, _pack_estimator(weighting.estimator)
    raise StoreError(f"an explainer that weighs by {type(weighting).__name__} cannot be saved")


def unpack_local_model(
    described: dict[str, Any], arrays: Arrays, training: TrainingRows, explainer: LimisExplainer
) -> LocalModel:
    """The inverse of `pack_local_model`."""
    options = dict(described)
    kind = options.pop("kind")
    if kind == "tree":
        return _unpack_tree(options, arrays, training, explainer)
    if kind == "two scales":
        return _unpack_two_scales(options, arrays, training)
    if kind == "curves":
        retriever = _unpack_retriever(options.pop("retriever"), arrays, training, len(training))
        return unpack_curves(options, arrays, training, retriever)
    weighting = _unpack_weighting(kind, options, arrays, training)
    return OneScale(weighting, explainer.inference, int(explainer.random_state))


def _unpack_weighting(kind: str, options: dict[str, Any], arrays: Arrays, training: TrainingRows) -> Weighting:
    if kind == "random":
        return RandomWeighting(**checked(RandomWeighting, options))
    retriever = None
    if "retriever" in options:
        retriever = _unpack_retriever(options.pop("retriever"), arrays, training, len(training))
    if kind == "forest" and retriever is not None:
        return ForestWeighting(retriever, **checked(ForestWeighting, options))
    n_features = training.features.shape[1]
    with torch.random.fork_rng(devices=[]):  # what is drawn here is replaced: the user's generator stays put
        if kind == "retrieved" and retriever is not None:
            estimator = _unpack_estimator(RetrievedEstimator(n_features), arrays)
            return RetrievedWeighting(retriever, estimator, **checked(RetrievedWeighting, options))
        if kind == "pairwise":
            return PairwiseWeighting(_unpack_estimator(PairwiseEstimator(n_features, options["inputs"]), arrays))
        if kind == "factored":
            return FactoredWeighting(_unpack_estimator(FactoredEstimator(n_features, options["form"]), arrays))
        if kind == "shared":
            return SharedWeighting(_unpack_estimator(SharedEstimator(len(training)), arrays))
    raise TypeError(f"no local model is called {kind!r}")


def _pack_two_scales(model: TwoScales) -> tuple[dict[str, Any], Arrays]:
    described, arrays = _pack_retriever(model.retriever)
    copies = {field.name: getattr(model.copies, field.name) for field in fields(ChangedCopies)}
    arrays |= {f"copies.{name}": array for name, array in copies.items() if array is not None}
    for name in ("grams", "moments"):
        arrays |= _pack_sparse(f"systems.{name}", getattr(model.systems, name))
    arrays["systems.width"], arrays["systems.share"] = model.systems.width, model.systems.share
    values = model.recorded_values
    arrays |= {"recorded.rows": values.rows, "recorded.points": values.points, "recorded.overall": values.overall}
    arrays |= {f"recorded.{name}": held for name, held in values.cells._asdict().items()}
    form = None
    if isinstance(model.slope_weighting, LearnedSlopes):
        form = model.slope_weighting.estimator.form
        arrays |= _pack_estimator(model.slope_weighting.estimator)
    options = {name: getattr(model, name) for name in ("n_candidates", "n_level", "prior", "level_from", "reach")}
    if model.level_metric is not None:
        arrays["level.directions"] = model.level_metric.directions
        options["level_power"] = model.level_metric.power
    return {"kind": "two scales", "retriever": described, "slopes_by": form, **options}, arrays


def _unpack_two_scales(options: dict[str, Any], arrays: Arrays, training: TrainingRows) -> TwoScales:
    held = {field.name: arrays.get(f"copies.{field.name}") for field in fields(ChangedCopies)}
    copies = ChangedCopies(**{name: array for name, array in held.items() if array is not None})
    _check_copies(copies, training)
    retriever = _unpack_retriever(options.pop("retriever"), arrays, training, len(training) + len(copies.origin))
    width, n = arrays["systems.width"], len(training)
    systems = ColumnSystems(
        _unpack_sparse("systems.grams", arrays, (n, int((width**2).sum()))),
        _unpack_sparse("systems.moments", arrays, (n, int(width.sum()))),
        width,
        arrays["systems.share"],
    )
    table = training.table
    if not np.array_equal(width, np.bincount(table.feature_column)) or systems.share.shape != (n,):
        raise ValueError("the systems are not those of the columns")
    if min(options["n_level"], options["n_candidates"]) < 1:
        raise ValueError("a level rests on at least one row")
    form = options.pop("slopes_by")
    learned = None
    if form is not None:
        with torch.random.fork_rng(devices=[]):
            estimator = FactoredEstimator(training.features.shape[1], form)
        learned = LearnedSlopes(_unpack_estimator(estimator, arrays))
    metric = None
    if "level_power" in options:
        metric = LevelMetric(arrays["level.directions"], float(options.pop("level_power")))
        if metric.directions.ndim != 2 or len(metric.directions) != len(table.feature_column):
            raise ValueError("the directions are not those of the columns")
    values = _unpack_values(arrays, training)
    return TwoScales(retriever, copies, systems, values, learned, level_metric=metric, **checked(TwoScales, options))


def _unpack_values(arrays: Arrays, training: TrainingRows) -> RecordedValues:
    """Recorded values whose cells exist: compiled code writes to them."""
    rows, points, lowest, highest, overall = (
        arrays[f"recorded.{name}"] for name in ("rows", "points", "lowest", "highest", "overall")
    )
    n_numbers = len(training.table.number_columns)
    known = (np.diff(rows) > 0).all() and (len(rows) == 0 or (rows[0] >= 0 and rows[-1] < len(training)))
    shaped = lowest.shape == highest.shape == (len(rows), n_numbers) and points.shape == (n_numbers, POINTS)
    whole = overall.shape == (2, n_numbers, POINTS) and lowest.dtype == highest.dtype == np.uint8
    if not (known and shaped and whole and ((lowest == NOWHERE) == (highest == NOWHERE)).all()):
        raise ValueError("the recorded values are not those of the training rows")
    return RecordedValues(rows, points, Cells(lowest, highest), overall)


def _check_copies(copies: ChangedCopies, training: TrainingRows) -> None:
    n, n_columns = len(copies.origin), len(training.table.columns)
    known = ((copies.origin >= 0) & (copies.origin < len(training))).all()
    whole = copies.values.shape == (n, n_columns) and copies.outputs.shape == (n,)
    if not (known and whole and (copies.every is None or copies.every.shape[:1] == (n,))):
        raise ValueError("the copies are not those of the training rows")


def _pack_tree(model: TreeModel) -> tuple[dict[str, Any], Arrays]:
    base, arrays = pack_local_model(model.base)
    if model.carried is not None:
        arrays |= {f"records.{name}": getattr(model.carried, name) for name in RECORDS}
    options = {name: getattr(model, name) for name in ("records_from", "reach", "depth")}
    return {"kind": "tree", "base": base, "on_changes": model.carried is not None, **options}, arrays


def _unpack_tree(
    options: dict[str, Any], arrays: Arrays, training: TrainingRows, explainer: LimisExplainer
) -> TreeModel:
    base = unpack_local_model(options.pop("base"), arrays, training, explainer)
    inputs = TreeInputs.learn(training)
    carried = None
    if options.pop("on_changes"):
        carried = CarriedChanges.prepared(training, inputs, **_checked_records(arrays, training))
    return TreeModel(base, inputs, carried, **checked(TreeModel, options))


def _checked_records(arrays: Arrays, training: TrainingRows) -> Arrays:
    """Records whose places exist: compiled code reads wherever they point."""
    records = {name: arrays[f"records.{name}"] for name in RECORDS}
    starts, columns = records["starts"], records["columns"]
    n = len(columns)
    whole = len(starts) == len(training) + 1 and starts[0] == 0 and starts[-1] == n and (np.diff(starts) >= 0).all()
    known = ((columns >= 0) & (columns < len(training.table.columns))).all()
    if not (whole and known and len(records["values"]) == len(records["answers"]) == n):
        raise ValueError("the records of changes are not those of the training rows")
    return records


def _pack_retriever(retriever: Retriever) -> tuple[dict[str, Any], Arrays]:
    forest, levels = retriever.forest, retriever.levels
    arrays = {f"forest.{name}": getattr(forest, name) for name in _forest_arrays()}
    arrays |= _pack_sparse("leaves", retriever.index.shares)
    if retriever.marked_index is not None:
        arrays |= _pack_sparse("marked_leaves", retriever.marked_index.shares)
    arrays["in_bag"] = np.packbits(retriever.in_bag)
    arrays["origin"] = retriever.origin
    arrays["levels.sums"], arrays["levels.counts"] = np.concatenate(levels.sums), np.concatenate(levels.counts)
    return {"overall": levels.overall}, arrays


def _unpack_retriever(described: dict[str, Any], arrays: Arrays, training: TrainingRows, n_rows: int) -> Retriever:
    parts: dict[str, Any] = {name: arrays[f"forest.{name}"] for name in _forest_arrays()}
    forest = Forest(**parts)
    _check_forest(forest, len(training.table.columns))
    shares = _unpack_sparse("leaves", arrays, (forest.n_leaves, n_rows))
    in_bag = np.unpackbits(arrays["in_bag"], count=len(training) * forest.n_trees).astype(bool)
    origin = arrays["origin"]
    if len(origin) != n_rows or (origin < 0).any() or (origin >= len(training)).any():
        raise ValueError("the retrieved rows are not those of the training rows")
    sizes = [len(column.levels) if column.is_category else 0 for column in training.table.columns]
    if not sum(sizes) == len(arrays["levels.sums"]) == len(arrays["levels.counts"]):
        raise ValueError("the means of levels are not those of the table's levels")
    ends = np.cumsum(sizes)[:-1]
    sums, counts = (np.split(arrays[f"levels.{name}"], ends) for name in ("sums", "counts"))
    levels = LevelMeans(sums, counts, **checked(LevelMeans, {"overall": described["overall"]}))
    marked = None
    if "marked_leaves.data" in arrays:
        marked = LeafIndex(_unpack_sparse("marked_leaves", arrays, (forest.n_leaves, n_rows)))
    return Retriever(forest, LeafIndex(shares), in_bag.reshape(len(training), forest.n_trees), levels, origin, marked)


def _check_forest(forest: Forest, n_inputs: int) -> None:
    """Refuse trees that lead out of their arrays, or in circles: compiled code would follow them."""
    n = len(forest.feature)
    nodes = np.arange(n)
    is_leaf = forest.left == nodes
    sizes = {len(part) for part in (forest.threshold, forest.left, forest.right, forest.leaf_number)}
    # scikit-learn writes a node's children behind it.
    onward = (is_leaf & (forest.right == nodes)) | ((forest.left > nodes) & (forest.right > nodes))
    inside = (forest.left < n) & (forest.right < n) & (forest.feature >= 0) & (forest.feature < n_inputs)
    roots = (forest.roots >= 0) & (forest.roots < n)
    numbered = np.array_equal(forest.leaf_number[is_leaf], np.arange(is_leaf.sum())) if sizes == {n} else False
    if not (sizes == {n} and onward.all() and inside.all() and roots.all() and numbered):
        raise ValueError("the forest's trees are not whole")


def _forest_arrays() -> list[str]:
    return [field.name for field in fields(Forest)]


def _pack_sparse(name: str, matrix: sp.csr_array) -> Arrays:
    return {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def _unpack_sparse(name: str, arrays: Arrays, shape: tuple[int, int]) -> sp.csr_array:
    data, indices, starts = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = sp.csr_array((data, indices, starts), shape=shape)
    # Products with it read wherever its indices point; of a matrix without entries scipy does not look at the starts.
    matrix.check_format(full_check=True)
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError(f"the lines of {name} do not follow each other")
    return matrix


def _pack_estimator(estimator: torch.nn.Module) -> Arrays:
    return {f"estimator.{name}": tensor.cpu().numpy() for name, tensor in estimator.state_dict().items()}


def _unpack_estimator(estimator: Any, arrays: Arrays) -> Any:
    state = {
        name.removeprefix("estimator."): torch.as_tensor(array)
        for name, array in arrays.items()
        if name.startswith("estimator.")
    }
    estimator.load_state_dict(state)
    return estimator
