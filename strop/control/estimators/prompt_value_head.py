"""Value model on prompts (PCL, 2510.01135): predicts a task's pass rate before any rollout.

A copy of the model with a value head at the prompt's last token, trained after each step on the success rates of all
tasks tried since, whether their groups were kept or not. Readings: the head's output goes through a sigmoid, so that it
starts at 1/2 and stays a probability; only success rates of the policy's own rollouts are labels, not shaped rewards.
Late groups are learned with those of the same step, in the order of admission.

Papers: pcl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor

from strop.control.estimators.support.calibration import errors
from strop.control.estimators.support.prompt_embeddings import prompt_of
from strop.errors import ConfigurationError
from strop.models.layers.prompt_states import PromptHead
from strop.roles import PassRateEstimator
from strop.success import successes
from strop.types import FloatArray, Group, IntArray, Metrics, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy

_NAME = "prompt_value"
_UNKNOWN = 1 / 12  # the variance of what lies anywhere between 0 and 1


@dataclass
class PromptValue(PassRateEstimator):
    """V(x), trained by one step on the mean of (V(x) - success rate)^2 after each step of the policy.

    Its variance is the mean squared error of its last predictions, including the sampling noise of the rollouts.
    """

    learning_rate: float = 1e-3  # of Adam
    max_tokens: int = 4096  # of one forward pass
    device: str = "cpu"  # cpu or cuda

    _head: PromptHead | None = field(default=None, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)
    _lock: Lock | None = field(default=None, init=False, repr=False, compare=False)  # tasks are chosen while it learns
    _told: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)  # by task, since then
    # number of the group, prompt and share of right rollouts of what was tried since
    _seen: list[tuple[int, IntArray, float]] = field(default_factory=list, init=False, repr=False, compare=False)
    _variance: float = field(default=_UNKNOWN, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def load_model(self, model: Path, seed: int) -> None:
        self._head, self._lock = PromptHead.open(model, self.max_tokens, self.device), Lock()

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        head, lock = self._ready()
        with lock:
            new = {task.id: task for task in tasks if task.id not in self._told}
            told = head.told([self._prompt(task) for task in new.values()]).double().sigmoid()
            self._told |= dict(zip(new, told.tolist(), strict=True))
            means = np.array([self._told[task.id] for task in tasks], dtype=np.float32)
        return means, np.full(len(tasks), self._variance, dtype=np.float32)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        if count:
            self._seen.append((group.number, self._prompt(group.task), right / count))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """From all that was tried, not from the batch alone; nothing where a run is trained again from its ledger."""
        head, lock = self._ready()
        seen = sorted(self._taken(), key=lambda each: each[0])
        with lock:
            self._told.clear()
            return self._step(head, [prompt for _, prompt, _ in seen], np.array([share for *_, share in seen]))

    def _step(self, head: PromptHead, prompts: Sequence[IntArray], shares: FloatArray) -> Metrics:
        if not prompts:
            return {}
        predicted: list[Tensor] = []

        def loss(numbers: Tensor, part: slice) -> Tensor:
            values = numbers.sigmoid()
            predicted.append(values.detach().cpu())
            return (values - values.new_tensor(shares[part])).square().sum() / len(shares)

        norm = head.step(prompts, loss, self.learning_rate)
        metrics = errors(np.concatenate([each.numpy() for each in predicted]), shares)
        self._variance = metrics["estimator_loss"]
        return metrics | {"estimator_grad_norm": norm}

    def _taken(self) -> list[tuple[int, IntArray, float]]:
        """What was seen, and is forgotten by that; more may be seen meanwhile, in another thread."""
        taken = self._seen[:]
        del self._seen[: len(taken)]
        return taken

    # ---- memory

    def state(self) -> dict[str, Any]:
        seen = [[number, prompt.tolist(), share] for number, prompt, share in self._seen]
        return {"variance": self._variance, "seen": seen}

    def restore(self, state: dict[str, Any]) -> None:
        self._variance = float(state["variance"])
        self._seen = [(int(number), np.array(prompt), float(share)) for number, prompt, share in state["seen"]]

    def save(self, folder: Path) -> None:
        self._ready()[0].save(folder, _NAME)

    def resume(self, folder: Path) -> None:
        self._ready()[0].resume(folder, _NAME)
        self._told.clear()

    def _ready(self) -> tuple[PromptHead, Lock]:
        if self._head is None or self._lock is None:
            raise ConfigurationError("PromptValue has no model yet: call load_model(model, seed) first")
        return self._head, self._lock

    def _prompt(self, task: Task) -> IntArray:
        if self._policy is None:
            raise ConfigurationError("PromptValue does not know how tasks are written: call meet(policy) first")
        return prompt_of(self._policy, task)
