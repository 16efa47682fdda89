"""An explanation as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from limis.blackbox import BlackBox
from limis.explanation import Explanation
from limis.local_view import promise_words
from limis.report.chart import shown_reasons
from limis.report.curves import Say, curves_of, pairs_told, what_ifs
from limis.report.words import Numbers, count, percent, printable, shorten

WIDTH = 88
NAME_WIDTH, NUMBER_WIDTH, HALF_BAR = 50, 9, 10
MOST_REASONS, MOST_DIFFERENCES, MOST_SPEAKERS = 6, 4, 3
# A column this little apart from all rows (in standard deviations, or share of the rows) is not worth a line.
WORTH_TELLING = 0.1


def render(one: Explanation, heading: str, note: str = "") -> str:
    """The prediction, what leads to it, and how far to trust that.

    Of curves: what leads to it from the reference, which pairs matter, what other values would do and who speaks. Of
    other local models: two steps and what moves each of them, or rules.
    """
    numbers = Numbers.of(one.all.training)
    if one.all.fits.has_curves:
        parts = [
            _prediction(one, numbers, note),
            _why(one, numbers),
            _pairs(one, numbers),
            _what_ifs(one, numbers),
            [*_speakers(one), *_trust(one, numbers)],
        ]
        told = ["\n".join(part) for part in map(list, parts) if part]
        return "\n".join([_rule(heading), "\n\n".join(told)]) + "\n"
    lines = [
        _rule(heading),
        *_prediction(one, numbers, note),
        "",
        *(_rules(one, numbers) if one.all.fits.has_rules else _steps(one, numbers)),
        "",
        *_differences(one),
        "",
        *([*_reasons(one, numbers), ""] if _has_reasons(one) else []),
        *_trust(one, numbers),
    ]
    return "\n".join(lines) + "\n"


def _has_reasons(one: Explanation) -> bool:
    """Rules say it all; other models give reasons where these have a meaning."""
    return one.all.fits.has_contributions and not one.all.fits.has_rules


def class_name(black_box: BlackBox) -> str:
    """The class whose probability is explained, in words."""
    return "class 1" if black_box.classes is None else _clean(black_box.classes[1])


def explained(black_box: BlackBox) -> str:
    """What is explained, in words."""
    if black_box.scale == "value":
        return "the model's output" if black_box.can_be_asked else "the values given"
    if black_box.has_several_classes and black_box.classes is not None and len(black_box.classes) > 2:
        scale = "log-probability, less the mean over the classes," if black_box.scale == "centred" else "probability"
        return f"the {scale} of each of {len(black_box.classes)} classes"
    return f"the {black_box.scale} of {class_name(black_box)}"


def _prediction(one: Explanation, numbers: Numbers, note: str) -> Iterator[str]:
    black_box = one.all.training.black_box
    if one.all.outputs is None and one.all.fits.has_curves:
        whose = f" for {class_name(black_box)}" if black_box.is_classifier else ""
        expected = f"{_said(one, numbers)(one.local_prediction)}{whose}"
        said = f"not asked: it is expected to say {expected}"
        if one.all.fits.has_stand_in:
            said = f"none to ask: a stand-in, taught on the outputs given, says {expected}"
    elif one.all.outputs is None:
        said = "not asked: this is what the explanation expects"
    elif one.all.chances is not None:
        said = f"{percent(float(one.all.chances[one.row]))} for {class_name(black_box)}"
    elif black_box.is_classifier:
        said = f"{_chance(black_box, one.model_output)} for {class_name(black_box)}"
        if black_box.scale == "logit":
            said += f" (logit {numbers.show(one.model_output)})"
    else:
        said = numbers.show(one.model_output)
    yield f"The model      {said}{f'; {note}' if note else ''}"


def _steps(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """Overall mean → rows like this one → this row."""
    training = one.all.training
    black_box = training.black_box
    has_chance = black_box.scale == "logit"

    def line(words: str, step: str, output: str, chance: str) -> str:
        return f"{words:<{NAME_WIDTH}}{step:>{NUMBER_WIDTH}}{output:>14}{chance:>15}".rstrip()

    def stop(words: str, output: float, step: float | None = None) -> str:
        moved = "" if step is None else numbers.signed(step)
        return line(f"  {words}", moved, numbers.show(output), _chance(black_box, output) if has_chance else "")

    yield line("In two steps", "step", black_box.scale, "probability" if has_chance else "")
    rows = count(len(training.frame), "training row", "training rows")
    yield stop(f"all {rows}, on average", training.overall_mean)
    alike = max(1, round(float(one.fidelity["effective_rows"])))
    yield stop(f"rows like this one ({alike:,} in effect)", one.base_value, one.neighbourhood_shift)
    yield stop("this row, as explained", one.local_prediction, one.local_prediction - one.base_value)


def _why(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """From the mean of the reference to the model's output: what each column adds, and the rest."""
    said, reference = _said(one, numbers), one.reference
    shown, others = shown_reasons(one, MOST_REASONS)
    told = [reason for reason in shown if _visible(reason.contribution, numbers)]
    most = max([one.all.tolerance, *(abs(reason.contribution) for reason in told)])
    scale = {"logit": ", in logits", "centred": ", in log-probabilities"}.get(one.all.training.black_box.scale, "")

    def stop(words: str, output: float) -> str:
        return f"{shorten(f'  {words}', NAME_WIDTH - 1):<{NAME_WIDTH}}{numbers.show(output):>{NUMBER_WIDTH}}"

    yield f"Why {said(one.local_prediction)} and not {said(one.base_value)}{scale}"
    yield stop(f"{_clean(reference.name)}, on average", one.base_value)
    for reason in [*told, *([others] if others else [])]:
        if _visible(reason.contribution, numbers):
            yield _step(_clean(reason.words), reason.contribution, most, numbers)
    if _visible(one.rest, numbers):
        yield _step("the rest: special about this row, no column's", one.rest, most, numbers)
    yield stop("this row", one.local_prediction)
    if reference.error is not None:
        words = f"{count(reference.n_rows, 'row', 'rows')} to compare with: their mean may be off by"
        yield from _wrapped(f"{words} {numbers.show(2 * float(reference.error))}", "  ")


