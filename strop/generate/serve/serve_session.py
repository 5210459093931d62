"""Rollout driven by an external client: requests become turns of its contexts, each exactly once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.backends import Stop
from strop.errors import EpisodeError
from strop.generate.conversation import Talk
from strop.generate.serve.ask_requests import Ask, Refusal, ServedCompletion
from strop.generate.serve.turn_tree import Histories, Place
from strop.generate.templates.tool_call_format import CallFormat, Parts
from strop.types import IntArray, Message, Observation, Sampling, Tool

_LEAST = 1e-6  # of the mass of a nucleus: one of nothing would leave no token
Tell = Callable[[Parts], None]


@dataclass
class Served:
    """Outcome of a rollout's requests."""

    turns: int = 0
    contexts: int = 0  # opened because no completion of the request was known
    branches: int = 0  # that went on from an earlier completion, or beside one under way
    repaired: int = 0  # completions that came back in other words, and were known by their ids
    retried: int = 0  # requests that were answered with what had been written already
    ill_formed: int = 0  # completions with a call that could not be read
    refused: int = 0  # steps and payments that the episode did not accept: after its end, or beside another one


@dataclass(eq=False)
class Visit:
    """Session that answers requests with completions of the policy; with `is_free` a request sets its sampling."""

    main: Talk
    format: CallFormat | None
    is_free: bool = False
    served: Served = field(default_factory=Served, init=False)
    is_sealed: bool = field(default=False, init=False)
    hears_reward: bool = field(default=False, init=False)
    reward: float | None = field(default=None, init=False)  # told once by the client's program, where that is asked
    step: Callable[[Message], Awaitable[Observation]] | None = field(
        default=None, init=False
    )  # what the environment answers
    _histories: Histories = field(default_factory=Histories, init=False)
    _ends: dict[int, tuple[Talk, int]] = field(default_factory=dict, init=False)  # talks, and completions asked of each
    _answers: dict[str, asyncio.Future[ServedCompletion]] = field(default_factory=dict, init=False)  # by request
    _running: set[Talk] = field(default_factory=set, init=False)
    _steps: set[asyncio.Future[Observation]] = field(default_factory=set, init=False)  # that are not answered yet

    def known(self, body: bytes) -> asyncio.Future[ServedCompletion] | None:
        """What was written for the same request, or is being written: the answer to one that is sent again."""
        found = self._answers.get(_digest(body))
        self.served.retried += found is not None
        return found

    def begun(self, body: bytes, ask: Ask, name: str, tell: Tell | None = None) -> asyncio.Future[ServedCompletion]:
        """The answer to a request, which is written to its end even if the client goes away."""
        digest = _digest(body)
        answer = self._answers[digest] = asyncio.ensure_future(self.answer(ask, name, tell))
        answer.add_done_callback(lambda done: self._forget(digest, done))
        return answer

    def another_name(self) -> str:
        """For the next turn: the same in every run of the same rollout, as long as its requests come in one order."""
        self.served.turns += 1
        return f"{_digest(self.main.start.id.encode())[:12]}n{self.served.turns}"

    async def answer(self, ask: Ask, name: str, tell: Tell | None = None) -> ServedCompletion:
        """Let the policy write the next turn of the context that the request goes on from."""
        if self.is_sealed:
            raise Refusal(409, "this rollout has ended: nothing more can be asked in it")
        place = self._place(ask)
        talk, number = self._talk(place, ask)
        if talk.is_full:
            raise Refusal(400, f"this conversation is used up: {talk.used}; send less, or begin another")
        written = list[IntArray]()

        def hear(tokens: IntArray) -> None:
            written.append(tokens)
            if tell is not None:
                tell(self._parts(np.concatenate(written), ask.tools))

        sampling = self._sampling(ask)
        self._running.add(talk)
        try:
            await talk.completion(sampling, hear if tell is not None else None)
        finally:
            self._running.discard(talk)
        completion = self._completion(talk, name, ask)
        self._histories.add(place, ask.tools, talk, number, completion)
        self.served.repaired += place.repaired
        self.served.ill_formed += completion.is_ill_formed
        return completion

    async def act(self, completion: Message) -> Observation:
        """What the episode answers to a completion, to its end even if the client goes away."""
        if self.step is None or self.is_sealed:
            raise self._refused("this rollout has no episode that answers now")
        step = asyncio.ensure_future(self.step(completion))
        self._steps.add(step)
        step.add_done_callback(self._steps.discard)
        try:
            return await asyncio.shield(step)
        except EpisodeError as error:
            raise self._refused(str(error)) from error

    def pay(self, reward: float) -> None:
        """What the program says that it earned: once, and final."""
        if self.is_sealed or not self.hears_reward:
            raise self._refused("nobody asks here what this rollout earned, or it has ended")
        if self.reward is not None:
            raise self._refused(f"this rollout was paid {self.reward:g} already, and that is final")
        self.reward = reward

    def _refused(self, why: str) -> Refusal:
        self.served.refused += 1
        return Refusal(409, why)

    async def close(self) -> None:
        """Nothing more is answered; what is being written ends where it stands, and is kept."""
        self.is_sealed = True
        for talk in self._running:
            talk.policy.engine.abort(talk.key)
        await asyncio.gather(*(each for each in self._answers.values() if not each.done()), return_exceptions=True)

    async def settled(self) -> None:
        """Steps that were accepted are answered, though nobody may hear it any more."""
        await asyncio.gather(*self._steps, return_exceptions=True)

    def num_unsure(self, ask: Ask) -> int:
        """Characters at the end of what is written that may turn out to begin a call, or what ends the completion."""
        marker = self.format.opens if self.format and ask.tools else ""
        return max((len(each) for each in (*ask.stop, marker)), default=0)

    def count(self, ask: Ask) -> int:
        """Tokens that the policy would read."""
        messages = [each.message for each in ask.said]
        return len(self.main.policy.template.opening(messages, ask.tools))

    def _place(self, ask: Ask) -> Place:
        if not ask.said or ask.said[-1].message.role == "assistant":
            raise Refusal(400, "the last message must be a user, tool or system message, not the assistant's own")
        place = self._histories.find(ask.said, ask.tools, ask.after)
        if ask.after and place.node is None:
            raise Refusal(404, f"no answer {ask.after} was given in this rollout")
        return place

    def _talk(self, place: Place, ask: Ask) -> tuple[Talk, int]:
        """The conversation that completions, and the number of its next turn."""
        node = place.node
        if node is None or node.talk is None:
            talk, number = self._opened(place.unheard, ask.tools, ask.seed), 0
        elif self._ends[id(node.talk)][1] == node.number + 1:
            talk, number = node.talk, node.number + 1
            talk.hear(place.unheard)
        else:
            talk, number = node.talk.otherwise(node.number, place.unheard), 0
            self.served.branches += 1
        self._ends[id(talk)] = (talk, number + 1)
        return talk, number

    def _opened(self, messages: Sequence[Message], tools: Sequence[Tool], seed: int | None) -> Talk:
        """The first context is the rollout's own; others stand beside it."""
        self.served.contexts += 1
        if self.is_free and seed is not None:
            self.main.start = replace(self.main.start, key=self.main.policy.derived_key(seed, "asked"))
        if self._ends:
            return self.main.aside(messages, tools=tools)
        if (tuple(messages), tuple(tools)) != (self.main.task.messages, self.main.task.tools):
            self.main.restart(messages, tools=tools)
        return self.main

    def _sampling(self, ask: Ask) -> Sampling:
        own = self.main.start.sampling or self.main.policy.sampling
        most = min(own.max_tokens, ask.max_tokens) if ask.max_tokens else own.max_tokens
        asked = replace(own, max_tokens=most, stop=(*own.stop, *ask.stop))
        if not self.is_free:
            return asked
        temperature = own.temperature if ask.temperature is None else ask.temperature
        top_p = own.top_p if ask.top_p is None else max(ask.top_p, _LEAST)
        return replace(asked, temperature=temperature, top_p=top_p, top_k=ask.top_k or own.top_k)

    def _parts(self, tokens: IntArray, tools: Sequence[Tool]) -> Parts:
        if self.format is None:
            return Parts(text=self.main.policy.template.text(tokens))
        return self.format.read(tokens, tools)

    def _completion(self, talk: Talk, name: str, ask: Ask) -> ServedCompletion:
        turn = talk.last
        parts = self._parts(turn.whole, ask.tools)
        text, is_ill = parts.text + parts.unclosed, parts.is_ill_formed or bool(parts.unclosed)
        for ending in turn.sampling.stop if talk.stop is Stop.STOP else ():
            text = text.removesuffix(ending)  # clients do not want to see what ended it; the tokens keep it
        return ServedCompletion(
            name, text, parts.thought, parts.calls, talk.stop, is_ill, talk.num_read, len(turn.tokens)
        )

    def _forget(self, name: str, done: asyncio.Future[ServedCompletion]) -> None:
        """A request that failed may be tried again."""
        if done.cancelled() or done.exception() is not None:
            self._answers.pop(name, None)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
