"""The policy as its own LLM client: whoever learns is asked, with the weights of the moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.generate.policy import Policy
from strop.generate.strategies.support.ask_question import answer_of
from strop.roles import LLMClient
from strop.types import Message, Sampling


@dataclass
class Itself(LLMClient):
    """Asks the run's engine; nothing of what is said here is trained on."""

    num_generated: int = field(default=0, init=False, repr=False, compare=False)  # tokens of all answers
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        text, count = await answer_of(self._policy, messages, sampling, key)
        self.num_generated += count
        return text
