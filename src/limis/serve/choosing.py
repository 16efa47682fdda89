"""Which rows of a table are shown, and in which order."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from limis.blackbox import BlackBox
from limis.errors import InputError

SORTS = ("row", "prediction", "error", "bound", "trusted")
PAGE_ROWS = 50


def summary(told: pd.DataFrame, box: BlackBox) -> pd.DataFrame:
    """One line a row: prediction (a probability where there are classes), predicted class, error, bound and trust."""
    if told.empty:
        return pd.DataFrame(columns=[*SORTS, "predicted", "local"], dtype=float)
    lines = told
    if "predicted" in told:
        lines = told[told["predicted"].astype(bool)]
    said = lines.get("model_output", lines["local_prediction"]).to_numpy(dtype=float)
    local = lines["local_prediction"].to_numpy(dtype=float)
    predicted: Any = None
    if "predicted" in told:
        predicted = lines["class"].astype(str).to_numpy()
        said = lines["probability"].to_numpy(dtype=float) if "probability" in lines else said
    elif box.is_classifier:
        said, local = box.to_probability(said), box.to_probability(local)
        names = ["class 0", "class 1"] if box.classes is None else [str(label) for label in box.classes]
        predicted = np.where(said > 0.5, names[1], names[0])
    return pd.DataFrame(
        {
            "row": lines.index,
            "prediction": said,
            "predicted": predicted,
            "local": local,
            "error": lines["error"].to_numpy(dtype=float) if "error" in lines else np.nan,
            "bound": lines["change_error_bound"].to_numpy(dtype=float) if "change_error_bound" in lines else np.nan,
            "trusted": lines["trusted"].to_numpy(dtype=bool),
        },
        index=lines.index,
    )


@dataclass(frozen=True)
class Choice:
    """What a visitor asked to see. Shares of a prediction are in percent where there are classes."""

    sort: str = "row"
    way: Literal["up", "down"] = "up"
    trust: str = ""
    predicted: str = ""
    low: float | None = None
    high: float | None = None
    error_low: float | None = None
    page: int = 1

    @classmethod
    def read(cls, query: Any) -> Choice:
        """From the query of an address; fields that are empty ask for nothing."""
        sort, way, trust = (query.get(name, "") for name in ("sort", "way", "trust"))
        if sort not in ("", *SORTS):
            raise InputError(f"sort is one of {', '.join(SORTS)}, not {sort!r}")
        if way not in ("", "up", "down") or trust not in ("", "yes", "no"):
            raise InputError("way is up or down, and trust is yes or no")
        return cls(
            sort=sort or "row",
            way="down" if way == "down" else "up",
            trust=trust,
            predicted=query.get("predicted", ""),
            low=_number(query, "low"),
            high=_number(query, "high"),
            error_low=_number(query, "error_low"),
            page=_page(query.get("page", "")),
        )

    def rows(self, lines: pd.DataFrame, in_percent: bool) -> pd.DataFrame:
        """The lines that were asked for, in the order that was asked for."""
        unit = 100.0 if in_percent else 1.0
        kept = np.ones(len(lines), dtype=bool)
        if self.trust:
            kept &= lines["trusted"].to_numpy(dtype=bool) == (self.trust == "yes")
        if self.predicted:
            kept &= (lines["predicted"] == self.predicted).to_numpy(dtype=bool)
        if self.low is not None:
            kept &= (lines["prediction"] >= self.low / unit).to_numpy(dtype=bool)
        if self.high is not None:
            kept &= (lines["prediction"] <= self.high / unit).to_numpy(dtype=bool)
        if self.error_low is not None:
            kept &= (lines["error"] >= self.error_low).to_numpy(dtype=bool)
        return lines[kept].sort_values(self.sort, ascending=self.way == "up", kind="stable")

    @property
    def filters(self) -> bool:
        """Whether some rows may be left out."""
        return bool(self.trust or self.predicted) or any(
            bound is not None for bound in (self.low, self.high, self.error_low)
        )

    def address(self, **changes: Any) -> str:
        """The query that asks for the same, with some of it changed; it starts with a question mark."""
        asked = asdict(replace(self, **changes))
        plain = asdict(Choice())
        return "?" + urlencode({name: value for name, value in asked.items() if value != plain[name]})

    def sorted_by(self, sort: str) -> str:
        """The address that sorts by a column, the other way round where it already does."""
        first = "up" if sort == "row" else "down"
        other = "down" if self.way == "up" else "up"
        return self.address(sort=sort, way=other if self.sort == sort else first, page=1)


def _number(query: Any, name: str) -> float | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"{name} is a number, not {text[:40]!r}")
    return number


def _page(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InputError(f"page is a whole number from 1 on, not {text[:40]!r}")
    return max(1, int(text or 1))
