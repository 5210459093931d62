"""SEELE's hints (2509.06923): how much of the solution is shown follows from how often earlier rounds were right.

Readings: the working's first steps begin the reply and are said by nobody (version -1), so that they can be imitated.
Accuracies are those of this group's rounds, by the share that was really shown; a task that comes back begins where its
last round was. Groups may be seen late: of two, the one of newer weights and the higher number is the last.
Papers: seele
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from strop.concurrency import together
from strop.environments.format.hints import beginnings, without_hints
from strop.environments.format.think_tags import OPEN
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.item_response import fitted
from strop.generate.policy import Policy
from strop.generate.turn_ops import unwritten
from strop.roles import Strategy, World
from strop.success import success
from strop.types import Group, Metrics, Origin, Start, Task, Trajectory, Turn

if TYPE_CHECKING:
    from strop.run import Run

HINT = "hint"  # the fact of what share of the working an attempt was shown
_KNOWN = 65536  # tasks whose last share is remembered, the last ones


@dataclass
class ResponsiveHints(Strategy):
    """Each wave is shown round(p * n) of the n steps, p so that the curve through earlier waves says `target`.

    The first wave of a new task is shown all steps but one.
    """

    worlds: tuple[World, ...]
    target: float = 0.5  # accuracy that is aimed at
    opens: str = OPEN  # what stands before the first step

    # by task: version and number of the group it was last tried in, and the share of its last wave
    _last: dict[str, tuple[int, int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ConfigurationError(f"ResponsiveHints needs a target between 0 and 1, got {self.target}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    def problems(self, run: Run) -> list[str]:
        return without_hints(self.worlds)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        steps = beginnings(self.worlds, group.task)
        count = round(self.share(group, len(steps)) * len(steps))
        if not count:
            return await together(play(start) for start in starts)
        turn, shown = self._begun(group.task, self.opens + steps[count - 1]), count / len(steps)
        begun = [replace(start, turns=(turn,), origin=Origin.GUIDED) for start in starts]
        return await together(_shown(start, shown, play) for start in begun)

    def share(self, group: Group, num_steps: int) -> float:
        """Of the working, for the next wave."""
        if points := _points(group):
            return fitted(points).share(self.target)
        if group.task.id in self._last:
            return self._last[group.task.id][2]
        return max(num_steps - 1, 0) / max(num_steps, 1)

    def observe(self, group: Group) -> None:
        """Remember where the last wave of a task was."""
        if not group.trajectories:
            return
        told = (group.version, group.number, group.trajectories[-1].facts.get(HINT, 0.0))
        self._last[group.task.id] = max(told, self._last.pop(group.task.id, told))
        if len(self._last) > _KNOWN:
            del self._last[next(iter(self._last))]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What share of the working attempts were shown, and how far their groups are from the target."""
        shown = [attempt.facts.get(HINT, 0.0) for group in groups for attempt in group.scored]
        right = [success(attempt) for group in groups for attempt in group.scored]
        count = max(len(shown), 1)
        return {"hint_share": sum(shown) / count, "hint_off_target": abs(sum(right) / count - self.target)}

    def state(self) -> dict[str, Any]:
        return {"last": {name: list(told) for name, told in self._last.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._last = {name: (int(at), int(number), float(share)) for name, (at, number, share) in state["last"].items()}

    def _begun(self, task: Task, text: str) -> Turn:
        """A reply that begins with this text, said by nobody."""
        if self._policy is None:
            raise ConfigurationError("ResponsiveHints does not know how replies are written: call meet(policy) first")
        policy = self._policy
        tokens, opening = policy.template.encode_reply(text), policy.opening(task.messages, task)
        room = min(policy.sampling.max_tokens, policy.context - len(opening))
        if len(tokens) >= room:
            raise ConfigurationError(
                f"task {task.id}: its hint has {len(tokens)} tokens, and max_tokens={policy.sampling.max_tokens} and "
                f"context={policy.context} leave room for {room}: need at least {len(tokens) + 1}"
            )
        return unwritten(opening, tokens, policy.sampling)


async def _shown(start: Start, share: float, play: Player) -> Trajectory:
    attempt = await play(start)
    return replace(attempt, facts=attempt.facts | {HINT: share})


def _points(group: Group) -> list[tuple[float, float, float]]:
    """Share, accuracy and number of the attempts that were shown so much."""
    found: dict[float, list[float]] = {}
    for attempt in group.scored:
        found.setdefault(attempt.facts.get(HINT, 0.0), []).append(success(attempt))
    return [(share, sum(right) / len(right), float(len(right))) for share, right in sorted(found.items())]
