"""SEELE: GRPO with solution prefixes whose length is fitted per task to a target accuracy of 50 %.

Title: Staying in the Sweet Spot: Responsive Reasoning Evolution via Capability-Adaptive Hint Scaffolding
Paper: arXiv 2509.06923 (2025)
Claim: 11.8 points above GRPO and 10.5 above supervised training on average, over six mathematics benchmarks.
Reading: A group is 4 rounds of group_size rollouts (8 in the paper; 4 here, with solutions of 2 or 3 steps). The hint
    is a prefix of the completion: it is imitated with weight 0.001, and only sampled tokens are reinforced. After each
    round an item response curve is fitted to the accuracies of this group's rounds and inverted at 50 %. Fits of few
    points are regularized towards a typical curve. A task with a higher accuracy without a hint gets none. All rollouts
    of a group are normalized together. Tasks are repeated: a pool of 64 per environment. The number of optimizer steps
    per batch was not found: one. Hint tokens count in the mean over tokens.
Acts: hint_share > 0 and said/nll > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.control.budgets.waves import InWaves
from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.environments.format.hints import beginnings
from strop.environments.format.think_tags import OPEN
from strop.environments.needs import SOLUTIONS, EnvNeed
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.turn_ops import unwritten
from strop.recipes.setting import Setting
from strop.roles import Environment, Player, Strategy
from strop.run import Run
from strop.success import success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood
from strop.types import Group, Metrics, Origin, Rollout, Start, Task, Turn

# Accuracy as a function of the share of the solution that is shown: an item response curve and its fit.

_STEEPNESS, _EASE = (1.0, 64.0), (-1.5, 0.5)  # ranges of the fit
_TYPICAL = (8.0, -0.5)  # steepness and ease of an unknown task: 50 % accuracy with half of the solution
_MOST_GUESSED = 0.9
_REGULARIZER = 1e-4  # weight of the squared distance from the typical curve, relative to squared errors
_GRID, _ZOOMS = 33, 5


@dataclass(frozen=True)
class HintCurve:
    """Item response curve f(p) = guess + (1 - guess) / (1 + exp(-steepness * (p + ease)))."""

    steepness: float
    ease: float
    guess: float = 0.0

    def __call__(self, share: float) -> float:
        return self.guess + (1 - self.guess) / (1 + math.exp(-self.steepness * (share + self.ease)))

    def place(self, accuracy: float) -> float:
        """The share with this accuracy, unbounded; minus infinity if the accuracy is always higher."""
        if accuracy <= self.guess:
            return -math.inf
        odds = (1 - self.guess) / (accuracy - self.guess) - 1
        return -self.ease - math.log(odds) / self.steepness

    def share(self, accuracy: float) -> float:
        """The share with this accuracy, clamped to [0, 1]."""
        return min(max(self.place(accuracy), 0.0), 1.0)


def fitted(points: Sequence[tuple[float, float, float]]) -> HintCurve:
    """The regularized least-squares curve through the points (share, accuracy, weight).

    A grid search over steepness and ease that zooms in on the best point; the best guess has a closed form.
    """
    low, high = np.array([math.log(_STEEPNESS[0]), _EASE[0]]), np.array([math.log(_STEEPNESS[1]), _EASE[1]])
    lowest, highest, best = low, high, (0.0, 0.0, 0.0)
    for _ in range(_ZOOMS):
        best = _best(points, np.linspace(low[0], high[0], _GRID), np.linspace(low[1], high[1], _GRID))
        around = 2 * (high - low) / (_GRID - 1)
        low, high = np.maximum(best[:2] - around, lowest), np.minimum(best[:2] + around, highest)
    return HintCurve(math.exp(best[0]), best[1], best[2])


def _best(
    points: Sequence[tuple[float, float, float]], steepness: np.ndarray, ease: np.ndarray
) -> tuple[float, float, float]:
    """Log steepness, ease and guess of the best grid point."""
    shares, found, weights = (np.array(column) for column in zip(*points, strict=True))  # [P]
    logs, eases = np.meshgrid(steepness, ease, indexing="ij")  # [K, M]
    rise = 1 / (1 + np.exp(-np.exp(logs)[..., None] * (shares + eases[..., None])))  # [K, M, P]
    free = (weights * (1 - rise) ** 2).sum(-1)
    guess = np.clip((weights * (1 - rise) * (found - rise)).sum(-1) / np.maximum(free, 1e-12), 0, _MOST_GUESSED)
    errors = (weights * (guess[..., None] + (1 - guess[..., None]) * rise - found) ** 2).sum(-1) / weights.sum()
    away = (logs - math.log(_TYPICAL[0])) ** 2 + (eases - _TYPICAL[1]) ** 2 + guess**2
    place = np.unravel_index(np.argmin(errors + _REGULARIZER * away), errors.shape)
    return float(logs[place]), float(eases[place]), float(guess[place])


# SEELE's hints (2509.06923): the length of the hint follows from the accuracies of earlier rounds.
#
# Readings: the first steps of the worked solution are a prefix of the completion with version -1 (no policy sampled
# them), so that they can be imitated. Accuracies are those of this group's rounds, by the share that was really shown;
# a repeated task starts at its last share. Groups may be observed out of order: the latest is the one with the newest
# version and the highest number.

HINT = "hint"  # the fact that holds the share of the solution in a rollout's prefix
_KNOWN = 65536  # latest tasks whose last share is kept


@dataclass
class ResponsiveHints(Strategy):
    """Waves with round(p * n) of the n solution steps as prefix; p is where the fitted curve reaches `target`.

    The first wave of a new task reads all steps but one.
    """

    envs: tuple[Environment, ...]
    target: float = 0.5  # target accuracy
    opens: str = OPEN  # text before the first step of an environment that gives steps without their tags

    # task id -> version and number of its latest group, and the share of that group's last wave
    _last: dict[str, tuple[int, int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ConfigurationError(f"ResponsiveHints needs a target between 0 and 1, got {self.target}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (SOLUTIONS,)
    needs_success: ClassVar[bool] = True

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        steps = beginnings(self.envs, group.task, self.opens)
        count = round(self.share(group, len(steps)) * len(steps))
        if not count:
            return await together(play(start) for start in starts)
        turn, shown = self._prefix(group.task, steps[count - 1]), count / len(steps)
        hinted = [replace(start, turns=(turn,), origin=Origin.GUIDED) for start in starts]
        return await together(_shown(start, shown, play) for start in hinted)

    def share(self, group: Group, num_steps: int) -> float:
        """Share of the solution for the next wave."""
        if points := _points(group):
            return fitted(points).share(self.target)
        if group.task.id in self._last:
            return self._last[group.task.id][2]
        return max(num_steps - 1, 0) / max(num_steps, 1)

    def observe(self, group: Group) -> None:
        """Store the share of the task's last wave."""
        if not group.rollouts:
            return
        seen = (group.version, group.number, group.rollouts[-1].facts.get(HINT, 0.0))
        self._last[group.task.id] = max(seen, self._last.pop(group.task.id, seen))
        if len(self._last) > _KNOWN:
            del self._last[next(iter(self._last))]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The mean share of the solution in prefixes, and the distance of the mean accuracy from the target."""
        shown = [rollout.facts.get(HINT, 0.0) for group in groups for rollout in group.scored]
        right = [success(rollout) for group in groups for rollout in group.scored]
        count = max(len(shown), 1)
        return {"hint_share": sum(shown) / count, "hint_off_target": abs(sum(right) / count - self.target)}

    def state(self) -> dict[str, Any]:
        return {"last": {name: list(seen) for name, seen in self._last.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._last = {name: (int(at), int(number), float(share)) for name, (at, number, share) in state["last"].items()}

    def _prefix(self, task: Task, text: str) -> Turn:
        """A turn with this text as the prefix of the completion, sampled by no policy."""
        if self._policy is None:
            raise ConfigurationError("ResponsiveHints has no policy yet: call meet(policy) first")
        policy = self._policy
        tokens, opening = policy.template.encode_completion(text), policy.opening(task.messages, task)
        room = min(policy.sampling.max_tokens, policy.context - len(opening))
        if len(tokens) >= room:
            raise ConfigurationError(
                f"task {task.id}: its hint has {len(tokens)} tokens, and max_tokens={policy.sampling.max_tokens} and "
                f"context={policy.context} leave room for {room}: need at least {len(tokens) + 1}"
            )
        return unwritten(opening, tokens, policy.sampling)


async def _shown(start: Start, share: float, play: Player) -> Rollout:
    rollout = await play(start)
    return replace(rollout, facts=rollout.facts | {HINT: share})


def _points(group: Group) -> list[tuple[float, float, float]]:
    """Share, accuracy and number of the rollouts with that share."""
    found: dict[float, list[float]] = {}
    for rollout in group.scored:
        found.setdefault(rollout.facts.get(HINT, 0.0), []).append(success(rollout))
    return [(share, sum(right) / len(right), float(len(right))) for share, right in sorted(found.items())]


_ROUNDS = 4


def seele(
    setting: Setting = Setting(env="arithmetic:6", group_size=4),
    target: float = 0.5,  # target accuracy
    tasks: int = OfEndless(64),  # tasks per environment, which are repeated; all of a table
    imitation: float = 0.001,  # weight of the imitation loss on hints
    kl: float = 0.001,  # weight of the KL penalty to the initial policy
) -> Run:
    """Four rounds per task; the length of each hint follows from the rounds before."""
    run = setting.run(
        "seele",
        GroupStandard(),
        (
            Among(Clip(0.2, 0.2), sampled=True),
            Among(Likelihood(imitation), sampled=False),
            Among(Kl(weight=kl), sampled=True),
        ),
        budget=InWaves(setting.group_size, _ROUNDS),
    )
    run.sampler = Few(run.envs, covering(run.envs, tasks))
    run.strategy = ResponsiveHints(run.envs, target)
    return run
