"""Request of the vLLM engine: prompt, settings, and tokens so far."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.backends import Completion, Stop
from strop.errors import DeliveryError
from strop.types import IntArray, Sampling


@dataclass(eq=False)
class VllmRequest:
    """Request waiting for its completion, with the tokens so far."""

    name: str
    prompt: IntArray  # [P]
    sampling: Sampling
    key: int
    future: asyncio.Future[Completion]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def answer(self, stop: Stop) -> None:
        arrays = np.array(self.tokens, np.int64), np.array(self.logprobs, np.float32), np.array(self.versions, np.int64)
        if not self.future.done():
            self.future.set_result(Completion(*arrays, stop))

    @property
    def completion(self) -> IntArray:
        """What stop strings are looked for in: the end of the prompt that begins the completion, and what was
        written.
        """
        begun = self.prompt[len(self.prompt) - self.sampling.num_prefix :]
        return np.concatenate([begun, np.array(self.tokens, np.int64)])

    def check_spans(self, output: Any) -> None:
        """vLLM's own account of which version wrote which tokens must be ours; it has one since 0.32."""
        if not hasattr(output, "weight_versions"):
            return
        told = [int(span.version) for span in output.weight_versions or () for _ in range(span.start, span.end)]
        if told != self.versions:
            raise DeliveryError(
                f"vLLM says that versions {sorted(set(told))} wrote {len(told)} tokens, and {len(self.versions)} came "
                f"of versions {sorted(set(self.versions))}"
            )