def _what_ifs(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """A few values for which the model would say something else."""
    told = what_ifs(curves_of(one), numbers, _said(one, numbers))
    if told:
        known = " (in brackets: intervals that hold for 95% of changes)" if any(line.ends for line in told) else ""
        yield f"What if{known}"
    for line in told:
        yield from _wrapped(_clean(line), "  ")


def _pairs(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """The pairs of columns that do something only together."""
    told = pairs_told(one, numbers)
    if told:
        yield "Pairs: what two columns do only together; half of it is counted with either"
    for first, second, size in told:
        yield from _wrapped(f"{_clean(first)} and {_clean(second)}: {size}", "  ")


def _speakers(one: Explanation) -> list[str]:
    """Who the explanation rests on."""
    rows, worth = len(one.weights), max(1, round(float(one.fidelity["effective_rows"])))
    if rows == 0:
        words = "no training row of its own: a model taught on the black box's answers alone"
        return _wrapped(words, "Who speaks     ")
    labels = ", ".join(_clean(one.all.training.frame.index[place]) for place in one.weights.index[:MOST_SPEAKERS])
    words = f"{count(rows, 'training row', 'training rows')}, worth {worth:,} of equal weight; most of all {labels}"
    return _wrapped(words, "Who speaks     ")


def _said(one: Explanation, numbers: Numbers) -> Say:
    """Outputs in words: as probabilities where they stand for such."""
    black_box = one.all.training.black_box
    in_percent = black_box.scale in ("logit", "probability")
    return lambda output: _chance(black_box, output) if in_percent else numbers.show(output)


def _rules(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """The tree as if-then rules, the row's own first."""
    black_box = one.all.training.black_box
    for holds, heading in ((True, "What holds for this row"), (False, "What it would be otherwise")):
        such = [rule for rule in one.rules() if rule.holds == holds]
        if such:
            yield heading
        for rule in such:
            chance = f" ({_chance(black_box, rule.value)})" if black_box.scale == "logit" else ""
            words = " and ".join(map(_clean, rule.conditions))
            said = f"if {words}: " if words else ""
            yield from _wrapped(f"{said}{numbers.show(rule.value)}{chance}", "  ")


def _differences(one: Explanation) -> Iterator[str]:
    """What the rows that speak for this one have in common, and other rows have not."""

    def line(name: str, here: str, like: str, everywhere: str) -> str:
        return f"{shorten(name, 29):<30}{shorten(here, 21):>22}{shorten(like, 22):>24}{shorten(everywhere, 10):>12}"

    yield line("What rows like it share", "this row", "rows like it", "all rows")
    found = one.neighbourhood()
    found = found[found["apart"] > WORTH_TELLING]
    if found.empty:
        yield "  nothing much: they are like all rows"
    for apart in found.head(MOST_DIFFERENCES).itertuples():
        name = str(apart.column)
        yield line(f"  {_clean(name)}", _clean(one.values[name]), _clean(apart.here), _clean(apart.overall))


def _reasons(one: Explanation, numbers: Numbers) -> Iterator[str]:
    """What moves this row away from rows like it, and what cannot be told here."""
    reasons = one.reasons()
    told = [reason for reason in reasons if _visible(reason.contribution, numbers)][:MOST_REASONS]
    # A bar of full length is never less than what is allowed as an error, so that small reasons look small.
    most = max([one.all.tolerance, *(abs(reason.contribution) for reason in told)])
    yield "What sets it apart from them"
    if not told:
        yield "  nothing that shows: it is expected to be as they are on average"
    for reason in told:
        words = f"{_clean(reason.words)}{f' ({reason.status})' if reason.status else ''}"
        yield _step(words, reason.contribution, most, numbers)
    others = [reason for reason in reasons if reason not in told]
    remainder = sum(reason.contribution for reason in others)
    if told and others and _visible(remainder, numbers):
        yield _step(f"{count(len(others), 'other', 'others')} together", remainder, most, numbers)
    for status, meaning in (
        ("fixed here", "hardly varies among rows like this one, so its effect does not show"),
        ("unknown here", "no row like this one has this value, so its effect is not known"),
    ):
        such = [_clean(reason.words) for reason in reasons if reason.status == status]
        if such:
            yield from _wrapped(f"{', '.join(such)}: {meaning}", f"  {status:<12} ")


def _trust(one: Explanation, numbers: Numbers) -> Iterator[str]:
    tolerance = numbers.show(one.all.tolerance)
    if one.trusted and one.all.fits.has_curves:
        words = f"yes: {promise_words(one)}"
    elif one.trusted:
        bound = numbers.show(float(one.fidelity["change_error_bound"]))
        where = "" if one.all.bound is None else f" to a value of {one.all.bound.holds_for}"
        words = f"yes: when a column changes{where}, it misses by less than {bound} (95% bound; {tolerance} is allowed)"
    else:
        words = "not on its own: " + "; ".join(map(_clean, one.fidelity["doubts"]))
    yield from _wrapped(words, "Trust it?      ")
    if one.all.outputs is not None and one.all.fits.has_curves:
        missed = numbers.show(float(one.fidelity["error"]))
        yield f"{'':15}without asking about this row it would have been expected within {missed}"
    elif one.all.outputs is not None:
        error = abs(one.local_prediction - one.model_output)
        yield f"{'':15}at this row it misses the model by {numbers.show(error)}"


def _rule(heading: str) -> str:
    heading = shorten(_clean(heading), WIDTH - 6)
    return f"── {heading} " + "─" * (WIDTH - len(heading) - 4)


def _step(words: str, amount: float, most: float, numbers: Numbers) -> str:
    words = shorten(f"  {words}", NAME_WIDTH - 1)
    return f"{words:<{NAME_WIDTH}}{numbers.signed(amount):>{NUMBER_WIDTH}}   {_bar(amount, most)}".rstrip()


def _bar(amount: float, most: float) -> str:
    """A bar to the left of a middle line for less, to the right for more."""
    length = round(HALF_BAR * abs(amount) / most) if most > 0 else 0
    left, right = ("█" * length, "") if amount < 0 else ("", "█" * length)
    return f"{left:>{HALF_BAR}}│{right}"


def _wrapped(words: str, first: str) -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def _chance(black_box: BlackBox, output: float) -> str:
    # A local model is linear, so on the probability scale it may leave the range that probabilities have.
    return percent(float(np.clip(black_box.to_probability(np.array(output)), 0, 1)))


def _visible(amount: float, numbers: Numbers) -> bool:
    """Whether a number is more than zeros when it is shown."""
    return any(digit in numbers.show(amount) for digit in "123456789")


def _clean(text: Any) -> str:
    """Text on one line, without anything that would steer the terminal."""
    return printable(" ".join(str(text).split()))
