"""Tools in a world whose demonstrations look some answers up though they have just said them.

It is what a policy must have learned before a reward can take it away again (SEM, 2505.07903): demonstrations that
call a tool only where it is needed leave no needless call to be punished.
Papers: sem
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import demonstrating
from strop.environments.tools.toolbox import Toolbox, ToolboxEnvironment, calling
from strop.errors import ConfigurationError
from strop.types import Message

_DIGITS = 8  # of a task's id, which is a hash: the share is the same whenever and in whatever order tasks are shown


@dataclass(frozen=True)
class Rechecked(Toolbox):
    """A `share` of the demonstrations answers, calls the first tool with the question, and answers again."""

    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Rechecked needs a share from 0 to 1, got {self.share:g}")

    def environment(self) -> RecheckedEnvironment:
        return RecheckedEnvironment(self.inner.environment(), self.tools, self.longest, self.seconds, share=self.share)


@dataclass
class RecheckedEnvironment(ToolboxEnvironment):
    """Its tools and its world as they are; only what is shown differs."""

    share: float = 0.5

    def demonstrate(self) -> Message:
        shown = demonstrating(
            self.inner
        ).demonstrate()  # with its working each time: small models find it again by that
        if self.heard or int(self.task.id[:_DIGITS], 16) >= self.share * 16**_DIGITS:
            return shown
        return calling(self.tools[0], shown.content, query=prompt_of(self.task))
