"""Whom strategies and agents deal with: a player of attempts, and a conversation. They are handed over, not chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from strop.types import Message, Sampling, Start, Task, Trajectory, Turn

if TYPE_CHECKING:
    from strop.roles import Agent
    from strop.training.requirements import Note


class Player(Protocol):
    """Plays the attempts of one group; what a strategy composes. Every attempt made has a row in the ledger."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Trajectory:
        """Let the run's agent play the group's task, or another agent, or at another task (to judge, to reflect)."""
        ...

    def another(self, **changes: Any) -> Start:
        """The next attempt's id and random key, with these fields of `Start`."""
        ...

    def apart(self, start: Start) -> Player:
        """The same with ids and keys that go back to this start: searches side by side take none from each other."""
        ...

    async def score(self, attempts: Sequence[Trajectory]) -> list[float | None]:
        """A look at rewards inside a search; None: it failed. Nothing is written down."""
        ...

    async def look(self, attempts: Sequence[Trajectory], needs: frozenset[Note]) -> list[dict[str, NDArray[Any]]]:
        """What the policy thinks of attempts, half-written ones too: the notes of `Trainer.note`."""
        ...

    def retold(self, attempt: Trajectory, messages: Sequence[Message]) -> Trajectory:
        """The same replies as if these messages had been read: sampled with a hint, trained without it (GUIDED)."""
        ...

    def joined(self, pieces: Sequence[Trajectory]) -> Trajectory:
        """Pieces, each of which was given all before it, as one attempt with the last one's id and row.

        Those that were joined to another attempt before stay given.
        """
        ...


class Dialogue(Protocol):
    """One attempt's conversation as tokens; made by `generate/policy.py`, the only code that touches tokens."""

    def hear(self, messages: Sequence[Message]) -> None:
        """Append what the world said."""
        ...

    async def reply(self, sampling: Sampling | None = None) -> Message:
        """Let the policy write its next turn."""
        ...

    def say(self, message: Message) -> None:
        """Append a turn that the policy did not write (a demonstration)."""
        ...

    def restart(self, messages: Sequence[Message], voice: str = "") -> None:
        """The next reply reads these alone: a summary in place of what came before, or another role."""
        ...

    def aside(self, messages: Sequence[Message], voice: str = "") -> Dialogue:
        """Another conversation of the same attempt (a sub-agent), which may go on beside this one."""
        ...

    def beside(self, voice: str = "") -> Dialogue:
        """Another conversation that goes on from where this one stands, having read all of it."""
        ...

    def begin(self, text: str) -> None:
        """The next reply begins with these words, which are given to it."""
        ...

    @property
    def key(self) -> int:
        """Chance that is the agent's own."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those of asides first."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the last reply hit the token limit, the context is full, or no more turns may be spent."""
        ...
