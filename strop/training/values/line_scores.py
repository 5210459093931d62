"""Line scores of a frozen process reward model trained by another run (2410.17621, 2502.01715).

Papers: prm-code, prlcoder
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import StepJudge
from strop.filter.judges.code_lines import last_tokens, lines_in
from strop.filter.paid_text import Span
from strop.models.loading.model_names import model_folder
from strop.training.machine.value_body import AFTER, ValueBody
from strop.training.values.line_judge import NAME
from strop.types import FilePath, Rollout

if TYPE_CHECKING:
    from strop.generate.policy import Policy

_MOST_TOKENS = 4096  # of one pass


@dataclass
class LineScores(StepJudge):
    """A span for each line with code, with its score; a completion's prefix has none."""

    folder: FilePath  # checkpoints/step-N/values of a run that trained on line labels
    model: FilePath = "pocket"  # model folder of the same architecture
    device: str = "cpu"

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        """Load the model before the first rollout, so that no rollout waits for it."""
        self._policy = policy
        self._body = ValueBody.open(model_folder(self.model), 1, _MOST_TOKENS, self.device)
        self._body.model.load(Path(self.folder) / f"{NAME}_weights.safetensors")

    def steps(self, rollout: Rollout) -> list[Span]:
        if self._body is None or self._policy is None:
            raise ConfigurationError("LineScores has no model: call meet(policy) first")
        last, lines = rollout.turns[-1], lines_in(rollout.completion)
        if not lines or not len(last.tokens):
            return []
        scores = self._body.told([rollout])[rollout.id][-len(last.tokens) :, AFTER, 0]  # [N] of the last turn
        places = last_tokens(lines, self._policy.template.places(last.whole))
        return [
            Span(len(rollout.turns) - 1, line.end - 1, line.end, float(scores[place - last.num_prefix]))
            for line, place in zip(lines, places, strict=True)
            if place >= last.num_prefix
        ]
