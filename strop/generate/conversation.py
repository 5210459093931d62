"""Token-level conversation of a rollout, in one context or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from strop.backends import Completion, Stop
from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.chunked import Told, goes_on
from strop.generate.rollout_limits import NO_LIMITS, Limits, Paused
from strop.generate.turn_ops import NOBODY, as_context, extended, read_to_the_end, said
from strop.types import IntArray, Message, Sampling, Start, Task, Tool, Turn

if TYPE_CHECKING:
    from strop.generate.policy import Policy

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)
_NO_LOGPROBS = np.zeros(0, dtype=np.float32)


@dataclass(eq=False)
class Talk:
    """`Dialogue` over tokens; an unfinished last completion among the start's turns is continued."""

    policy: Policy
    task: Task
    start: Start
    limits: Limits = NO_LIMITS
    keys: list[int] = field(default_factory=list)  # receives every further random key
    policy_name: str = ""
    tools: Sequence[Tool] = field(default=(), init=False)  # tools that completions of this context may call
    stop: Stop = field(default=Stop.STOP, init=False)  # why the last completion ended
    spelled: int = field(default=0, init=False)  # control tokens in messages of any context, encoded as plain text
    _turns: list[Turn] = field(default_factory=list, init=False)
    _begun: Turn | None = field(default=None, init=False)  # a completion that has started and not ended
    _begins: IntArray = field(default_factory=lambda: _NOTHING, init=False)  # prefill of the next completion
    _heard: list[Message] = field(default_factory=list, init=False)
    _unread: IntArray = field(default_factory=lambda: _NOTHING, init=False)  # [P] prompt of the next completion
    _is_fresh: bool = field(default=False, init=False)  # the next turn opens a new context
    _num_contexts: int = field(default=0, init=False)  # besides the first
    _asides: list[Talk] = field(default_factory=list, init=False)
    _main: Talk = field(init=False, repr=False)  # the main conversation of the rollout; itself if it is the main one
    _promised: int = field(default=0, init=False)  # token budget of completions in flight, over all contexts

    def __post_init__(self) -> None:
        self._main, self.tools = self, self.task.tools
        self._turns = list(self.start.turns)
        self._num_contexts = sum(turn.fresh for turn in self._turns)
        if not self._turns:
            messages = self.start.messages or self.task.messages
            self._unread = self.policy.opening(messages, self.task)
            self._heed(messages, self.task.tools)
        elif self._room > 0 and not self._is_finished(self._turns[-1]):
            self._begun = self._turns.pop()
        if self.start.prefill:
            self._begin(self.policy.template.encode_completion(self.start.prefill))

    # ---- contexts

    def restart(self, messages: Sequence[Message], policy_name: str = "", tools: Sequence[Tool] | None = None) -> None:
        """Start a new context from these messages alone, e.g. a summary of the last context or another role."""
        self._heard, self._begun, self._begins, self.policy_name = [], None, _NOTHING, policy_name
        self._open(messages, tools)
        self._is_fresh = True
        self._num_contexts += 1
        self.keys.append(self.key)

    def aside(self, messages: Sequence[Message], policy_name: str = "", tools: Sequence[Tool] | None = None) -> Talk:
        """Side conversation of the same rollout; it may run concurrently with this one."""
        talk = self._another(policy_name)
        talk._open(messages, tools)
        return talk

    def beside(self, policy_name: str = "") -> Talk:
        """Fork of this conversation: it continues from all tokens read and written so far."""
        talk = self._another(policy_name)
        talk._unread = np.concatenate([*self._before(), self._unread])
        return talk

    def otherwise(self, number: int, messages: Sequence[Message]) -> Talk:
        """Fork of this conversation after its completion of this number, followed by these messages."""
        talk = self._another(self.policy_name)
        after = self._after(self._turns[number], messages)
        talk._unread = np.concatenate([*self._before(number + 1), after])
        talk._heard = list(messages)
        self._heed(messages)
        return talk

    def _another(self, policy_name: str) -> Talk:
        key = self.policy.derived_key(self.start.key, f"aside/{len(self._asides) + 1}")
        start = replace(self.start, key=key, turns=(), prefill="", messages=())
        talk = Talk(self.policy, self.task, start, self.limits, self.keys, policy_name)
        talk._main, talk.tools = self._main, self.tools
        self._asides.append(talk)
        self.keys.append(key)
        return talk

    def _open(self, messages: Sequence[Message], tools: Sequence[Tool] | None) -> None:
        """Set the messages that open a context. They may exceed the context; `is_cut` is then true, and no error."""
        self.tools = self.task.tools if tools is None else tools
        self._unread = self.policy.template.opening(messages, self.tools)
        self._heed(messages, self.tools)

    def _heed(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> None:
        self._main.spelled += len(self.policy.template.spelled(messages, tools))

    @property
    def key(self) -> int:
        """Random key of this context; contexts that shared a key would share random numbers at equal positions."""
        number = self._num_contexts
        return self.policy.derived_key(self.start.key, f"context/{number}") if number else self.start.key

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, those of side conversations first: contexts stay contiguous and the main one comes last."""
        others = [turn for talk in self._asides for turn in as_context(talk.turns)]
        return (*others, *(as_context(self._turns) if others else self._turns))

    @property
    def last(self) -> Turn:
        """Last turn of this conversation; side conversations are not considered."""
        return self._turns[-1]

    @property
    def num_read(self) -> int:
        """Number of context tokens before the last completion."""
        return sum(map(len, self._before(len(self._turns)))) - len(self._turns[-1].tokens)

    @property
    def is_cut(self) -> bool:
        return self.stop is not Stop.STOP or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be written, regardless of how the last completion ended."""
        is_long = 0 < self.limits.turns <= len(self._main.turns)
        return self._room <= 0 or is_long or self._left == 0

    @property
    def used(self) -> str:
        spent, turns = self.policy.context - self._room, len(self._main.turns)
        return f"{spent} of {self.policy.context} tokens, {turns} of {self.limits.turns or 'any'} turns"

    # ---- turns

    def hear(self, messages: Sequence[Message]) -> None:
        """Append messages of the environment; the next completion reads them."""
        if self._begun is not None:
            return  # the prompt of the unfinished completion contains these messages already
        if not self._turns:
            raise ValueError("the environment answered before any completion: put its first messages into the task's")
        self._heard += messages
        self._heed(messages)
        self._unread = self._after(self._turns[-1], self._heard)

    async def completion(
        self, sampling: Sampling | None = None, tell: Callable[[IntArray], None] | None = None
    ) -> Message:
        """Sample the policy's next turn within the limits of tokens, context and rollout; `tell` gets tokens live."""
        if (pause := self._before_pause) == 0:
            raise Paused  # the last completion ended exactly at the pause
        if pause is not None and not goes_on(self.policy.engine):
            raise ConfigurationError("pausing rollouts needs an engine that decodes from left to right")
        asked = self._asked(sampling)
        turn = self._begun or self._new_turn(asked)
        context = np.concatenate([*self._before(), turn.prompt, turn.tokens])  # [P]
        room = self.policy.context - len(context)
        if room <= 0:
            raise ValueError(f"the context of {self.policy.context} tokens is full; ask is_cut before completion")
        bounds = [room, asked.max_tokens - len(turn.whole), self._left, pause]
        limit = min(bound for bound in bounds if bound is not None)
        if limit <= 0:  # its prefix already fills the token limit of a completion
            return self._append(replace(turn, message=self.policy.message(turn.whole, self.tools)), Stop.LENGTH)
        begun = len(turn.whole) if asked.stop else 0
        is_same = (asked.max_tokens, begun) == (limit, 0)
        limited = asked if is_same else replace(asked, max_tokens=limit, num_prefix=begun)
        self._main._promised += limit  # concurrent side conversations share the remaining budget
        try:
            engine = self.policy.engine if tell is None else Told(self.policy.engine, tell)
            with self.policy.busy:
                written = await engine.sample(context, limited, self.key)
        finally:
            self._main._promised -= limit
        whole = self._joined(turn, written)
        if self._turns and not whole.fresh:
            size = len(whole.prompt) + len(whole.tokens)
            self._turns[-1] = read_to_the_end(self._turns[-1], written.aux, size)
        message = self._append(whole, written.stop)
        if written.stop is Stop.LENGTH and len(written.tokens) == pause:
            raise Paused
        return message

    def begin(self, text: str) -> None:
        """Prefill the next completion with this text; it is part of the message and not trained on."""
        self._begin(self.policy.template.encode_completion(text))

    def say(self, message: Message) -> None:
        """Append a turn that the policy did not write: logprob 0, version -1."""
        end = self.policy.template.end
        text, spelled = self.policy.spelled(message)
        tokens = np.append(spelled, end)[: max(self._room, 0)]
        is_whole = len(tokens) > 0 and tokens[-1] == end
        turn = replace(said(self._new_turn(self._asked(None)), tokens), message=replace(message, content=text))
        self._append(turn, Stop.STOP if is_whole else Stop.LENGTH)

    # ---- tokens

    def _asked(self, sampling: Sampling | None) -> Sampling:
        asked = sampling or self.start.sampling or self.policy.sampling
        policy_name = self.policy_name or self.start.policy_name
        return replace(asked, policy_name=policy_name) if policy_name and not asked.policy_name else asked

    def _new_turn(self, asked: Sampling) -> Turn:
        """A turn with its prompt and no written token yet."""
        prompt = np.concatenate([self._unread, self._begins]) if len(self._begins) else self._unread
        nothing = Message("assistant", "")
        given, told = len(self._begins), tuple(self._heard)
        return Turn(
            prompt, _NOTHING, _NO_LOGPROBS, _NOTHING, nothing, asked, self._is_fresh, num_prefix=given, told=told
        )

    def _begin(self, tokens: IntArray) -> None:
        """Insert tokens that no policy wrote: as prefill, or after tokens already sampled."""
        if self._begun is None:
            self._begins = tokens
        elif len(self._begun.tokens):
            self._begun = said(self._begun, tokens)
        else:
            prompt = np.concatenate([self._begun.prompt, tokens])
            self._begun = replace(self._begun, prompt=prompt, num_prefix=self._begun.num_prefix + len(tokens))

    @property
    def _num_written(self) -> int:
        """Written tokens of this conversation without side conversations."""
        turns = [*self._turns, *([self._begun] if self._begun else [])]
        return sum(len(turn.tokens) for turn in turns)

    @property
    def _num_in_all(self) -> int:
        return self._num_written + sum(talk._num_in_all for talk in self._asides)

    @property
    def _left(self) -> int | None:
        """Tokens that the rollout may still write over all contexts; None: no limit."""
        spent = self._main._num_in_all + self._main._promised
        return max(self.limits.tokens - spent, 0) if self.limits.tokens else None

    @property
    def _before_pause(self) -> int | None:
        """Tokens left until this rollout pauses; None: it does not pause."""
        before = sum(len(turn.tokens) for turn in self.start.turns)
        return self.start.pause - (self._num_written - before) if self.start.pause else None

    @property
    def _room(self) -> int:
        """Tokens left in the context."""
        now = [self._begun.prompt, self._begun.tokens] if self._begun else [self._unread, self._begins]
        return self.policy.context - sum(map(len, (*self._before(), *now)))

    def _before(self, number: int | None = None) -> list[IntArray]:
        """Tokens read and written in the current context; with a number, those of the first so many turns."""
        if number is None and (self._is_fresh or (self._begun is not None and self._begun.fresh)):
            return []
        turns = self._turns[:number]
        first = max((index for index, turn in enumerate(turns) if turn.fresh), default=0)
        return [piece for turn in turns[first:] for piece in (turn.prompt, turn.tokens)]

    def _after(self, turn: Turn, messages: Sequence[Message]) -> IntArray:
        """Tokens between a turn and the next completion, if the environment answers with these messages."""
        last = turn.whole
        return self.policy.template.between(int(last[-1]) if len(last) else NOBODY, messages)

    def _append(self, turn: Turn, stop: Stop) -> Message:
        self._turns.append(turn)
        self._heard, self._unread, self._begins, self._begun = [], _NOTHING, _NOTHING, None
        self._is_fresh, self.stop = False, stop
        return turn.message

    def _joined(self, begun: Turn, written: Completion) -> Turn:
        """An unfinished turn and its continuation as one turn; each token keeps its own logprob and version."""
        tokens = np.concatenate([begun.tokens, written.tokens])
        whole = np.concatenate([begun.prefix, tokens]) if begun.num_prefix else tokens
        return replace(
            begun,
            tokens=tokens,
            message=self.policy.message(whole, self.tools),
            logprobs=np.concatenate([begun.logprobs, written.logprobs]),
            versions=np.concatenate([begun.versions, written.versions]),
            aux=extended(begun, written.aux, len(written.tokens)),
        )

    def _is_finished(self, turn: Turn) -> bool:
        """Whether a completion ended by itself: with an end token or a stop string."""
        whole = turn.whole
        is_ended = len(whole) > 0 and int(whole[-1]) in self.policy.template.ends
        return is_ended or any(turn.message.content.endswith(text) for text in turn.sampling.stop)
