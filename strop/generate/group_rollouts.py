"""Player of a group's rollouts; it records every rollout made, returned by the strategy or not."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

from numpy.typing import NDArray

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.generate.policy import Policy, rollout_key
from strop.generate.rollout import play
from strop.generate.rollout_limits import NO_LIMITS, Limits
from strop.generate.turn_ops import joined
from strop.observe.metrics.stage_tracker import Stages
from strop.roles import Agent, Environment, Player
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Message, Origin, Outcome, Rollout, Start, Task

TokenStatistics: TypeAlias = dict[str, NDArray[Any]]
Look: TypeAlias = Callable[[list[Group], frozenset[PolicyStatistic]], Coroutine[Any, Any, None]]
Score: TypeAlias = Callable[[Group], Coroutine[Any, Any, object]]


@dataclass(eq=False)
class GroupPlayer(Player):
    """`Player` given to a strategy; `policy_statistic` and `scorer` are those of the trainer and the rewards."""

    group: Group
    policy: Policy
    envs: Sequence[Environment]
    agent: Agent
    seed: int
    scorer: Score
    policy_statistic: Look | None = None
    limits: Limits = NO_LIMITS
    seconds: float = 60.0
    stages: Stages = field(default_factory=Stages)
    name: str = ""  # of the group, prefix of its rollouts' ids; empty: the group's number
    keys: list[int] = field(default_factory=list, init=False)  # random keys of all rollouts that may be running
    made: dict[str, Rollout] = field(default_factory=dict, init=False)  # latest state by id
    _count: int = field(default=0, init=False)
    _joined: dict[str, str] = field(default_factory=dict, init=False)  # id of a piece -> id of its joined rollout

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        tried = task or self.group.task
        dialogue = self.policy.dialogue(tried, start, self.limits, self.keys)
        rollout = await play(agent or self.agent, env_of(self.envs, tried), dialogue, self.seconds, self.stages)
        self.made[rollout.id] = rollout
        return rollout

    def another(self, **changes: Any) -> Start:
        id_ = f"{self.name or self.group.number}/{self._count}"
        self._count += 1
        start = Start(id_, rollout_key(self.seed, id_), version=self.group.version)
        self.keys.append(start.key)
        return replace(start, **changes) if changes else start

    def apart(self, start: Start) -> GroupPlayer:
        player = replace(self, name=start.id)
        player.keys, player.made, player._joined = self.keys, self.made, self._joined
        return player

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        copies = [replace(rollout, rewards={}, facts=dict(rollout.facts)) for rollout in rollouts]
        await self.scorer(replace(self.group, rollouts=copies))
        return [None if copy.outcome is Outcome.FAILED else copy for copy in copies]

    async def look(self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]) -> list[TokenStatistics]:
        if self.policy_statistic is None:
            raise ConfigurationError("this strategy needs policy statistics, which only a training run has")
        # an unfinished rollout must count as valid for the trainer to score it
        copies = [replace(rollout, outcome=Outcome.TRUNCATED, policy_statistics={}) for rollout in rollouts]
        await self.policy_statistic([replace(self.group, rollouts=copies)], needs)
        return [copy.policy_statistics for copy in copies]

    def retold(self, rollout: Rollout, messages: Sequence[Message]) -> Rollout:
        turns = self.policy.retold(rollout.turns, messages, rollout.task)
        return replace(rollout, turns=turns, origin=Origin.GUIDED)

    def joined(self, pieces: Sequence[Rollout]) -> Rollout:
        own = [piece for piece in pieces if piece.id not in self._joined]
        if not own:
            raise ValueError(f"{pieces[-1].id} is part of {self._joined[pieces[-1].id]} already")
        turns = own[0].turns
        for before, piece in pairwise(own):
            turns = joined(turns, piece.turns)
            self._joined[before.id] = own[-1].id
            del self.made[before.id]
        whole = replace(own[-1], turns=turns, origin=own[0].origin, parent=self._owner(own[0].parent))
        self.made[whole.id] = whole
        return whole

    def _owner(self, name: str) -> str:
        """Id of the rollout that a piece belongs to."""
        while name in self._joined:
            name = self._joined[name]
        return name

    def unused(self, brought: Sequence[Rollout]) -> list[Rollout]:
        """Rollouts that were made but not returned by the strategy, marked PRUNED."""
        known = {rollout.id for rollout in brought}
        left = [rollout for rollout in self.made.values() if rollout.id not in known]
        made = [replace(each, parent=self._owner(each.parent)) for each in left]
        return [a if a.outcome is Outcome.FAILED else replace(a, outcome=Outcome.PRUNED) for a in made]
