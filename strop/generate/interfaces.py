"""Whom strategies and agents deal with: a player of rollouts, and a conversation. They are handed over, not chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from strop.types import Message, Rollout, Sampling, Start, Task, Turn

if TYPE_CHECKING:
    from strop.roles import Agent
    from strop.training.requirements import PolicyStatistic


class Player(Protocol):
    """Plays the rollouts of one group; what a strategy composes. Every rollout made has a row in the ledger."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        """Let the run's agent play the group's task, or another agent, or at another task (to judge, to reflect)."""
        ...

    def another(self, **changes: Any) -> Start:
        """The next rollout's id and random key, with these fields of `Start`."""
        ...

    def apart(self, start: Start) -> Player:
        """The same with ids and keys that go back to this start: searches side by side take none from each other."""
        ...

    async def score(self, rollouts: Sequence[Rollout]) -> list[float | None]:
        """A look at rewards inside a search; None: it failed. Nothing is written down."""
        ...

    async def look(
        self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]
    ) -> list[dict[str, NDArray[Any]]]:
        """What the policy thinks of rollouts, half-written ones too: the policy statistics of
        `Trainer.policy_statistic`.
        """
        ...

    def retold(self, rollout: Rollout, messages: Sequence[Message]) -> Rollout:
        """The same completions as if these messages had been read: sampled with a hint, trained without it (GUIDED)."""
        ...

    def joined(self, pieces: Sequence[Rollout]) -> Rollout:
        """Pieces, each of which was given all before it, as one rollout with the last one's id and row.

        Those that were joined to another rollout before stay given.
        """
        ...


class Dialogue(Protocol):
    """One rollout's conversation as tokens; made by `generate/policy.py`, the only code that touches tokens."""

    def hear(self, messages: Sequence[Message]) -> None:
        """Append what the environment said."""
        ...

    async def completion(self, sampling: Sampling | None = None) -> Message:
        """Let the policy write its next turn."""
        ...

    def say(self, message: Message) -> None:
        """Append a turn that the policy did not write (a demonstration)."""
        ...

    def restart(self, messages: Sequence[Message], policy_name: str = "") -> None:
        """The next completion reads these alone: a summary in place of what came before, or another role."""
        ...

    def aside(self, messages: Sequence[Message], policy_name: str = "") -> Dialogue:
        """Another conversation of the same rollout (a sub-agent), which may go on beside this one."""
        ...

    def beside(self, policy_name: str = "") -> Dialogue:
        """Another conversation that goes on from where this one stands, having read all of it."""
        ...

    def begin(self, text: str) -> None:
        """The next completion begins with these words, which are given to it."""
        ...

    @property
    def key(self) -> int:
        """Probability that is the agent's own."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those of asides first."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the last completion hit the token limit, the context is full, or no more turns may be spent."""
        ...
