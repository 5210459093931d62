"""In some environments another policy name speaks than the policy's own: one adapter for each synthetic environment
(TRACE, 2604.05336).

Whose weights a policy name has, `EnginePerPolicy` and `TrainerPerPolicy` say.
Papers: trace
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class PolicyPerEnvironment(Strategy):
    """What `inner` does, begun in the policy name of the task's environment."""

    inner: Strategy
    policy_names: tuple[
        tuple[str, str], ...
    ]  # the name of an environment, and who speaks there; elsewhere the policy does

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
