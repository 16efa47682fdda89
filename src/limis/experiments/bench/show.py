"""What the bench found, for a screen, a page and a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from limis.experiments.bench.stages import stages_of

UNKNOWN = "–"
NOTE = (
    "Ms a row is the median over rounds in which all methods take turns, the black box's own time included; fast "
    "methods explain all rows together, others as many a round as stand there. One row is the same for rows explained "
    "one at a time, without the black box's time. NSE and skill are on the rows explained, skill by the law of "
    "changes that the default is fitted on, which flatters it (audit-verdicts has other questions); SHAP values sum "
    "to the output, and say nothing of changes. Memory is how far that of the process rose above what it held before, "
    "in fitting and in explaining the rows of one round. With curves means that those of all rows are written out too."
)


def result_table(found: dict[str, Any]) -> pd.DataFrame:
    """The results as texts, a line a method."""
    base = found["results"][0]
    return pd.DataFrame(
        [
            {
                "method": line["method"],
                "rows": f"{line['rows']:,}",
                "together": f"{line['together']:,}",
                "ms a row": _number(line["ms"]),
                f"times {base['method']}": _number(line["ms"] / base["ms"]),
                "with curves, ms": _number(line.get("with_curves_ms")),
                "reasons, ms": _number(line.get("reasons_ms")),
                "one row, ms": _number(line["alone_ms"]),
                "NSE": _share(line["nse"]),
                "skill": _share(line["skill"]),
                "fit, s": _number(line["fit_seconds"]),
                "fit, MB": _whole(line["fit_megabytes"]),
                "explain, MB": _whole(line["explain_megabytes"]),
            }
            for line in found["results"]
        ]
    )


def setting_lines(found: dict[str, Any]) -> list[str]:
    """How each method was set, a line each."""
    return [f"{line['method']}: {line['settings']}" for line in found["results"]]


def ratio_lines(found: dict[str, Any]) -> list[str]:
    """The ratios as sentences, with what is wanted of them, and what a fit to few rows takes."""
    return [
        f"{line['ratio']}: {_number(line['times'])}×"
        + (f" (wanted: at least {line['wanted']:,}×)" if "wanted" in line else "")
        for line in found["ratios"]
    ] + _small_fit_lines(found)


def _small_fit_lines(found: dict[str, Any]) -> list[str]:
    small = found.get("small_fit")
    if small is None:
        return []
    said = f"{_number(small['cpu_seconds'])} s of CPU time without the black box's"
    return [f"fit of LIMIS curves to {small['rows']:,} rows: {said} (wanted: at most {small['wanted']:g} s)"]


def profile_table(found: dict[str, Any]) -> pd.DataFrame:
    """Shares of the stages as texts, a line a stage, and the milliseconds a row that they are of."""
    profiles: Sequence[dict[str, Any]] = found["profiles"]
    shares = stages_of(list(profiles))
    texts = shares.map(lambda share: f"{share:.1%}")
    texts.loc["ms a row"] = [_number(one["ms"]) for one in profiles]
    return texts.rename_axis("stage").reset_index()


def as_json(found: dict[str, Any]) -> str:
    """For a file; what is not known is null, which JSON has a word for."""
    return json.dumps(_plain(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(held: Any) -> Any:
    if isinstance(held, dict):
        return {name: _plain(value) for name, value in held.items()}
    if isinstance(held, list | tuple):
        return [_plain(value) for value in held]
    if isinstance(held, float | np.floating):
        return float(held) if np.isfinite(held) else None
    return held


def _number(value: float | None) -> str:
    """Three digits, whatever the size."""
    if value is None or not np.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _whole(value: float | None) -> str:
    return UNKNOWN if value is None or not np.isfinite(value) else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None or not np.isfinite(value) else f"{value:.3f}"
