"""R3L's attempts (2601.03715): half of them are first ones; each is reflected on, and tried again from where it failed.

Reading: what a second try is guided by stands before its first turn, behind the task and the last thing that the first
attempt said, also where it goes on from a later one; the release has it there.
Papers: r3l
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.errors import AdviserError, ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.reflections import Reflection, question, read
from strop.generate.strategies.support.ask_policy import OneReply
from strop.generate.strategies.support.rollout_twins import twin
from strop.generate.turn_ops import given
from strop.roles import Adviser, Strategy
from strop.success import is_right
from strop.types import Group, Message, Origin, Sampling, Start, Trajectory


@dataclass(frozen=True)
class _Second:
    """What followed a first attempt."""

    first: Trajectory
    thought: Trajectory | None = None  # its reflection, where the policy wrote it
    retry: Trajectory | None = None  # behind its guidance, as it was sampled
    read: tuple[Message, ...] = ()  # by the retry, in place of the task's


@dataclass(frozen=True)
class ReflectRetry(Strategy):
    """A first attempt, a reflection on it, and unless that finds it good a second one, told as if nobody had helped.

    A second attempt is given the turns before the one it begins with; the fact `pivot` of the first is their number.
    Where it is right, and the first was not or needed more turns, reflection and guided retry are brought, too, as
    groups of one.
    """

    adviser: Adviser | None = None  # who reflects; None: the policy itself
    strips: bool = True  # whether guidance is taken out of what a retry reads, before it is trained
    right: float = 1.0  # reward of a right attempt

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(f"ReflectRetry pairs attempts: need an even number per group, got {len(starts)}")
        firsts = await together(play(start) for start in starts[:half])
        scores = await play.score(firsts)
        asking = [play.another() for _ in firsts]  # ids do not depend on who is done first
        rest = zip(firsts, scores, asking, starts[half:], strict=True)
        seconds = await together(self._second(*each, play) for each in rest)
        again = await play.score([each.retry for each in seconds if each.retry is not None])
        marks = iter(again)
        extra: list[Trajectory] = []
        for second, score in zip(seconds, scores, strict=True):
            if second.retry is not None and self._has_helped(second, score, next(marks)):
                extra += self._extra(second, play)
        retries = [self._told(each, play) for each in seconds if each.retry is not None]
        return [*firsts, *retries, *extra]

    async def _second(
        self, first: Trajectory, score: float | None, asking: Start, start: Start, play: Player
    ) -> _Second:
        if score is None or not first.turns:
            return _Second(first)  # it failed: nobody knows how good it was
        text, thought = await self._reflected(question(first, score), asking, play)
        reflection = read(text, len(first.turns))
        if reflection is None or reflection.is_perfect:
            return _Second(first, thought)
        first.facts["pivot"] = float(reflection.turns)
        messages = _guided(first, reflection)
        begun = replace(start, messages=messages, origin=Origin.GUIDED, parent=first.id)
        if reflection.turns:
            kept = replace(first, turns=given(first.turns[: reflection.turns]))
            begun = replace(begun, turns=play.retold(kept, messages).turns)
        return _Second(first, thought, await play(begun), messages)

    async def _reflected(self, asked: str, start: Start, play: Player) -> tuple[str, Trajectory | None]:
        messages = (Message("user", asked),)
        if self.adviser is not None:
            return await _advised(self.adviser, messages, start.key), None
        thought = await play(replace(start, messages=messages), OneReply())
        return thought.reply, thought

    def _has_helped(self, second: _Second, before: float | None, after: float | None) -> bool:
        assert second.retry is not None
        if before is None or after is None or not is_right(after, self.right):
            return False
        return after > before or len(second.retry.turns) < len(second.first.turns)

    def _told(self, second: _Second, play: Player) -> Trajectory:
        retry = second.retry
        assert retry is not None
        return play.retold(retry, retry.task.messages) if self.strips and retry.turns else retry

    def _extra(self, second: _Second, play: Player) -> list[Trajectory]:
        """The reflection and the retry behind its guidance, each compared with nobody."""
        found = []
        if second.thought is not None:
            thought = second.thought
            found.append(replace(thought, family=f"reflection {thought.id}", facts={"noted": self.right}))
        if self.strips and second.retry is not None:
            again = twin(second.retry, second.read, play)
            found.append(replace(again, family=f"guided {again.id}"))
        return found


async def _advised(adviser: Adviser, messages: Sequence[Message], key: int) -> str:
    """What was said; nothing where nobody answers, which is no reflection."""
    try:
        return await adviser.ask(messages, Sampling(max_tokens=512), key)
    except AdviserError:
        return ""


def _guided(first: Trajectory, reflection: Reflection) -> tuple[Message, ...]:
    tried = Message("assistant", first.reply, is_completion=True)
    return (*first.task.messages, tried, Message("user", reflection.guidance))
