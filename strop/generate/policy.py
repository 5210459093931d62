"""The policy as somebody to talk to: the only code that touches tokens.

Text is tokenized once and never again: what is sent at one turn is what was sent at the turn before, then the tokens
sampled there, then the tokens of what the world said since. Pieces are only ever appended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.template import Template
from strop.models.folder import check_model_folder as check_model_folder
from strop.models.folder import read_config
from strop.roles import Engine
from strop.types import IntArray, Message, Sampling, Start, Stop, Task, Turn

NOBODY = -1  # the version of tokens that no weights wrote
_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def attempt_key(seed: int, attempt_id: str) -> int:
    """An attempt's random key: 63 bits, the same on every machine and in every order of attempts."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{attempt_id}".encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Policy:
    """A tokenizer, an engine, and how to sample from it; `context` counts prompt and written tokens together."""

    template: Template
    engine: Engine
    sampling: Sampling
    context: int

    @classmethod
    def load(cls, folder: Path, engine: Engine, sampling: Sampling, context: int) -> Policy:
        """Read tokenizer and template from a Hugging Face folder."""
        template = Template.load(folder)
        limit = getattr(read_config(folder).get_text_config(), "max_position_embeddings", None) or context
        if context > limit:
            raise ConfigurationError(f"context={context} is more than the {limit} positions of the model in {folder}")
        return cls(template, engine, sampling, context)

    def fits(self, task: Task) -> bool:
        """Whether the task's prompt leaves room for a reply."""
        return len(self.template.opening(task.messages)) < self.context

    def dialogue(self, task: Task, start: Start, most_turns: int = 0) -> Talk:
        """Open an attempt's conversation, or take it up where `start` left it; `most_turns` 0: without a limit."""
        if start.turns:
            return Talk(self, start.key, _NOTHING, start.turns, most_turns)
        opening = self.template.opening(task.messages)
        if len(opening) >= self.context:
            raise ConfigurationError(
                f"task {task.id}: its prompt has {len(opening)} tokens and context={self.context} leaves no room for a"
                f" reply; need a context of at least {len(opening) + 1}"
            )
        return Talk(self, start.key, opening, most_turns=most_turns)


class Talk:
    """One attempt's conversation as tokens; given turns whose last reply is unfinished go on inside that reply."""

    def __init__(
        self, policy: Policy, key: int, unread: IntArray, turns: tuple[Turn, ...] = (), most_turns: int = 0
    ) -> None:
        self._policy = policy
        self._most_turns = most_turns
        self._key = key
        self._turns = list(turns)
        self._heard: list[Message] = []
        self._unread = unread  # [P] what the policy reads before its next reply
        self._begun: Turn | None = None
        self._begun = self._turns.pop() if turns and self._room > 0 and not self._is_finished(turns[-1]) else None
        self.stop = Stop.STOP  # why the last reply ended

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    @property
    def is_cut(self) -> bool:
        is_long = 0 < self._most_turns <= len(self._turns)
        return self.stop is not Stop.STOP or self._room <= 0 or is_long

    def hear(self, messages: Sequence[Message]) -> None:
        """Append what the world said; it is read before the next reply."""
        if not self._turns:
            raise ValueError("the world spoke before any reply; what it says first belongs into the task's messages")
        self._heard += messages
        last = self._turns[-1].tokens
        self._unread = self._policy.template.between(int(last[-1]) if len(last) else NOBODY, self._heard)

    async def reply(self, sampling: Sampling | None = None) -> Message:
        """Let the policy write its next turn, as far as tokens asked for and context go."""
        context = self._context()
        room = self._policy.context - len(context)
        if room <= 0:
            raise ValueError(f"the context of {self._policy.context} tokens is full; ask is_cut before reply")
        asked = sampling or self._policy.sampling
        limited = asked if asked.max_tokens <= room else replace(asked, max_tokens=room)
        written = await self._policy.engine.sample(context, limited, self._key)
        self.stop = written.stop
        message = Message("assistant", self._policy.template.text(written.tokens))
        turn = Turn(self._unread, written.tokens, written.logprobs, written.versions, message, asked)
        self._append(self._joined(self._begun, turn) if self._begun else turn)
        return self._turns[-1].message

    def say(self, message: Message) -> None:
        """Append a turn somebody else wrote: certain (logprob 0) and by no weights (version -1)."""
        template = self._policy.template
        tokens = np.append(template.encode(message.content), template.end)[: max(self._room, 0)]
        self.stop = Stop.STOP if len(tokens) and tokens[-1] == template.end else Stop.LENGTH
        logprobs, versions = np.zeros(len(tokens), np.float32), np.full(len(tokens), NOBODY, np.int64)
        self._append(Turn(self._unread, tokens, logprobs, versions, message, self._policy.sampling))

    @property
    def _room(self) -> int:
        """How many tokens the context still takes."""
        return self._policy.context - sum(map(len, self._pieces()))

    def _context(self) -> IntArray:
        pieces = self._pieces()
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)  # [P]

    def _pieces(self) -> list[IntArray]:
        """Everything the policy has before it: the turns since the context last restarted, then what is unread."""
        turns = [*self._turns, *([self._begun] if self._begun else [])]
        if not turns:
            return [self._unread]
        first = max((index for index, turn in enumerate(turns) if turn.fresh), default=0)
        return [piece for turn in turns[first:] for piece in (turn.prompt, turn.tokens)] + [self._unread]

    def _append(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._heard, self._unread, self._begun = [], _NOTHING, None

    def _joined(self, begun: Turn, rest: Turn) -> Turn:
        """An unfinished turn and its rest as one; each token keeps its own logprob and version."""
        tokens = np.concatenate([begun.tokens, rest.tokens])
        return replace(
            begun,
            tokens=tokens,
            logprobs=np.concatenate([begun.logprobs, rest.logprobs]),
            versions=np.concatenate([begun.versions, rest.versions]),
            message=Message("assistant", self._policy.template.text(tokens)),
        )

    def _is_finished(self, turn: Turn) -> bool:
        """Whether a reply ended by itself: with an end token or a stop string."""
        is_ended = len(turn.tokens) > 0 and int(turn.tokens[-1]) in self._policy.template.ends
        return is_ended or any(turn.message.content.endswith(text) for text in turn.sampling.stop)
