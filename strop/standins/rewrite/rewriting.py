"""Who rewrites problems of the bundled environments by rules: a larger model's place in runs that need none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import LLMClientError
from strop.roles import LLMClient
from strop.standins.rewrite.dispatch import advised
from strop.types import Message, Sampling


@dataclass(frozen=True)
class Rewriting(LLMClient):
    """Drops, adds, moves or solves parts of a problem; its answers are exact, and what no rule can do it refuses."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        try:
            return advised(messages[-1].content, key)
        except ValueError as error:
            raise LLMClientError(str(error)) from error
