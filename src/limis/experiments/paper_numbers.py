"""The numbers that the paper's tables give for synthetic data, by method, data and number of training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MEAN = "Syn1-3"  # the mean over the three piecewise data sets
_DATA = ("Syn1", "Syn2", "Syn3", MEAN)

Numbers = dict[tuple[str, str, int], float]


def _lines(size: int, lines: dict[str, Sequence[float]]) -> Iterator[tuple[tuple[str, str, int], float]]:
    for method, numbers in lines.items():
        for data, number in zip(_DATA, numbers, strict=True):
            yield (method, data, size), number


# Table "AWD comparisons on three synthetic datasets with different number of train samples".
_BASELINES: Numbers = dict(
    [
        *_lines(500, {
            "LIMIS (paper)": (0.5531, 0.5869, 0.6512, 0.5971),
            "Gumbel-softmax": (0.4177, 0.5017, 0.5953, 0.5049),
            "STE": (0.4281, 0.4941, 0.6001, 0.5074),
            "L2R": (0.6758, 0.6607, 0.6903, 0.6756),
        }),
        *_lines(1000, {
            "LIMIS (paper)": (0.2129, 0.4289, 0.5527, 0.3982),
            "Gumbel-softmax": (0.2712, 0.4511, 0.5405, 0.4209),
            "STE": (0.2688, 0.4407, 0.5372, 0.4156),
            "L2R": (0.6989, 0.6412, 0.6217, 0.6539),
        }),
        *_lines(2000, {
            "LIMIS (paper)": (0.1562, 0.3325, 0.3920, 0.2936),
            "Gumbel-softmax": (0.1698, 0.3655, 0.4217, 0.3190),
            "STE": (0.1717, 0.3601, 0.4307, 0.3208),
            "L2R": (0.7532, 0.7283, 0.7506, 0.7440),
        }),
    ]
)  # fmt: skip

# Table "AWD comparisons" of the optimisation ablation, where the peers' means over the three data sets are.
_PEERS: Numbers = {
    ("LIME", MEAN, 1000): 1.6372, ("LIME", MEAN, 2000): 1.5633,
    ("SILO", MEAN, 1000): 0.6983, ("SILO", MEAN, 2000): 0.6561,
    ("MAPLE", MEAN, 1000): 0.6217, ("MAPLE", MEAN, 2000): 0.5890,
}  # fmt: skip

# Table "AWD values for synthetic data Syn4". How many training rows there were is not said.
_SYN4: Numbers = {
    ("LIMIS (paper)", "Syn4", 2000): 0.2508,
    ("LIME", "Syn4", 2000): 0.5549,
    ("SILO", "Syn4", 2000): 0.3411,
    ("MAPLE", "Syn4", 2000): 0.3254,
}

AWD: Numbers = {**_BASELINES, **_PEERS, **_SYN4}

# Minutes of training on a K80, from the optimisation ablation; over the three data sets.
MINUTES: Numbers = {
    ("LIMIS (paper)", MEAN, 1000): 49, ("LIMIS (paper)", MEAN, 2000): 92,
    ("Gumbel-softmax", MEAN, 1000): 38, ("Gumbel-softmax", MEAN, 2000): 71,
    ("STE", MEAN, 1000): 39, ("STE", MEAN, 2000): 73,
    ("LIME", MEAN, 1000): 17, ("LIME", MEAN, 2000): 21,
    ("SILO", MEAN, 1000): 30, ("SILO", MEAN, 2000): 44,
    ("MAPLE", MEAN, 1000): 55, ("MAPLE", MEAN, 2000): 104,
}  # fmt: skip

# Table "Evaluation on correctly selected training samples". How many training rows there were is not said.
AUC: Numbers = dict(
    _lines(2000, {
        "LIMIS (paper)": (0.7837, 0.6892, 0.6935, 0.7218),
        "LIME": (0.5253, 0.5017, 0.5202, 0.5157),
        "MAPLE": (0.6723, 0.5844, 0.5452, 0.6006),
    })
)  # fmt: skip
