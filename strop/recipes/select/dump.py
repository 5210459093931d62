"""DUMP: a UCB bandit over environments, by the mean |advantage| of their latest rollouts; the rest is GRPO.

Title: DUMP: Automated Distribution-Level Curriculum Learning for RL-based LLM Post-training
Paper: arXiv 2504.09710 (2025)
Claim: Faster and better than uniform sampling on logic puzzles of many difficulties and on mathematics.
Reading: As released: the last 300 rollouts of an environment, the bonus of UCB1, temperature 0.1, groups of 16, a KL
    penalty of 0.001, four minibatches per batch. One mean per rollout, as in GRPO. At that temperature it is nearly
    greedy, and the bonus of an environment that was not sampled soon exceeds all values.
Left out: Held-out rewards in the advantages of arms, which the release includes.
Acts: preference > 0 with env=arithmetic:4+arithmetic:8
Break: softness=1e9: every environment is as likely as any other, whatever was learned from it
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.bandit_metrics import arm_metrics, contrasts
from strop.control.samplers.support.pending_choices import Filed
from strop.control.seeded_choice import Doubles, drawn, softmax
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Task

# DUMP (2504.09710): environments are bandit arms, valued by mean |advantage| plus a bonus for few rollouts.
#
# Reading: an arm is an environment of one level, an advantage the outcome against its siblings in units of their
# standard deviation. The latest rollouts are those of the latest versions, so the order in which groups finish does not
# matter. Groups count from the next version on, dropped ones too. The release includes rewards of held-out tasks; this
# does not.


@dataclass
class UpperConfidence(Sampler):
    """Sampler whose arm value is the mean |A| of its last `window` rollouts + sqrt(2 ln(N + 1) / (n + 1)).

    n counts all rollouts of the arm, N those of all arms. An arm is sampled with probability softmax(value /
    temperature).
    """

    envs: tuple[Environment, ...]
    window: int = 300  # rollouts of each arm, not groups
    temperature: float = 0.1  # the lower, the more the best arm is preferred
    seed: int = 0
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _latest: list[list[list[float]]] = field(default_factory=list, init=False, repr=False, compare=False)
    _counts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _step: int = field(default=0, init=False, repr=False, compare=False)  # version up to which groups were applied
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.window < 1 or self.temperature <= 0:
            raise ConfigurationError(
                f"UpperConfidence needs window >= 1 and temperature > 0, got {self.window} and {self.temperature}"
            )
        self._arms = BanditArms(self.envs)
        self._latest, self._counts = [[] for _ in self.envs], [0] * len(self.envs)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        if step != self._step:
            self._step = step
            self._update()
        self._num_sampled += 1
        return self._arms.take(drawn(self.probabilities(), 1, (self.seed, self._num_sampled))[0])

    def probabilities(self) -> Doubles:
        """Probability of each arm in the next batch."""
        return softmax(self.values(), self.temperature)

    def values(self) -> list[float]:
        """Value of each arm: mean |A| plus the bonus."""
        width = 2 * math.log(sum(self._counts) + 1)
        means = [sum(size for *_, size in latest) / max(len(latest), 1) for latest in self._latest]
        return [mean + math.sqrt(width / (count + 1)) for mean, count in zip(means, self._counts, strict=True)]

    def observe(self, group: Group) -> None:
        if (arm := self._arms.arm(group.task)) is not None:
            for place, size in enumerate(contrasts(group)):
                self._filed.add(group, place, arm, float(size))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the current probabilities of the arms."""
        return arm_metrics(self.envs, self.probabilities())

    def _update(self) -> None:
        for version, number, place, arm, size in self._filed.take():
            latest = self._latest[int(arm)]
            latest.append([version, number, place, size])
            self._counts[int(arm)] += 1
        self._latest = [sorted(latest)[-self.window :] for latest in self._latest]

    def state(self) -> dict[str, Any]:
        return {
            "arms": self._arms.state(),
            "filed": self._filed.state(),
            "latest": [[list(row) for row in latest] for latest in self._latest],
            "counts": list(self._counts),
            "step": self._step,
            "draws": self._num_sampled,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._arms.restore(state["arms"])
        self._filed.restore(state["filed"])
        self._latest = [[list(row) for row in latest] for latest in state["latest"]]
        self._counts = [int(count) for count in state["counts"]]
        self._step, self._num_sampled = int(state["step"]), int(state["draws"])


def dump(
    setting: Setting = Setting(env="arithmetic:1+countdown:4+compose:3+arithmetic:8+countdown:5", group_size=16),
    window: int = 300,  # rollouts of each environment whose advantages count
    softness: float = 0.1,  # temperature of the choice: the lower, the more the best environment is preferred
) -> Run:
    """GRPO on tasks of the environment with the largest |advantage| or the fewest rollouts."""
    run = setting.run(
        "dump", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", 0.001)), reduction=SequenceMean(), by_category=True
    )
    run.minibatches = min(4, setting.groups_per_step)
    run.sampler = UpperConfidence(run.envs, window, softness, setting.seed)
    return run
