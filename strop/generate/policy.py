"""The policy as a partner of conversations: with `talk.py`, the only code that touches tokens.

Text is tokenized once and never again: what is sent at one turn is what was sent at the turn before, then the tokens
sampled there, then the tokens of what the environment said since. Within a context, pieces are only ever appended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from strop.backends import Engine
from strop.errors import ConfigurationError
from strop.generate.conversation import Talk
from strop.generate.rollout_limits import NO_LIMITS, Limits
from strop.generate.templates.chat_template import Template
from strop.generate.templates.tool_call_format import CallFormat
from strop.generate.turn_ops import retold
from strop.models.loading.check_folder import check_context
from strop.models.loading.check_folder import check_model_folder as check_model_folder
from strop.observe.metrics.step_timer import BusyClock
from strop.types import IntArray, Message, Sampling, Start, Task, Tool, Turn


def rollout_key(seed: int, rollout_id: str) -> int:
    """A rollout's random key: 63 bits, the same on every machine and in every order of rollouts."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{rollout_id}".encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Policy:
    """A tokenizer, an engine, and how to sample from it; `context` counts prompt and written tokens together."""

    template: Template
    engine: Engine
    sampling: Sampling
    context: int
    busy: BusyClock = field(default_factory=BusyClock, compare=False, repr=False)  # of its engine

    @classmethod
    def load(cls, folder: Path, engine: Engine, sampling: Sampling, context: int) -> Policy:
        """Read tokenizer and template from a Hugging Face folder."""
        template = Template.load(folder)
        check_context(folder, context)
        return cls(template, engine, sampling, context)

    def dialogue(self, task: Task, start: Start, limits: Limits = NO_LIMITS, keys: list[int] | None = None) -> Talk:
        """Open a rollout's conversation, or take it up where `start` left it; `keys` hears of further random keys."""
        return Talk(self, task, start, limits, [] if keys is None else keys)

    def fits(self, task: Task) -> bool:
        """Whether the task's prompt leaves room for a completion."""
        return len(self.template.opening(task.messages, task.tools)) < self.context

    def opening(self, messages: Sequence[Message], task: Task) -> IntArray:
        """The first prompt of a context: [P]."""
        opening = self.template.opening(messages, task.tools)
        if len(opening) >= self.context:
            raise ConfigurationError(
                f"task {task.id}: its prompt has {len(opening)} tokens and context={self.context} leaves no room for a"
                f" completion; need a context of at least {len(opening) + 1}"
            )
        return opening

    def message(self, completion: IntArray, tools: Sequence[Tool]) -> Message:
        """A completion as a message: all its text, and what it calls of these tools."""
        calls = self.calls.read(completion, tools).told if tools and self.calls is not None else ()
        return Message("assistant", self.template.text(completion), calls)

    def spelled(self, message: Message) -> tuple[str, IntArray]:
        """What a message says with its calls behind it, as this model writes them: text and tokens [N]."""
        text = covered = message.content
        for call in message.tool_calls:
            if self.calls is None:
                raise ConfigurationError("the model's chat template shows no tool calls, so none can be demonstrated")
            text += self.calls.written(call)
            covered += self.calls.written(call, self.template.control.twins.cover)
        return text, self.template.encode_completion(covered)

    @cached_property
    def calls(self) -> CallFormat | None:
        """How the model writes calls; found once, by rendering some. None: its template shows none."""
        return CallFormat.of(self.template)

    def retold(self, turns: Sequence[Turn], messages: Sequence[Message], task: Task) -> tuple[Turn, ...]:
        """The same completions as if these messages had been read first; logprobs stay those of what was really
        read.
        """
        prompt = np.concatenate([self.opening(messages, task), turns[0].prefix])
        return (replace(turns[0], prompt=prompt, aux=retold(turns[0], len(prompt))), *turns[1:])

    def derived_key(self, key: int, name: str) -> int:
        """A random key of its own for a part of a rollout."""
        return rollout_key(key, name)
