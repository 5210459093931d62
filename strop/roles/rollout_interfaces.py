"""Interfaces passed to strategies and agents: `Player` of rollouts and `Dialogue` of one rollout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from strop.types import Message, Rollout, Sampling, Start, Task, Turn

if TYPE_CHECKING:
    from strop.roles import Agent
    from strop.training.requirements import PolicyStatistic


class Player(Protocol):
    """Player of the rollouts of one group. Every rollout gets a row in the ledger."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        """Run one rollout, by default with the run's agent on the group's task."""
        ...

    def another(self, **changes: Any) -> Start:
        """A new start with the next rollout id and random key and with these fields changed."""
        ...

    def apart(self, start: Start) -> Player:
        """A player whose ids and keys derive from this start, so that concurrent searches do not share a counter."""
        ...

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        """Scored copies of rollouts, during a search; None: the reward failed. Nothing is recorded."""
        ...

    async def look(
        self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]
    ) -> list[dict[str, NDArray[Any]]]:
        """Policy statistics of finished or unfinished rollouts, see `Trainer.policy_statistic`."""
        ...

    def retold(self, rollout: Rollout, messages: Sequence[Message]) -> Rollout:
        """The same completions after another prompt, e.g. sampled with a hint and trained without it (GUIDED)."""
        ...

    def joined(self, pieces: Sequence[Rollout]) -> Rollout:
        """One rollout from pieces, each continued from all before it; it has the id and ledger row of the last piece.

        Tokens of pieces that belong to another joined rollout stay a prefix.
        """
        ...


class Dialogue(Protocol):
    """Conversation of one rollout as tokens; created by `Policy`, which does all tokenization."""

    def hear(self, messages: Sequence[Message]) -> None:
        """Append messages of the environment."""
        ...

    async def completion(self, sampling: Sampling | None = None) -> Message:
        """Sample the policy's next turn."""
        ...

    def say(self, message: Message) -> None:
        """Append a turn that the policy did not write (a demonstration)."""
        ...

    def restart(self, messages: Sequence[Message], policy_name: str = "") -> None:
        """Start a new context from these messages alone, e.g. a summary of the last context or another role."""
        ...

    def aside(self, messages: Sequence[Message], policy_name: str = "") -> Dialogue:
        """Side conversation of the same rollout (a sub-agent); it may run concurrently with this one."""
        ...

    def beside(self, policy_name: str = "") -> Dialogue:
        """Fork of this conversation: it continues from all tokens read and written so far."""
        ...

    def begin(self, text: str) -> None:
        """Prefill the next completion with this text."""
        ...

    @property
    def key(self) -> int:
        """Random key of the current context, for random choices of the agent."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, those of side conversations first."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the last completion hit the token limit, the context is full, or no turns are left."""
        ...
