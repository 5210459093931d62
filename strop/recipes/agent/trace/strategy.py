"""TRACE strategy, gate and detection of lacking skills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Gate, Player, Strategy
from strop.types import GateResult, Group, Rollout, Start

# Gate that keeps rollouts of trained policy names only (TRACE); rollouts for labels and probes are dropped.


@dataclass(frozen=True)
class HasPolicy(Gate):
    """Keep rollouts with a turn of one of these policy names; a group without any is dropped on purpose."""

    policy_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.policy_names or "" in self.policy_names:
            raise ConfigurationError(
                f"HasPolicy needs at least 1 policy name, none of them empty, got {list(self.policy_names)}"
            )

    def __call__(self, group: Group) -> GateResult:
        kept = [a for a in group.scored if any(turn.sampling.policy_name in self.policy_names for turn in a.turns)]
        if not kept:
            return GateResult(None, "none of its rollouts is for training", is_meant=True)
        return GateResult(replace(group, rollouts=kept))


# Ranking of capabilities that failed rollouts lack more often than successful ones (TRACE).


@dataclass
class SkillGaps:
    """Counts of failed and successful rollouts, and how many of each lack a capability."""

    seen: list[int] = field(default_factory=lambda: [0, 0])  # failed, successful
    lacking: dict[str, list[int]] = field(default_factory=dict)

    def joined(self, labels: Sequence[tuple[bool, Sequence[str]]]) -> SkillGaps:
        """A copy with further rollouts, each as (is successful, missing capabilities)."""
        found = SkillGaps(**self.state())
        for is_successful, names in labels:
            found.seen[is_successful] += 1
            for name in names:
                found.lacking.setdefault(name, [0, 0])[is_successful] += 1
        return found

    def gap(self, name: str) -> float:
        """The share of failed rollouts that lack it minus that of successful ones; 0 for a share of none."""
        counts = zip(self.lacking.get(name, [0, 0]), self.seen, strict=True)
        failed, successful = (lack / seen if seen else 0.0 for lack, seen in counts)
        return failed - successful

    def ranked(self) -> list[str]:
        """Capabilities with a positive gap, the largest first; ties in alphabetical order."""
        found = [name for name in self.lacking if self.gap(name) > 0]
        return sorted(found, key=lambda name: (-self.gap(name), name))

    def state(self) -> dict[str, Any]:
        return {"seen": list(self.seen), "lacking": {name: list(counts) for name, counts in self.lacking.items()}}


# Strategy that plays each synthetic environment with its own adapter (TRACE, 2604.05336).
#
# `EnginePerPolicy` and `TrainerPerPolicy` map policy names to weights.


@dataclass(frozen=True)
class PolicyPerEnvironment(Strategy):
    """Strategy `inner`, with the policy name that belongs to the task's environment."""

    inner: Strategy
    policy_names: tuple[tuple[str, str], ...]  # (environment name, policy name); others: the start's policy name

    def __post_init__(self) -> None:
        if not self.policy_names or not all(env and policy_name for env, policy_name in self.policy_names):
            raise ConfigurationError(
                f"PolicyPerEnvironment needs pairs of an environment's name and a policy name, got {self.policy_names}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        policy_name = dict(self.policy_names).get(group.task.source, "")
        return await self.inner(
            group, [replace(start, policy_name=policy_name or start.policy_name) for start in starts], play
        )
