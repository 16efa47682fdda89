"""A fitted explainer taken apart into what a file can hold, and put together again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import pandas as pd
import safetensors.numpy

from limis import __version__
from limis.blackbox import Along, BlackBox
from limis.check import ChangeBound
from limis.columns import Column
from limis.errors import MissingExtraError, StoreError
from limis.explainer import LimisExplainer
from limis.one_output import OneOutput
from limis.rows import TrainingRows
from limis.store.container import Manifest, damaged, read, target_of, write
from limis.store.frames import pack_frame, unpack_frame
from limis.store.local_models import pack_local_model, unpack_local_model
from limis.store.models import MIXED, MODEL_MEMBERS, ROWS_TO_ASK, check_model, known_mixed, pack_model, unpack_model
from limis.store.plain import checked, one_line
from limis.table import QUANTILES, Table
from limis.training import TrainingLog
from limis.trust import Trust
from limis.walk import GlobalFit, fit_locally

ARRAYS, FRAME, LABELS = "arrays.safetensors", "training.parquet", "labels.parquet"
MEASURED = ("skill_", "nse_")
GLOBAL_NUMBERS = ("level", "residual_mean_square", "spread_mean_square")


def save(explainer: LimisExplainer, path: Any, *, include_model: bool | Literal["auto"] = "auto") -> None:
    """Write a fitted explainer to one file; an interrupted save leaves what was there.

    Parameters
    ----------
    explainer : LimisExplainer
        A fitted explainer.
    path : str or path
        The file to write or replace.
    include_model : bool or "auto", default="auto"
        Whether the model travels in the file. "auto" takes XGBoost and LightGBM models along, in their native
        format, and leaves others out; True refuses others.

    Raises
    ------
    StoreError
        If the file cannot be written, the model cannot be included, or a training column cannot be kept as it is.
    """
    target = target_of(path)
    training, global_fit = explainer.training_, explainer.global_fit_
    weighting, arrays = pack_local_model(explainer.local_model_)
    arrays |= {
        "values": training.values,
        "outputs": training.outputs,
        "quantiles": training.table.quantiles,
        "global.coefficients": global_fit.coefficients,
        "global.feature_means": global_fit.feature_means,
    }
    arrays |= known_mixed(training)
    if training.sample_weight is not None:
        arrays["sample_weight"] = training.sample_weight
    arrays |= _pack_classes(explainer, arrays)
    frame, parquet = pack_frame(training.frame.reset_index(drop=True))
    index = training.frame.index
    label, label_parquet = pack_frame(index.to_frame(index=False, name=str(index.name or "")))
    manifest = Manifest(
        limis=__version__,
        parameters=_pack_parameters(explainer),
        table=training.table.to_dict(),
        frame=frame,
        label=label,
        black_box=training.black_box.to_dict(),
        global_fit={name: getattr(global_fit, name) for name in GLOBAL_NUMBERS},
        weighting=weighting,
        bound=None if explainer.bound_ is None else explainer.bound_.to_dict(),
        trust=None if explainer.trust_ is None else explainer.trust_.to_dict(),
        measured={name: getattr(explainer, name) for name in MEASURED if hasattr(explainer, name)},
        choices=[{str(key): value for key, value in line.items()} for line in explainer.choices_.to_dict("records")],
        training_log=[asdict(log) for log in explainer.training_log_],
        skills={str(reach): float(skill) for reach, skill in getattr(explainer, "skill_by_range_", {}).items()},
        curve_facts=getattr(explainer, "curve_facts_", {}),
        by_class=[_described(part) for part in explainer.by_class_.values()],
    )
    # safetensors takes an array's memory as it lies, so it must lie in order.
    in_order = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    members = {ARRAYS: safetensors.numpy.save(in_order), FRAME: parquet, LABELS: label_parquet}
    write(target, manifest, {**members, **pack_model(training, include_model)})


def load(path: Any, model: Any = None) -> LimisExplainer:
    """Read an explainer that was saved; it explains as before, bit for bit on the same machine.

    Parameters
    ----------
    path : str or path
        A file written by `LimisExplainer.save`.
    model : object, default=None
        The black box, where it is not in the file; it is asked about some training rows, to make sure that it is the
        one. Without it the explainer explains all the same, but what takes asking the model is absent, unless
        ``outputs`` are given to `explain`.

    Returns
    -------
    LimisExplainer
        Fitted. An XGBoost or LightGBM model that was in the file is its ``model``, as a booster.

    Raises
    ------
    StoreError
        If the file is not there, is damaged, is no explainer or comes from a newer limis, or if ``model`` is not the
        model that was explained.
    """
    manifest, members = read(path, (ARRAYS, FRAME, LABELS, *(MODEL_MEMBERS if model is None else ())))
    try:
        for member in set(MODEL_MEMBERS) & set(members):
            model = unpack_model(member, members[member])
        explainer = _build(manifest, members, model)
    except (StoreError, MissingExtraError):
        raise
    except Exception as error:  # every byte is as saved, so it is the manifest that does not fit
        raise damaged(path, f"its parts do not fit together ({type(error).__name__}: {one_line(error)})") from error
    if model is not None:
        check_model(explainer.training_, path)
    return explainer


def _build(manifest: Manifest, members: dict[str, bytes], model: Any) -> LimisExplainer:
    explainer = LimisExplainer(model, **_unpack_parameters(manifest.parameters))
    explainer._validate_params()  # noqa: SLF001 - scikit-learn's name for it
    # Copies: what safetensors gives cannot be written to, and may lie anywhere in memory.
    arrays = {name: array.copy() for name, array in safetensors.numpy.load(members[ARRAYS]).items()}
    table = _unpack_table(manifest.table, arrays["quantiles"])
    frame = unpack_frame(manifest.frame, members[FRAME])
    labels = unpack_frame(manifest.label, members[LABELS]).iloc[:, 0]
    frame.index = pd.Index(labels.array, name=labels.name or None)
    black_box = BlackBox.from_dict(checked(BlackBox, manifest.black_box), model, table.from_array, table.source_labels)
    if black_box.has_several_classes:
        black_box.view = Along(arrays["direction"])
    _check_shapes(arrays, len(frame), len(table.columns))
    training = TrainingRows(
        table, black_box, frame, arrays["values"], arrays["outputs"], arrays.get("sample_weight"), arrays.get("every")
    )
    if MIXED in arrays:
        training.__dict__[MIXED] = arrays[MIXED]
    explainer.training_ = training
    explainer.global_fit_ = GlobalFit(
        arrays["global.coefficients"],
        arrays["global.feature_means"],
        **checked(GlobalFit, {name: manifest.global_fit[name] for name in GLOBAL_NUMBERS}),
    )
    explainer.local_model_ = unpack_local_model(manifest.weighting, arrays, training, explainer)
    explainer.bound_ = None if manifest.bound is None else _unpack_bound(manifest.bound)
    explainer.trust_ = _unpack_trust(manifest.trust)
    explainer.by_class_ = _unpack_classes(manifest, arrays, explainer)
    explainer.choices_ = pd.DataFrame(manifest.choices)
    explainer.training_log_ = [TrainingLog(**checked(TrainingLog, log)) for log in manifest.training_log]
    for name in set(MEASURED) & set(manifest.measured):
        setattr(explainer, name, manifest.measured[name])
    if manifest.skills:
        explainer.skill_by_range_ = pd.Series(manifest.skills, name="skill").rename_axis("nearest rows")
    if manifest.curve_facts:
        explainer.curve_facts_ = manifest.curve_facts
    explainer.n_features_in_ = len(table.source_names)
    if not table.from_array:
        explainer.feature_names_in_ = np.array(table.source_names, dtype=object)
    explainer.device = "cpu"
    _try_out(explainer)
    return explainer


def _check_shapes(arrays: dict[str, np.ndarray], n_rows: int, n_columns: int) -> None:
    """Refuse arrays that compiled code would read beyond their ends."""
    wanted = {"quantiles": (n_columns, QUANTILES), "values": (n_rows, n_columns), "outputs": (n_rows,)}
    if MIXED in arrays and (len(arrays[MIXED]) != min(ROWS_TO_ASK, n_rows) or arrays[MIXED].ndim > 2):
        raise ValueError(f"{MIXED} has the shape {arrays[MIXED].shape}")
    for name, shape in wanted.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}")


def _pack_classes(explainer: LimisExplainer, shared: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the parts of several classes have beyond what all of them share."""
    training = explainer.training_
    view = training.black_box.view
    if training.every is None or not isinstance(view, Along):
        return {}
    arrays = {"every": training.every, "direction": view.direction}
    for place, part in enumerate(explainer.by_class_.values()):
        _, own = pack_local_model(part.local_model)
        arrays |= {
            f"class {place}.{name}": array
            for name, array in own.items()
            if name not in shared or (array is not shared[name] and not np.array_equal(array, shared[name]))
        }
    return arrays


