"""Parallel-R1's decoding (2509.07980): where the policy opens a block, several paths go on side by side.

Each path is a context of its own that begins with all before it and does not see the others: the paper's structured
mask, by what is read. The summary reads all of them as given. Tags that are forced are given, too, and not trained; the
release trains them.
Papers: parallel-r1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.concurrency import together
from strop.environments.parallel_format import CLOSE_PATH, OPEN_BLOCK, OPEN_PATH, block
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task

STOPS = (OPEN_BLOCK, CLOSE_PATH)


@dataclass(frozen=True)
class ParallelPaths(Agent):
    """One reply of a world, in pieces: up to a block, `paths` paths at once, their summary and on.

    Needs a sampling that stops at what opens a block and at what closes a path (`STOPS`). The world hears the pieces of
    the main stream as one reply, paths included. After `blocks` blocks one that is opened ends the reply.
    """

    paths: int = 2  # of a block
    blocks: int = 4  # of a reply at most

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.paths < 2 or self.blocks < 1:
            raise ConfigurationError(f"ParallelPaths needs paths >= 2 and blocks >= 1, got {self.paths}, {self.blocks}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("ParallelPaths cannot take up an attempt in its middle: give its starts no turns")
        await environment.reset(task)
        pieces = [(await dialogue.reply()).content]
        while len(pieces) <= self.blocks and pieces[-1].endswith(OPEN_BLOCK) and not dialogue.is_cut:
            found = await together(self._path(dialogue.beside()) for _ in range(self.paths))
            dialogue.begin(block(found))
            pieces.append(await _rest(dialogue))
        answer = await environment.step(Message("assistant", "".join(pieces)))
        return () if answer.reward is None else (*[0.0] * (len(dialogue.turns) - 1), answer.reward)

    async def _path(self, path: Dialogue) -> str:
        """What stands between the tags."""
        path.begin(OPEN_PATH)
        return (await _rest(path)).removeprefix(OPEN_PATH).removesuffix(CLOSE_PATH)


async def _rest(dialogue: Dialogue) -> str:
    """The next reply; nothing where there is no room for one."""
    return "" if dialogue.is_cut else (await dialogue.reply()).content
