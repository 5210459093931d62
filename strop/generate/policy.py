"""Policy: tokenizer, chat template, engine and sampling settings.

Text is tokenized once. The prompt of a turn is the prompt of the turn before, the tokens sampled there, and the tokens
of the environment's messages since. Within a context, tokens are only appended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.conversation import Talk
from strop.generate.rollout_limits import NO_LIMITS, Limits
from strop.generate.templates.chat_template import Template
from strop.generate.templates.tool_call_format import CallFormat
from strop.generate.turn_ops import retold
from strop.models.loading.check_folder import check_context
from strop.models.loading.check_folder import check_model_folder as check_model_folder
from strop.observe.metrics.step_timer import BusyClock
from strop.roles import Engine
from strop.storage.picture_store import PictureStore
from strop.types import IntArray, Message, Sampling, Start, Task, Tool, Turn


def rollout_key(seed: int, rollout_id: str) -> int:
    """Random key of a rollout: 63 bits, independent of the machine and of the order of rollouts."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{rollout_id}".encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Policy:
    """Policy for rollouts; `context` limits prompt and completion tokens together."""

    template: Template
    engine: Engine
    sampling: Sampling
    context: int
    busy: BusyClock = field(default_factory=BusyClock, compare=False, repr=False)  # of its engine

    @classmethod
    def load(
        cls, folder: Path, engine: Engine, sampling: Sampling, context: int, store: PictureStore | None = None
    ) -> Policy:
        """Load tokenizer and chat template from a Hugging Face folder; pictures are kept in the store."""
        template = Template.load(folder, store)
        check_context(folder, context)
        return cls(template, engine, sampling, context)

    def dialogue(self, task: Task, start: Start, limits: Limits = NO_LIMITS, keys: list[int] | None = None) -> Talk:
        """Conversation of a rollout, new or continued from `start`; `keys` receives further random keys."""
        return Talk(self, task, start, limits, [] if keys is None else keys)

    def fits(self, task: Task) -> bool:
        """Whether the task's prompt leaves room for a completion."""
        return len(self.template.opening(task.messages, task.tools)) < self.context

    def opening(self, messages: Sequence[Message], task: Task) -> IntArray:
        """First prompt of a context: [P]."""
        shown = {picture for message in messages for picture in message.images}
        if lost := {picture for message in task.messages for picture in message.images} - shown:
            raise ConfigurationError(
                f"task {task.id}: its prompt was written anew without {len(lost)} of its pictures: the strategy or "
                "agent of this recipe reads text only, so take one that shows tasks as they are"
            )
        opening = self.template.opening(messages, task.tools)
        if len(opening) >= self.context:
            raise ConfigurationError(
                f"task {task.id}: its prompt has {len(opening)} tokens and context={self.context}, so no completion "
                f"fits: set context to at least {len(opening) + 1}"
            )
        return opening

    def message(self, completion: IntArray, tools: Sequence[Tool]) -> Message:
        """A completion as a message with its text and its calls of these tools."""
        calls = self.calls.read(completion, tools).told if tools and self.calls is not None else ()
        return Message("assistant", self.template.text(completion), calls)

    def spelled(self, message: Message) -> tuple[str, IntArray]:
        """Text and tokens [N] of a message with its tool calls, in the model's own tool call format."""
        text = covered = message.content
        for call in message.tool_calls:
            if self.calls is None:
                raise ConfigurationError("the chat template has no tool calls, so they cannot be demonstrated")
            text += self.calls.written(call)
            covered += self.calls.written(call, self.template.control.twins.cover)
        return text, self.template.encode_completion(covered)

    @cached_property
    def calls(self) -> CallFormat | None:
        """Tool call format of the model, found once by rendering examples; None: the template has none."""
        return CallFormat.of(self.template)

    def retold(self, turns: Sequence[Turn], messages: Sequence[Message], task: Task) -> tuple[Turn, ...]:
        """The same completions after another prompt; logprobs stay those of the original prompt."""
        prompt = np.concatenate([self.opening(messages, task), turns[0].prefix])
        return (replace(turns[0], prompt=prompt, aux=retold(turns[0], len(prompt))), *turns[1:])

    def derived_key(self, key: int, name: str) -> int:
        """Random key of a named part of a rollout."""
        return rollout_key(key, name)
