"""Pass-rate estimators that interpolate from recently tried tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from strop.control.estimators.support.prompt_embeddings import PromptStates
from strop.control.estimators.support.recent_outcomes import Support
from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator
from strop.types import Group

if TYPE_CHECKING:
    from strop.generate.policy import Policy


@dataclass
class ByTried(PassRateEstimator):
    """Recent outcomes and prompt embeddings of the initial model; subclasses predict from both."""

    needs_success: ClassVar[bool] = True
    _states: PromptStates | None = field(default=None, init=False, repr=False, compare=False)
    _support: Support = field(default_factory=lambda: Support(0), init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._ready().policy = policy

    def observe(self, group: Group) -> None:
        self._support.add(group, self._ready().prompt(group.task))

    def state(self) -> dict[str, Any]:
        return self._support.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._support.restore(state)

    def _ready(self) -> PromptStates:
        if self._states is None:
            raise ConfigurationError(f"{type(self).__name__} has no model yet: call load_model(model, seed) first")
        return self._states
