"""Roles beside the pipeline: tools of environments, counts of LLM clients, trackers of metrics, health rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from strop.types import Metrics, Task

if TYPE_CHECKING:
    from torch import Tensor

    from strop.observe.health import HealthFinding
    from strop.observe.run_files.run_history import History


class Instrument(Protocol):
    """Tool of an environment. A call answers, or raises `WrongCall`; any other exception fails the rollout."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def description(self) -> str: ...
        @property
        def parameters(self) -> str: ...  # JSON schema of its arguments, as text

    async def call(self, arguments: dict[str, Any]) -> str: ...

    def own(self) -> Instrument:
        """The tool of one rollout: a separate one where calls leave state."""
        return self

    def use(self, task: Task) -> dict[str, Any] | None:
        """Arguments that help with a task, for demonstrations; None: unknown."""
        return None

    async def release(self) -> None:
        """End of the rollout that `own` was called for: remove its state."""
        return None


class CountsUnread(Protocol):
    """LLM client that is told of its answers that could not be read."""

    def unread(self, said: str) -> None: ...


class Asks(Protocol):
    """Part that asks LLM clients outside of rewards: before the run it puts a question about a task to them."""

    async def try_clients(self, task: Task) -> None: ...


class Guidance(Protocol):
    """Guided logits [V] from the policy's logits `base` [V] and the values `told` [C] of its `candidates` [C], the most
    probable tokens.
    """

    file: ClassVar[str]  # file of the value model that it expects, in the folder of saved values

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor: ...


class Tracker(Protocol):
    """Takes the metrics of each step."""

    def open(self, folder: Path, settings: dict[str, Any]) -> None: ...
    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None: ...
    def end(self) -> None: ...


class HealthRule(Protocol):
    """Rule that recognizes one problem of a run from its files; None where they do not suffice."""

    def judge(self, history: History) -> HealthFinding | None: ...
