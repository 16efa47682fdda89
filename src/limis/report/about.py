"""What was explained, by what and when: the facts at the head of a page."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from limis.blackbox import BlackBox
from limis.class_explanations import ClassExplanations
from limis.explanation import Explanations
from limis.report.words import count

Facts = dict[str, str]


def about(
    explanations: Explanations | ClassExplanations, facts: Mapping[str, str] | None = None, made: datetime | None = None
) -> Facts:
    """The facts of a page in their order; those given replace, or come after, what is known of the rows."""
    one = explanations.parts[0] if isinstance(explanations, ClassExplanations) else explanations
    training = one.training
    columns = count(len(training.table.columns), "column", "columns")
    when = datetime.now().astimezone() if made is None else made
    found = {
        "Model": model_words(training.black_box),
        "Rows": f"{len(explanations):,} explained",
        "Training rows": f"{len(training):,} that explanations may rest on, with {columns}",
        "Explained by": _local_models(one),
        **(facts or {}),
    }
    return found | {"Made": f"{when:%Y-%m-%d %H:%M %Z}".strip(), "Versions": versions(training.black_box.model)}


def model_words(box: BlackBox) -> str:
    """What the black box is, as far as it can be known from outside."""
    if box.stands_for_labels:
        return "none: the labels themselves are explained"
    if box.model is None:
        return "not at hand"
    model = box.model
    kind = type(model)
    if callable(model) and hasattr(model, "__qualname__"):
        return f"a function, {model.__qualname__}"
    package = kind.__module__.partition(".")[0]
    return f"{kind.__name__} ({package})" if package not in ("__main__", "builtins") else kind.__name__


def versions(model: Any = None) -> str:
    """Versions of what made the page: limis, Python, and the model's own package."""
    from limis import __version__

    found = [f"limis {__version__}", f"Python {platform.python_version()}"]
    package = type(model).__module__.partition(".")[0]
    name = {"sklearn": "scikit-learn"}.get(package, package)
    if model is not None and name not in ("builtins", "limis"):
        with suppress(PackageNotFoundError):  # a module of the user's own
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def _local_models(found: Explanations) -> str:
    if found.fits.has_rules:
        return "a shallow tree for each row"
    if found.fits.has_curves:
        of_what = ", of a stand-in for the model" if found.fits.has_stand_in else ""
        return f"response curves for each row{of_what}"
    return "a linear model for each row" if found.fits.has_coefficients else "a small model for each row"
