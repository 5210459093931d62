"""Prompt embeddings: hidden states of the run's initial model, which never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.models.layers.prompt_states import last_states
from strop.models.model import load_model
from strop.types import FloatArray, IntArray, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy

_KEPT = 10_000  # states, the latest


@dataclass(eq=False)
class PromptStates:
    """Initial model, its hidden state at a prompt's last token, and the conversion of tasks to prompts."""

    model: Any
    device: str
    policy: Policy | None = None
    _kept: dict[bytes, FloatArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, model: Path, device: str) -> PromptStates:
        return cls(load_model(model, device=device), device)

    def prompt(self, task: Task) -> IntArray:
        if self.policy is None:
            raise ConfigurationError("It is not known yet how tasks are written: call meet(policy) first")
        return prompt_of(self.policy, task)

    def of(self, prompts: Sequence[IntArray]) -> FloatArray:
        """[N, H]."""
        return np.stack([self._state(prompt) for prompt in prompts])

    def _state(self, prompt: IntArray) -> FloatArray:
        if (name := prompt.tobytes()) not in self._kept:
            self._kept[name] = self._read(prompt)
            for old in list(self._kept)[:-_KEPT]:
                del self._kept[old]
        return self._kept[name]

    @torch.no_grad()
    def _read(self, prompt: IntArray) -> FloatArray:
        """One prompt alone: its bits must not depend on which others are asked about, or a resumed run would differ."""
        found: FloatArray = last_states(self.model, [prompt], self.device)[0].float().cpu().numpy()
        return found


def prompt_of(policy: Policy, task: Task) -> IntArray:
    """As the policy reads it; one that is too long is skipped later, and must not break whoever looks at it before."""
    return policy.template.opening(task.messages, task.tools)[: policy.context - 1]


def standardized(states: FloatArray, others: FloatArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both in units of the deviation of `states` from their mean, by feature: [R, H] and [N, H].

    Prompts end alike, so that their states are nearly the same but for what differs.
    """
    known = states.astype(np.float64)
    spread = known.std(0)
    spread[spread == 0] = np.inf
    return (known - known.mean(0)) / spread, (others.astype(np.float64) - known.mean(0)) / spread
