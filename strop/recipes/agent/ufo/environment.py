"""Retry environment wrapper (UFO, 2507.14295): a wrong answer is followed by "try again", without other feedback."""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.environments.format.demonstrations import demonstrating
from strop.environments.single_turn import SingleCompletion
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Episode
from strop.types import Message, Observation, Task

SPARE_COMPLETIONS = 3  # without an answer, in one rollout
_WRONG = Message("user", "wrong, try again")


@dataclass(frozen=True)
class TryAgain(Around):
    """Environment with up to `tries` answers per episode; it ends at the first right one, which earns 1 whenever it
    comes.

    A completion without an answer is not counted as a try. There is no feedback after the last wrong answer.
    """

    tries: int = 5  # answers of one rollout

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ConfigurationError(f"TryAgain needs tries >= 1, got {self.tries}")
        if not isinstance(self.inner.episode(), SingleCompletion) or not self.inner.pays:
            raise ConfigurationError(
                f"TryAgain needs an environment of one completion that judges it, not {self.inner.name}"
            )

    def episode(self) -> Episode:
        return _Trying(self, self.inner.episode())


@dataclass
class _Trying(Episode):
    """Episode with retries."""

    env: TryAgain
    inner: Episode
    answers: int = field(default=0, init=False)
    completions: int = field(default=0, init=False)

    async def reset(self, task: Task) -> None:
        self.answers = self.completions = 0
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        seen = await self.inner.step(completion)
        self.completions += 1
        self.answers += self.env.answer(completion.content) != ""
        is_last = self.answers >= self.env.tries or self.completions >= self.env.tries + SPARE_COMPLETIONS
        done = seen.reward == 1.0 or is_last
        return Observation(() if done else (_WRONG,), done, seen.reward)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()
