"""TraceRL's view (2509.06949): tokens are judged in the order they came in, beside those that stood there already.

Papers: tracerl
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.backends import View
from strop.errors import ConfigurationError
from strop.training.canvases import Glance, WrittenCanvas
from strop.training.machine.masked_views import as_sampled


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
