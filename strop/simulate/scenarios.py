"""Scenarios of a simulated learner: kinds of tasks, transfer between them, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError


@dataclass(frozen=True)
class Kind:
    """Tasks of one kind; the success rate is 1 / (1 + exp(-logit))."""

    tasks: int = 64
    skill: float = 0.0  # logit of a middling task at first
    spread: float = 0.5  # of tasks' logits around the kind's: a standard deviation
    tokens: int = 32  # of one rollout
    impossible: float = 0.0  # share of tasks that nobody ever solves
    broken: float = 0.0  # share of tasks whose reward is a coin: contrast that teaches nothing
    is_target: bool = False  # whether held-out accuracy is about this kind

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.tokens < 1 or self.spread < 0:
            raise ConfigurationError(f"a kind needs tasks >= 1, tokens >= 1 and spread >= 0, got {self}")
        if min(self.impossible, self.broken) < 0 or self.impossible + self.broken > 1:
            raise ConfigurationError(f"a kind's impossible and broken shares must fit in 0 to 1, got {self}")


@dataclass(frozen=True)
class Scenario:
    """Kinds in the order of their levels, and the learner's parameters."""

    name: str
    about: str
    kinds: tuple[Kind, ...]
    rate: float = 0.1  # logits that a step of mean gradient 1 moves a kind
    transfer: float = 0.0  # of a step at one kind to its neighbours; its square to theirs, and so on
    memory: float = 0.5  # of a step at one task to that task alone, on top of its kind's
    steps: int = 120  # of the uniform control: what it reaches then is the goal of all
    groups_per_step: int = 16
    group_size: int = 8
    # what makes it harder to see, beside the tasks
    lag: int = 0  # steps between a rollout and what is learned from it, by the policy and by the control parts
    bias: float = 0.0  # all control parts are first shown rollouts of a policy that much worse at the target kinds
    lies: bool = False  # levels are permuted over tasks: they say nothing

    def __post_init__(self) -> None:
        if not any(kind.is_target for kind in self.kinds):
            raise ConfigurationError(
                f"scenario {self.name} needs a kind that is a target, has none of {len(self.kinds)}"
            )
        if not 0 <= self.transfer <= 1 or self.lag < 0 or self.group_size < 2:
            raise ConfigurationError(
                f"scenario {self.name} needs transfer from 0 to 1, lag >= 0 and group_size >= 2, "
                f"got {self.transfer}, {self.lag} and {self.group_size}"
            )

    @property
    def tokens(self) -> int:
        """What the uniform control spends: each level is tried equally often."""
        rollouts = self.steps * self.groups_per_step * self.group_size
        return round(rollouts * sum(kind.tokens for kind in self.kinds) / len(self.kinds))


_COSTS = (10, 14, 18, 23, 28, 35)  # tokens of a rollout of each rung
_RUNGS = tuple(
    Kind(tasks=44, skill=2.7 - 1.4 * level, tokens=cost, is_target=level >= 4) for level, cost in enumerate(_COSTS)
)
_SOLVED, _HOPELESS = Kind(tasks=52, skill=6.0, tokens=16), Kind(tasks=52, tokens=40, impossible=1.0)


def _hopeless(rung: Kind) -> Kind:
    return replace(rung, tasks=22, impossible=1.0, is_target=False)


SCENARIOS = {
    each.name: each
    for each in (
        Scenario(
            "even",
            "one level of even tasks: nothing to choose",
            (Kind(tasks=256, skill=0.4, spread=0.1, is_target=True),),
            rate=0.13,
        ),
        Scenario(
            "spread",
            "one level of tasks that differ: only the choice of single tasks can gain",
            (Kind(tasks=256, skill=-1.4, spread=1.5, is_target=True),),
            rate=0.35,
        ),
        Scenario(
            "haystack",
            "five levels: one useful, two solved, two impossible",
            (_SOLVED, _SOLVED, Kind(tasks=52, skill=-1.4, spread=1.0, is_target=True), _HOPELESS, _HOPELESS),
            rate=0.65,
        ),
        Scenario("ladder", "six levels that lead to each other, the top two count", _RUNGS, rate=0.5, transfer=0.6),
        Scenario(
            "ladder-impossible",
            "the ladder, and as many levels beside it that are impossible",
            (*(replace(rung, tasks=22) for rung in _RUNGS), *(_hopeless(rung) for rung in _RUNGS)),
            rate=0.9,
            transfer=0.6,
        ),
        Scenario(
            "ladder-hidden",
            "the ladder, half of whose tasks are impossible on every level: levels do not tell",
            tuple(replace(rung, impossible=0.5) for rung in _RUNGS),
            rate=0.9,
            transfer=0.6,
        ),
    )
}