def _described(part: OneOutput) -> dict[str, Any]:
    return {
        "bound": None if part.bound is None else part.bound.to_dict(),
        "trust": None if part.trust is None else part.trust.to_dict(),
        "nse": part.nse,
        "skills": part.skills,
    }


def _unpack_classes(
    manifest: Manifest, arrays: dict[str, np.ndarray], explainer: LimisExplainer
) -> dict[Any, OneOutput]:
    training, parts = explainer.training_, []
    box = training.black_box
    expected = box.n_classes if box.has_several_classes else 0
    known = 0 if training.every is None else training.every.shape[1]
    if not len(manifest.by_class) == expected == known or (expected and len(box.classes or []) != expected):
        raise ValueError(f"there are {len(manifest.by_class)} classes where {known} were explained")
    for place, described in enumerate(manifest.by_class):
        prefix = f"class {place}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        rows = training.of_class(place)
        model = unpack_local_model(manifest.weighting, arrays | own, rows, explainer)
        bound = None if described["bound"] is None else _unpack_bound(described["bound"])
        measured = checked(OneOutput, {name: described[name] for name in ("nse", "skills")})
        trust = _unpack_trust(described["trust"])
        parts.append(OneOutput(rows, GlobalFit.of(rows), model, bound, trust=trust, **measured))
    return dict(zip(box.classes or [], parts, strict=True)) if parts else {}


