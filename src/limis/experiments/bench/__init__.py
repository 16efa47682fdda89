"""Speed, fidelity and memory of explainers, side by side in one run: behind ``limis bench``."""

from limis.experiments.bench.methods import METHODS, Size
from limis.experiments.bench.show import NOTE, as_json, profile_table, ratio_lines, result_table, setting_lines
from limis.experiments.bench.side_by_side import DATA, QUICK, measure

__all__ = [
    "DATA",
    "METHODS",
    "NOTE",
    "QUICK",
    "Size",
    "as_json",
    "measure",
    "profile_table",
    "ratio_lines",
    "result_table",
    "setting_lines",
]
