"""OpenClaw-RL's directive signal (2603.10165): how much likelier a reply were, had a hint been read that came too late.

Papers: openclaw-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.capabilities import Meets
from strop.errors import AdviserError, ConfigurationError
from strop.filter.judges.batch_ask import all_of
from strop.filter.next_states import asked, chosen_hint, next_states
from strop.generate.chat_template import Template
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.turn_ops import noted
from strop.roles import Adviser, Strategy
from strop.training.requirements import LOGPROBS
from strop.types import FloatArray, Group, IntArray, Message, Start, Trajectory

GAP = "hint_gap"


@dataclass
class HindsightHints(Strategy, Meets):
    """Notes log p(token | with the hint) - log p(token | as it was) at each token of a reply for which there is a hint.

    A judge reads a reply and what was said after it; its hint is put behind the last thing that was read before the
    reply, and the policy itself scores the tokens that it wrote, both ways. No hint: no note, which is not a gap of 0
    logprobs but no teacher at all.
    """

    inner: Strategy
    judge: Adviser
    votes: int = 1  # asked for each reply

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"HindsightHints needs votes >= 1, got {self.votes}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        brought = await self.inner(group, starts, play)
        return [await self._taught(attempt, play) for attempt in brought]

    async def _taught(self, attempt: Trajectory, play: Player) -> Trajectory:
        hints = await self._hints(attempt) if attempt.is_scored else {}
        retold = {number: self._behind(attempt, number, hint) for number, hint in hints.items()}
        found = {number: told for number, told in retold.items() if told is not None}
        attempt.facts["hints"] = float(len(found))
        if not found:
            return attempt
        own, *taught = await play.look([attempt, *found.values()], frozenset({LOGPROBS}))
        gaps = np.zeros(attempt.num_tokens, np.float32)
        ends = np.cumsum([0, *(len(turn.tokens) for turn in attempt.turns)])
        for number, notes in zip(found, taught, strict=True):
            low, high = ends[number], ends[number + 1]
            gaps[low:high] = gap(notes[LOGPROBS.name], own[LOGPROBS.name][low:high])
        attempt.turns = noted(attempt.turns, GAP, gaps)
        return attempt

    async def _hints(self, attempt: Trajectory) -> dict[int, str]:
        """By the number of the turn."""
        found = {}
        for number, state in enumerate(next_states(attempt)):
            if state and len(attempt.turns[number].tokens):
                found[number] = await self._hint(attempt, number)
        return {number: hint for number, hint in found.items() if hint}

    async def _hint(self, attempt: Trajectory, number: int) -> str:
        """Empty: none, or nobody could be asked."""
        try:
            said = await all_of(asked(self.judge, "hint", attempt, number, vote) for vote in range(self.votes))
        except AdviserError:
            return ""
        return chosen_hint(said)

    def _behind(self, attempt: Trajectory, number: int, hint: str) -> Trajectory | None:
        """The turn alone, behind its whole context with the hint in it; None where there is no place for it."""
        if self._policy is None:
            raise ConfigurationError("HindsightHints has met no policy: it works within a run only")
        turn = attempt.turns[number]
        first = max(place for place in range(number + 1) if place == 0 or attempt.turns[place].fresh)
        before = [piece for each in attempt.turns[first:number] for piece in (each.prompt, each.tokens)]
        prompt = with_hint(self._policy.template, turn.prompt, hint)
        if prompt is None or turn.given:
            return None
        whole = np.concatenate([*before, prompt])
        if len(whole) + len(turn.tokens) > self._policy.context:
            return None
        return replace(attempt, id=f"{attempt.id}~{number}", turns=(replace(turn, prompt=whole, aux={}, fresh=True),))


def with_hint(template: Template, prompt: IntArray, hint: str) -> IntArray | None:
    """What was read, with a hint at the end of its last message; token for token as it was besides."""
    one, other = (template.opening((Message("user", text),), ()) for text in ("1", "2"))
    size = next(count for count in range(len(one)) if one[len(one) - 1 - count] != other[len(other) - 1 - count])
    closing = one[len(one) - size :]  # what a template puts between a message and the reply
    if size == 0 or len(prompt) <= size or not np.array_equal(prompt[-size:], closing):
        return None
    return np.concatenate([prompt[:-size], template.encode(f" {hint}"), closing])


def gap(taught: FloatArray, own: FloatArray) -> FloatArray:
    """[N]; logprobs that are missing are no probabilities of 1."""
    if len(taught) != len(own):
        raise ConfigurationError(f"a teacher must score every token of a reply: got {len(taught)} for {len(own)}")
    return np.asarray(taught - own, dtype=np.float32)
