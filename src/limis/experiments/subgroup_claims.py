"""The groups that the paper looks at, what it observes of them, and whether that holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from limis.subgroups import Subgroups
from limis.subgroups.resampling import FEWEST, interval, means, resampled_means

Rule = Callable[[pd.DataFrame], pd.Series]
HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"
# Two weights are the same when they differ by no more than this share of their mean.
SAME = 0.2
N_RESAMPLES = 2000


@dataclass(frozen=True)
class Group:
    """Rows that a rule on the table's columns holds for."""

    name: str
    rule: Rule

    def mask(self, frame: pd.DataFrame) -> np.ndarray:
        """Which rows: (rows,) bool."""
        return self.rule(frame).to_numpy(dtype=bool)


@dataclass(frozen=True)
class Claim:
    """A column weighs more in one group than in another or, where it only differs, more or less."""

    column: str
    group: Group
    against: Group
    differs: bool = False

    def __str__(self) -> str:
        verb = "weighs differently" if self.differs else "weighs more"
        return f"{self.column} {verb} for {self.group.name} than for {self.against.name}"

    def judge(self, weight: pd.DataFrame, frame: pd.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
        """Both weights, the 95% interval of their difference, and the verdict."""
        values = weight[self.column].to_numpy()[:, None]
        own, other = (values[group.mask(frame)] for group in (self.group, self.against))
        own, other = own[np.isfinite(own[:, 0])], other[np.isfinite(other[:, 0])]
        value, value_against = float(means(own)[0]), float(means(other)[0])
        found = {"rows": len(own), "rows against": len(other), "value": value, "value against": value_against}
        if min(len(own), len(other)) < FEWEST:
            return found | {"low": np.nan, "high": np.nan, "verdict": UNTOLD}
        drawn = [resampled_means(rows, N_RESAMPLES, rng) for rows in (own, other)]
        low, high = (float(end[0]) for end in interval(drawn[0] - drawn[1], min(len(own), len(other))))
        verdict = self._verdict(low, high, (value + value_against) / 2)
        return found | {"low": low, "high": high, "verdict": verdict}

    def _verdict(self, low: float, high: float, middle: float) -> str:
        if self.differs:
            if low > 0 or high < 0:
                return HOLDS
            return FAILS if 0 < max(-low, high) <= SAME * middle else UNTOLD
        if low > 0:
            return HOLDS
        return FAILS if high < 0 else UNTOLD


def judge_sensitive(column: str, found: Subgroups) -> dict[str, Any]:
    """Whether a column is without high weight in most groups: clearly below the group's median column."""
    large = found.sizes.index[found.sizes >= FEWEST]
    judged = [found.heavy(group, column) for group in large]
    heavy, light = judged.count(True), judged.count(False)
    verdict = HOLDS if 2 * light > len(judged) else FAILS if 2 * heavy > len(judged) else UNTOLD
    return {"rows": len(judged), "value": float(heavy), "value against": float(light), "verdict": verdict}


def cut(column: str, borders: Sequence[float], *, closed: str = "right") -> list[Group]:
    """Groups of a number between borders, each of which belongs to the group below it, or to that above it."""
    below, above, up_from = ("≤", ">", "<") if closed == "right" else ("<", "≥", "≤")

    def between(low: float, high: float) -> Rule:
        def rule(rows: pd.DataFrame) -> pd.Series:
            value = rows[column]
            return (value > low) & (value <= high) if closed == "right" else (value >= low) & (value < high)

        return rule

    names = [
        f"{column} {below} {borders[0]:g}",
        *(f"{low:g} {up_from} {column} {below} {high:g}" for low, high in pairwise(borders)),
        f"{column} {above} {borders[-1]:g}",
    ]
    ends = pairwise([-np.inf, *borders, np.inf])
    return [Group(name, between(*pair)) for name, pair in zip(names, ends, strict=True)]


def levels(column: str, *names: str) -> list[Group]:
    """A group a level."""
    return [one_of(name, column, name) for name in names]


def one_of(name: str, column: str, *wanted: str) -> Group:
    """The rows with any of some levels."""
    return Group(name, lambda rows: rows[column].isin(wanted))


def others(name: str, group: Group) -> Group:
    """All rows but those of a group."""
    return Group(name, lambda rows: ~group.rule(rows))


@dataclass(frozen=True)
class Look:
    """All that one experiment looks at in one data set."""

    data: str
    families: dict[str, list[Group]]
    claims: tuple[Claim, ...]
    sensitive: tuple[str, ...] = ()
    every_test_row: bool = False  # groups so small that all test rows are searched for them

    def chosen(self, sampled: np.ndarray) -> np.ndarray:
        """The rows to look at, of those that were explained: (rows,) bool."""
        return np.ones_like(sampled) if self.every_test_row else sampled

    def judged(self, weight: pd.DataFrame, contributions: pd.DataFrame, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """A line a claim, by coefficients and by contributions."""
        rng = np.random.default_rng(0)
        return [
            {
                "observation": str(claim),
                "column": claim.column,
                **claim.judge(weight, frame, rng),
                "by contributions": claim.judge(contributions, frame, rng)["verdict"],
            }
            for claim in self.claims
        ]


# --- Adult --------------------------------------------------------------------------------------------

_AGES = cut("age", [25, 45, 65])
_HIGH = one_of("Masters, Prof-school and Doctorate", "education", "Masters", "Prof-school", "Doctorate")
_NO_SCHOOL = ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th")
_OLDER = others("age > 25", _AGES[0])

ADULT = Look(
    "Adult",
    {
        "age": _AGES,
        "gender": levels("sex", "Female", "Male"),
        "marital status": levels(
            *("marital-status", "Never-married", "Married-civ-spouse", "Married-spouse-absent", "Married-AF-spouse"),
            *("Separated", "Divorced", "Widowed"),
        ),
        "race": levels("race", "White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"),
        "education": [
            one_of("before the 12th grade or in it", "education", *_NO_SCHOOL),
            *levels("education", "HS-grad", "Some-college"),
            one_of("Assoc-voc and Assoc-acdm", "education", "Assoc-voc", "Assoc-acdm"),
            *levels("education", "Bachelors", "Masters", "Prof-school", "Doctorate"),
        ],
    },
    (
        Claim("capital-gain", _OLDER, _AGES[0]),
        *(
            Claim(column, _HIGH, others("all others", _HIGH))
            for column in ("capital-gain", "capital-loss", "occupation", "native-country")
        ),
    ),
    sensitive=("sex", "marital-status", "race"),
)

# --- Weather ------------------------------------------------------------------------------------------

_HUMIDITY = ("Humidity3pm", "Humidity9am")
_RAIN = cut("Rainfall", [1, 5, 15], closed="left")
_WIND = cut("WindSpeed3pm", [10, 25])
_MOIST = cut("Humidity3pm", [40, 70])
_PRESSURE = cut("Pressure3pm", [1005, 1020])
_WARMTH = cut("Temp3pm", [10, 20, 30], closed="left")
_LIGHT, _HEAVY = cut("Rainfall", [5], closed="left")
_WARM = cut("Temp3pm", [20], closed="left")[1]
_COLD, _FAST, _LOW = _WARMTH[0], _WIND[-1], _PRESSURE[0]

WEATHER = Look(
    "Weather",
    {
        "rain today": [one_of("RainToday = No", "RainToday", "No"), one_of("RainToday = Yes", "RainToday", "Yes")],
        "rainfall": _RAIN,
        "wind speed": _WIND,
        "humidity": _MOIST,
        "pressure": _PRESSURE,
        "temperature": _WARMTH,
    },
    (
        *(Claim(column, _HEAVY, _LIGHT) for column in (*_HUMIDITY, "WindGustSpeed", "Rainfall")),
        *(Claim(column, _COLD, _WARM) for column in ("Rainfall", "WindGustSpeed", *_HUMIDITY)),
        *(
            Claim(column, group, others("all others", group))
            for group in (_FAST, _LOW)
            for column in (*_HUMIDITY, "WindGustSpeed", "Rainfall")
        ),
    ),
)

_CALM = Group(
    "dry, calm and hot days",
    lambda rows: (rows["Rainfall"] <= 1) & (rows["WindSpeed3pm"] <= 5) & (rows["Temp3pm"] > 30),
)
_STORM = Group(
    "wet, windy and cold days",
    lambda rows: (rows["Rainfall"] > 15) & (rows["WindSpeed3pm"] > 25) & (rows["Temp3pm"] < 10),
)

EXTREMES = Look(
    "Weather",
    {"extremes": [_CALM, _STORM]},
    tuple(Claim(column, _STORM, _CALM, differs=True) for column in ("Humidity3pm", "WindGustSpeed")),
    every_test_row=True,
)

LOOKS = {"Adult": (ADULT,), "Weather": (WEATHER, EXTREMES)}
