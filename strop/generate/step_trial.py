"""Attribution of a timeout, memory or stack overflow in an environment step: to the completion, or to the environment.

Fresh episodes of the same task receive harmless completions: one replaces the last completion only, one replaces all,
since earlier completions may be the cause. If the environment answers either within half the deadline, and the suspect
completion exhausts it again, the completions are at fault: the rollout ends with no more reward than the harmless ones
earned. Otherwise the environment is. Rewards have the same test: `filter/overruns.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from strop.types import Message, Observation

_HARMLESS = ("I do not know.", "", "0")
_CONTROL_SHARE = 0.5  # of the deadline: an environment that is slow with everything is not cleared by a hair


class Spent(Exception):  # noqa: N818 (an event, never shown as an error)
    """Timeout, memory or stack overflow in an episode of a trial."""


class Unanswered(Exception):  # noqa: N818 (an event, never shown as an error)
    """Any other failure in an episode of a trial."""


Ask: TypeAlias = Callable[[Message, float], Awaitable[Observation]]  # raises `Spent` or `Unanswered`
Fresh: TypeAlias = Callable[[], AbstractAsyncContextManager[Ask]]


@dataclass(frozen=True)
class Guilty:
    """Exhaustion caused by the completions, with the reward of the last step if the environment gives rewards."""

    worth: float | None


@dataclass(frozen=True)
class StepTrial:
    """Trial of the last completion; `fresh` opens another episode of the task."""

    fresh: Fresh
    seconds: float

    async def judged(self, said: Sequence[Message], seen: Sequence[Observation]) -> Guilty | Observation | None:
        """Guilty, the end of the episode after all, or None: the environment is at fault, or nothing is proven.

        `seen`: its answers to all completions but the last.
        """
        beside = await self._controls(lambda text: [*said[:-1], text], len(said))
        alone = await self._controls(lambda text: [text] * len(said), 0)
        if not beside and max(map(len, alone), default=0) < len(said):
            return None
        try:
            again = await self._answers(said)
        except Spent:
            return Guilty(_least([answers[-1].reward for answers in beside] + [_rest(each, seen) for each in alone]))
        except Unanswered:
            return None
        return again[-1] if again[-1].done and all(map(_is_same, seen, again)) else None

    async def _controls(self, words: Callable[[Message], Sequence[Message]], turns: int) -> list[list[Observation]]:
        """Answers to each harmless completion that the environment takes; none where it hangs with one.

        Those that ended before so many turns are left out.
        """
        found = list[list[Observation]]()
        for text in _HARMLESS:
            try:
                answers = await self._answers(words(Message("assistant", text)), _CONTROL_SHARE)
            except Spent:
                return []
            except Unanswered:
                continue
            found += [answers] if len(answers) >= turns else []
        return found

    async def _answers(self, words: Sequence[Message], share: float = 1.0) -> list[Observation]:
        """Of one episode, until it ends; the last within a share of the deadline."""
        answers = list[Observation]()
        async with self.fresh() as ask:
            for message in words:
                is_last = len(answers) == len(words) - 1
                answers.append(await ask(message, self.seconds * (share if is_last else 1.0)))
                if answers[-1].done:
                    break
        return answers


def _rest(answers: Sequence[Observation], seen: Sequence[Observation]) -> float | None:
    """What the last step may earn, so that the rollout earns no more in all than these answers paid."""
    paid = [answer.reward for answer in answers if answer.reward is not None]
    return sum(paid) - sum(answer.reward or 0.0 for answer in seen) if paid else None


def _least(worths: Sequence[float | None]) -> float | None:
    return min((worth for worth in worths if worth is not None), default=None)


def _is_same(one: Observation, other: Observation) -> bool:
    return (one.messages, one.done, one.reward) == (other.messages, other.done, other.reward)
