"""MSSR: single-rollout RL with a running pass rate per task as baseline and an entropy bonus on advantages.

Title: Stable and Efficient Single-Rollout RL for Multimodal Reasoning
Paper: arXiv 2512.18215 (2025)
Claim: The accuracy of group-based training in half the steps.
Reading: The entropy is that of the full distribution, as the paper means it. The paper's decay schedule is not monotone
    in the KL. Tasks are sampled repeatedly, because the baseline needs earlier rollouts. A task's first outcome in
    training is its first estimate; the release estimates it with rollouts of the initial policy before training.
Left out: Images.
Acts: known_share > 0 and advantage_within > 0 with tasks=32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.success import is_right
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.requirements import ENTROPY, LOGPROBS, REFERENCE_LOGPROBS, PolicyStatistic
from strop.types import Group, Metrics, Rollout

_RULES = ("published", "rising", "constant")
_FLAT = 1e-6  # least variance that is divided by
_RECENT = 10  # training batches whose KL is averaged
_KNOWN = 10_000  # tasks remembered, the most recent


@dataclass
class BetaBaseline(Advantage):
    """A = r - v(task), normalized over the batch; then A_t + min(entropy_weight * H_t, |A_t| / bound).

    v = a / (a + b) is read before the update a <- rho * a + o, b <- rho * b + 1 - o, o = 1 if right. v of a new task is
    1/2; its first outcome then becomes v, with the weight of 1 / (1 - fastest) rollouts. rho depends on the mean KL to
    the reference of recent batches: `published` rises up to the target and falls beyond it, `rising` falls with the KL,
    `constant` stays at `fastest`.
    """

    entropy_weight: float = 0.4  # weight of the entropy bonus
    bound: float = 2.0  # the bonus is at most |A| / bound; above 1 it changes no sign
    fastest: float = 0.875  # smallest rho: fastest decay of the counts
    slowest: float = 0.96  # largest rho: slowest decay of the counts
    target_kl: float = 0.01  # mean KL at which rho is largest
    rule: str = "published"  # published, rising or constant: how rho depends on the KL

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY, LOGPROBS, REFERENCE_LOGPROBS})

    _counts: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _kls: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _known: float = field(
        default=0.0, init=False, repr=False, compare=False
    )  # share of the last batch with a known task

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise ConfigurationError(f"BetaBaseline has no rule {self.rule!r}: {nearest(self.rule, _RULES)}")
        if not 0 < self.fastest <= self.slowest < 1 or self.bound <= 1 or self.target_kl <= 0:
            raise ConfigurationError(
                f"BetaBaseline needs 0 < fastest <= slowest < 1, bound > 1 and target_kl > 0, got {self}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        self._known = float(np.mean([rollout.task.id in self._counts for rollout in rollouts] or [False]))
        advantages = np.array(
            [rollout.reward - self.expected(rollout.task.id) for rollout in rollouts], dtype=np.float64
        )
        if len(advantages):
            advantages = (advantages - advantages.mean()) / np.sqrt(max(float(advantages.var()), _FLAT))
        for rollout, advantage in zip(rollouts, advantages, strict=True):
            entropy = rollout.policy_statistics.get(ENTROPY.name, np.zeros(rollout.num_tokens))
            rollout.advantages = self.shaped(float(advantage), entropy).astype(np.float32)
        self._learn(rollouts)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metric only: the share of rollouts whose task was seen before; other tasks have the baseline 1/2."""
        return {"known_share": self._known}

    def expected(self, task: str) -> float:
        right, wrong = self._counts.get(task, (1.0, 1.0))
        return right / (right + wrong)

    def shaped(self, advantage: float, entropy: NDArray[Any]) -> NDArray[np.float64]:
        """Advantage plus entropy bonus per token of one rollout: [N]."""
        return advantage + np.minimum(self.entropy_weight * entropy.astype(np.float64), abs(advantage) / self.bound)

    def decay(self, kl: float) -> float:
        """rho at a mean KL."""
        progress, span = min(kl / self.target_kl, 1.0), self.slowest - self.fastest
        if self.rule == "constant":
            return self.fastest
        if self.rule == "rising" or kl > self.target_kl:
            return self.slowest - progress * span
        return self.fastest + progress * span

    def _learn(self, rollouts: Sequence[Rollout]) -> None:
        names = {statistic.name for statistic in self.needs}
        kls = [_kl(rollout) for rollout in rollouts if rollout.num_tokens and names <= set(rollout.policy_statistics)]
        if kls:
            self._kls = [*self._kls, float(np.mean(np.concatenate(kls)))][-_RECENT:]
        rho = self.decay(float(np.mean(self._kls)) if self._kls else 0.0)
        for rollout in rollouts:
            outcome, first = float(is_right(rollout)), 1 / (1 - self.fastest)
            if (known := self._counts.pop(rollout.task.id, None)) is None:
                self._counts[rollout.task.id] = (first * outcome, first * (1 - outcome))
            else:
                self._counts[rollout.task.id] = (rho * known[0] + outcome, rho * known[1] + 1 - outcome)
        while len(self._counts) > _KNOWN:
            del self._counts[next(iter(self._counts))]

    def state(self) -> dict[str, Any]:
        return {"counts": {task: list(pair) for task, pair in self._counts.items()}, "kls": self._kls}

    def restore(self, state: dict[str, Any]) -> None:
        self._counts = {task: (float(right), float(wrong)) for task, (right, wrong) in state["counts"].items()}
        self._kls = [float(kl) for kl in state["kls"]]


def _kl(rollout: Rollout) -> NDArray[np.float64]:
    """KL(policy || reference) on sampled tokens, k3 estimator, never negative: [N]."""
    difference = (REFERENCE_LOGPROBS.of(rollout).astype(np.float64) - LOGPROBS.of(rollout)).clip(-20, 20)
    return np.expm1(difference) - difference  # type: ignore[no-any-return]


def mssr(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    tasks: int = OfEndless(256),  # tasks per environment, sampled repeatedly; all of a table
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """One rollout per task, clipping and KL penalty; tasks are sampled repeatedly."""
    run = setting.run("mssr", BetaBaseline(), (Clip(clip, clip), Kl("k3", kl)))
    run.sampler = Few(run.envs, covering(run.envs, tasks))
    return run
