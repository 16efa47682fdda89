"""Weight estimators that factor: each row is embedded once, and weights are products of embeddings."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

Form = Literal["towers", "kernel", "sum"]

HIDDEN = 64
EMBEDDING = 8
# Towers start with logits of about this size: far enough from 0 to tell rows apart, near enough to learn.
TOWER_SCALE = 4.0


class FactoredEstimator(nn.Module):
    """Logits of the selection probability from embeddings of the row to explain and of the training row.

    "towers": the product of two embeddings, one of each role. "kernel": minus the squared distance of one embedding.
    "sum": both added. Neither sees a pair of rows together, so the cost is a matrix product.
    """

    def __init__(self, n_inputs: int, form: Form = "towers") -> None:
        super().__init__()
        self.form = form
        self.query_tower = embedding(n_inputs) if form != "kernel" else None
        self.row_tower = embedding(n_inputs) if form != "kernel" else None
        self.kernel = embedding(n_inputs) if form != "towers" else None
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (queries, rows) from inputs (queries, inputs) and (rows, inputs)."""
        return self.logits(queries, *self.embed(rows))

    def embed(self, rows: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """What the training rows are to any query: by the tower, and by the kernel."""
        return (
            None if self.row_tower is None else self.row_tower(rows),
            None if self.kernel is None else self.kernel(rows),
        )

    def logits(
        self, queries: torch.Tensor, by_tower: torch.Tensor | None, by_kernel: torch.Tensor | None
    ) -> torch.Tensor:
        """Logits (queries, rows) of rows that were embedded."""
        logits = self.bias
        if self.query_tower is not None and by_tower is not None:
            scale = TOWER_SCALE / EMBEDDING**0.5
            logits = logits + scale * (self.query_tower(queries) @ by_tower.T)
        if self.kernel is not None and by_kernel is not None:
            ours, theirs = self.kernel(queries), by_kernel
            squares = ours.square().sum(dim=1)[:, None] + theirs.square().sum(dim=1)[None, :]
            logits = logits - (squares - 2 * ours @ theirs.T)
        return logits


def embedding(n_inputs: int) -> nn.Sequential:
    """A small network from a row to its embedding."""
    return nn.Sequential(
        nn.Linear(n_inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, EMBEDDING)
    )