def _try_out(explainer: LimisExplainer) -> None:
    """Explain one row: parts that do not fit fail here, and not on some later row."""
    training = explainer.training_
    first = next(fit_locally(training, explainer.local_model_, explainer.global_fit_, training.values[:1]))
    explainer.global_fit_.predict(first.features)
    if explainer.bound_ is not None:
        explainer.bound_.bound(first)
    for part in explainer.by_class_.values():
        next(fit_locally(part.training, part.local_model, part.global_fit, training.values[:1]))


def _pack_parameters(explainer: LimisExplainer) -> dict[str, Any]:
    parameters = {name: value for name, value in explainer.get_params(deep=False).items() if name != "model"}
    parameters["reward"] = None  # functions; it has done its work
    parameters["answers"] = None  # a folder of this machine, which fitting alone reads
    if parameters["groups"] is not None:
        # As pairs, since a group may have any name, also one that has a meaning in the manifest.
        parameters["groups"] = [[str(name), list(sources)] for name, sources in parameters["groups"].items()]
    return parameters


def _unpack_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    groups = parameters["groups"]
    return {**parameters, "groups": None if groups is None else dict(groups)}


def _unpack_table(described: dict[str, Any], quantiles: np.ndarray) -> Table:
    for column in described["columns"]:
        checked(Column, column)
    checked(Table, {name: value for name, value in described.items() if name != "columns"})
    return Table.from_dict(described, quantiles)


def _unpack_trust(described: dict[str, Any] | None) -> Trust | None:
    if described is None:
        return None
    trust = Trust.from_dict(described)
    checked(Trust, vars(trust))
    return trust


def _unpack_bound(described: dict[str, Any]) -> ChangeBound:
    bound = ChangeBound.from_dict(described)
    checked(ChangeBound, vars(bound))
    return bound
