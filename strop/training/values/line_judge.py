"""Process reward model of program lines (2410.17621, 2502.01715): a model head trained on labels at line ends.

Papers: prm-code, prlcoder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.filter.judges.code_lines import labels_of
from strop.training.machine.value_body import AFTER, Part
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics

NAME = "critic"  # of its files, which may start from a critic's


@dataclass
class LineJudge(Bodied):
    """Value model trained by squared error on labels 1 or -1 at the state after a line's last token; it starts at 0.

    Token values are its outputs after each token.
    """

    _name: ClassVar[str] = NAME

    def predict(self, groups: Sequence[Group]) -> None:
        for rollout, outputs in self._outputs(groups):
            rollout.values = outputs[:, AFTER, 0]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """One step; reports the number of labels, and the share of which the sign was predicted before it."""
        body = self._ready()
        parts = body.parts([rollout for group in groups for rollout in group.scored])
        labels = {id(part): part.column([labels_of(rollout) for rollout in part.rollouts]) for part in parts}
        count = sum(int((each != 0).sum()) for each in labels.values())
        if not count:
            return {"line_labels": 0.0}
        said: list[Tensor] = []

        def loss(outputs: Tensor, part: Part) -> Tensor:
            label = labels[id(part)]  # [R]
            judged = outputs[:, AFTER, 0]
            said.append((judged.detach() * label > 0).sum())
            return torch.where(label != 0, (judged - label).square(), 0.0).sum() / count

        norm = body.step(parts, loss, self.learning_rate)
        share = sum(int(each) for each in said) / count
        return {"line_labels": float(count), "lines_known": share, "value_grad_norm": norm}
