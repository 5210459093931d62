"""Masked views of completions for diffusion models: in sampling order, or corrupted at random.

Papers: d1, tracerl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import View
from strop.training.canvases import Glance, WrittenCanvas
from strop.training.machine.masked_views import as_sampled

# How a model learns to fill masks (LLaDA, 2502.09992): a share t of the completion is hidden, and judged 1 / t times.
#
# The expectation over t, uniform from 0 to 1, is a lower bound of the completion's log-likelihood.


@dataclass(frozen=True)
class Corrupted(View):
    """Each token of the completion is hidden with probability t, which is drawn for the completion; what stands behind
    it always is.

    Shares below `least` are not drawn: one hidden token would weigh as much as a whole batch.
    """

    least: float = 0.001  # of all t

    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.least < 1:
            raise ConfigurationError(f"Corrupted needs 0 < least < 1, got {self.least}")

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]:
        share = self.least + (1 - self.least) * float(canvas.probabilities(1)[0])
        is_completion, chosen = canvas.is_completion, canvas.probabilities() < share
        hidden = chosen & is_completion
        hidden[canvas.stop :] = True
        return [Glance(hidden, chosen & is_completion, 1 / share)]


# TraceRL's view (2509.06949): tokens are judged in the order they came in, beside those that stood there already.


@dataclass(frozen=True)
class InOrder(View):
    """One glance for every `merged` steps; with 1 the logprobs are those with which the tokens were drawn.

    Tokens that no model of masks wrote came all in one step.
    """

    merged: int = 8  # neighbouring steps that share a glance

    def __post_init__(self) -> None:
        if self.merged < 1:
            raise ConfigurationError(f"InOrder needs merged >= 1, got {self.merged}")

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]:
        return as_sampled(canvas, self.merged)
