"""RECAP: GRPO on reasoning, replayed demonstrations of general tasks, and dynamic weights of the objectives.

Title: Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models
Paper: arXiv 2510.21978 (2025)
Claim: General capabilities are kept and reasoning gets better, with weights that adapt without a second model.
Reading: The equations come from a summary of the paper. The window was not found: 10 training batches. Each environment
    is an objective: the first ones are trained with GRPO; the last, in place of general data, by imitating its worked
    solutions. Environments are sampled equally often and every task has the same weight, so objectives are averaged.
Left out: Objectives of vision (IoU), and several objectives on one data source.
Acts: share/replayed > 0 and objective_weight/* != 1 with window=1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.independent import Independent
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Player, Strategy
from strop.run import Run
from strop.success import kind, success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.means import GroupWise
from strop.training.requirements import LOGPROBS, PolicyStatistic
from strop.types import Group, Metrics, Origin, Rollout, Start

# RECAP's two sources (2510.21978): rollouts of the policy for some environments, worked solutions for others.
#
# A replayed solution is the environment's own, with origin REPLAYED and version -1 (no policy sampled it). It is
# trained in the same optimizer step as the policy's rollouts and not counted in pass rates.


@dataclass(frozen=True)
class BySource(Strategy):
    """One rollout of `expert` for tasks of the environments in `replayed`; the rollouts of `inner` for all others."""

    inner: Strategy
    expert: Agent
    replayed: tuple[str, ...]  # environments, as name:level

    def __post_init__(self) -> None:
        if not self.replayed:
            raise ConfigurationError("BySource needs at least 1 environment to replay, as name:level, got 0")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if f"{group.task.source}:{group.task.level}" not in self.replayed:
            return await self.inner(group, starts, play)
        if group.rollouts:
            return []  # one per group, even if the budget requests more rollouts
        answer = await play(starts[0], self.expert)
        answer.origin = Origin.REPLAYED
        return [answer]


# RECAP's weights (2510.21978): objectives whose loss stalls or oscillates gain weight, those that fall fast lose it.
#
# With windows of W batches, mu and mu' the mean losses of the last window and the one before, and sd the standard
# deviation in the last: s = mu / mu' + sd / (mu + mu'); K objectives get the weights K * softmax(s / T). Reading: an
# objective is an environment at a level. Its loss is 1 - success for the policy's rollouts and the negative
# log-likelihood for replayed solutions: both are positive. The weight multiplies the advantage, which weights every
# loss that is linear in it. Weights are 1 until every objective has two windows.

_LEAST = 1e-6  # smallest divisor


@dataclass
class Reweighted(Advantage):
    """The advantage of `inner` (1 for replayed rollouts) times the weight of its objective."""

    inner: Advantage
    window: int = 10  # training batches of one window
    temperature: float = 5.0  # of the softmax; large: all weights near 1
    _losses: dict[str, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({LOGPROBS})

    def __post_init__(self) -> None:
        if self.window < 1 or self.temperature <= 0:
            raise ConfigurationError(
                f"Reweighted needs window >= 1 and temperature > 0, got {self.window} and {self.temperature}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        self._observe(groups)
        weights = self.weights()
        for group in groups:
            for rollout in group.scored:
                if rollout.origin is Origin.REPLAYED:
                    rollout.set_advantage(1.0)
                assert rollout.advantages is not None
                rollout.advantages = (weights[kind(group.task)] * rollout.advantages).astype(np.float32)

    def weights(self) -> dict[str, float]:
        """Weight of each objective; they add up to the number of objectives."""
        if any(len(losses) < 2 * self.window for losses in self._losses.values()):
            return dict.fromkeys(self._losses, 1.0)
        scores = np.array([self._score(losses) for losses in self._losses.values()]) / self.temperature
        shares = np.exp(scores - scores.max())
        return dict(zip(self._losses, (len(shares) * shares / shares.sum()).tolist(), strict=True))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The weights of the last batch."""
        return {f"objective_weight/{name}": weight for name, weight in self.weights().items()}

    def state(self) -> dict[str, Any]:
        return {"losses": {name: list(losses) for name, losses in self._losses.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._losses = {name: [float(loss) for loss in losses] for name, losses in state["losses"].items()}

    def _observe(self, groups: Sequence[Group]) -> None:
        found: dict[str, list[float]] = {}
        for group in groups:
            found.setdefault(kind(group.task), []).append(_loss(group))
        for name in sorted(found):
            self._losses[name] = [*self._losses.get(name, []), float(np.mean(found[name]))][-2 * self.window :]

    def _score(self, losses: Sequence[float]) -> float:
        before, late = np.array(losses[: self.window]), np.array(losses[self.window :])
        convergence = late.mean() / max(before.mean(), _LEAST)
        instability = late.std() / max(late.mean() + before.mean(), _LEAST)
        return float(convergence + instability)


def _loss(group: Group) -> float:
    """Mean of the failure rate of the policy's rollouts and the negative log-likelihood of replayed ones."""
    own = [1 - success(rollout) for rollout in group.scored if rollout.origin is not Origin.REPLAYED]
    written = [each for each in group.scored if each.origin is Origin.REPLAYED and each.num_tokens]
    return float(np.mean([*own, *(-float(LOGPROBS.of(each).mean()) for each in written)] or [0.0]))


def recap(
    setting: Setting = Setting(env="arithmetic:4+countdown:3", group_size=4, groups_per_step=16),
    window: int = 10,  # training batches over which losses are averaged
    weight_temperature: float = 5.0,  # of the softmax over losses; large: equal weights
) -> Run:
    """Replays the last environment and trains on rollouts of all others; no KL penalty."""
    run = setting.run(
        "recap", Reweighted(GroupStandard(), window, weight_temperature), (Clip(),), reduction=GroupWise()
    )
    if len(run.envs) < 2:
        raise ConfigurationError(
            f"recap needs at least 2 environments, as env=A+B (the last is replayed), got {setting.env}"
        )
    last = run.envs[-1]
    run.strategy = BySource(Independent(), Demonstrate(least=1.0), (f"{last.name}:{last.level}",))
    return run
