"""Environment wrapper that offers help (2502.04576): the completion `help` lets an expert take the next step.

Reading: an intervention is the environment's own right completion, told and carried out; it costs the turn in which it
    was asked.
Papers: self-regulation
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Episode
from strop.types import Message, Observation, Task

HELP = "help"


def asks(completion: Message) -> bool:
    """Whether a completion asks for help, and for nothing else."""
    return completion.content.strip() == HELP


@dataclass(frozen=True)
class HelpOffered(Around):
    """Environment `inner` with at most `most` expert steps per episode, whatever the policy plans to spend."""

    most: int = 3  # helps of a rollout

    def __post_init__(self) -> None:
        if self.most < 0:
            raise ConfigurationError(f"HelpOffered needs most >= 0, got {self.most}")

    def episode(self) -> Helping:
        inner = self.inner.episode()
        demonstrating(inner)  # or there is nobody to help
        return Helping(inner, self.most)


@dataclass
class Helping(Episode):
    """Episode with help; the observation first shows the expert's action, then the environment's response to it."""

    inner: Episode
    left: int = 3
    _most: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._most = self.left

    async def reset(self, task: Task) -> None:
        self.left = self._most
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        if not asks(completion):
            return await self.inner.step(completion)
        if self.left <= 0:
            return Observation((Message("tool", "error: no help is left"),), done=False, reward=0.0)
        self.left -= 1
        shown = self.demonstrate()
        answer = await self.inner.step(shown)
        return Observation((Message("tool", shown.content), *answer.messages), answer.done, answer.reward)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()
