"""Only what was said in certain policy names is trained on; what the others said was a look at how things stand
(TRACE).

Papers: trace
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.types import GateResult, Group


@dataclass(frozen=True)
class SpokenBy(Gate):
    """Rollouts in which one of these policy names spoke; a group without any is dropped on purpose."""

    policy_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.policy_names or "" in self.policy_names:
            raise ConfigurationError(
                f"SpokenBy needs at least 1 policy name, each with a name, got {list(self.policy_names)}"
            )

    def __call__(self, group: Group) -> GateResult:
        kept = [a for a in group.scored if any(turn.sampling.policy_name in self.policy_names for turn in a.turns)]
        if not kept:
            return GateResult(None, "none of its rollouts was made to be trained on", is_meant=True)
        return GateResult(replace(group, rollouts=kept))
