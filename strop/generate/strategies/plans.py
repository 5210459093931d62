"""PTA-GRPO's plans (2510.01833): each attempt begins with a plan, and others work it out anew.

Readings: a plan is written once, in the first attempt of its kind, and given to the others; so it is trained once. An
attempt without a plan, or that says nothing behind it, stays alone.
Papers: pta-grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.concurrency import together
from strop.environments.plans import PLANNED
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass
class Plans(Strategy):
    """Every start writes a plan and works it out; `chains` - 1 more attempts work out the same one.

    M starts make up to M * chains attempts.
    """

    chains: int = 3  # attempts of each plan

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.chains < 2:
            raise ConfigurationError(f"Plans needs chains >= 2, or a plan is tried once, got {self.chains}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        roots = await together(play(start) for start in starts)
        ends = [(root, self._end(root)) for root in roots if root.is_scored and len(root.turns) == 1]
        forks = [branch_of(root, end, play.another()) for root, end in ends if end for _ in range(self.chains - 1)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _end(self, root: Trajectory) -> int:
        """Tokens of the plan; 0 where there is none, or nothing behind it."""
        if self._policy is None:
            raise ConfigurationError("Plans does not know how replies are written: call meet(policy) first")
        tokens, template = root.turns[0].tokens, self._policy.template
        at = template.text(tokens).find(PLANNED)
        if at < 0:
            return 0
        size = int((template.places(tokens) <= at + len(PLANNED)).sum())
        return size if size < len(tokens) else 0
