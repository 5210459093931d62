"""LLM clients that ask the policy itself or the reference model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from strop.capabilities import inside
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.policy import Policy
from strop.generate.rollout_limits import REFERENCE
from strop.generate.strategies.support.ask_policy import answer_of
from strop.roles import LLMClient
from strop.types import Message, Sampling

if TYPE_CHECKING:
    from strop.run import Run


# The model that training began with as an LLM client, while the policy moves on.


@dataclass
class Beginning(LLMClient):
    """Client of the run's engine under the reference's policy name; its answers do not change during training."""

    num_generated: int = field(default=0, init=False, repr=False, compare=False)  # tokens of all answers
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        if inside(run.engine, WithReference):
            return []
        return ["Beginning asks the model that training began with: need engine=WithReference(engine, another engine)"]

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        text, count = await answer_of(self._policy, messages, replace(sampling, policy_name=REFERENCE), key)
        self.num_generated += count
        return text


# The policy as its own LLM client: whoever learns is asked, with the weights of the moment.


@dataclass
class Itself(LLMClient):
    """Client of the run's engine with the current policy; its answers are not trained on."""

    num_generated: int = field(default=0, init=False, repr=False, compare=False)  # tokens of all answers
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        text, count = await answer_of(self._policy, messages, sampling, key)
        self.num_generated += count
        return text
