"""SEC: a bandit over environments whose arm reward is the mean |advantage| of their rollouts; the rest is GRPO.

Title: Self-Evolving Curriculum for LLM Reasoning
Paper: arXiv 2505.14970 (2025)
Claim: Better than random order and hand-made curricula in planning, induction and mathematics, most on harder tasks.
Reading: An arm is an environment of one level. Rate 0.5, and the paper's temperature 0.2 for type crossed with
    difficulty, as in the environments here; it has 0.4 for mathematics and 1 for Countdown alone. An arm that was not
    sampled keeps its value, as in the paper's equation; the release decays it. Five environments, one of which is
    neither solved nor out of reach, replace its data. Its KL penalty and optimizer steps per batch are not known: 0.001
    and one.
Left out: Other choices of the release: epsilon-greedy, values divided by their sum, progress of rewards.
Acts: preference > 0 with env=arithmetic:4+arithmetic:8
"""

from __future__ import annotations

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

# Self-evolving curriculum (2505.14970): environments are bandit arms with the reward mean |advantage|.
#
# Reading: an arm is an environment of one level. Its reward is the mean |A| of all its rollouts since the last weight
# update, kept or dropped: groups left by a gate would all have contrast. With lag these are the groups that finished in
# between, whatever version they started with. An arm that was not sampled keeps its value, as in the paper's equation;
# the release moves it towards 0 (`fades`).


@dataclass
class LevelBandit(Sampler):
    """Sampler with Q <- Q + rate * (mean |A| - Q) once per version and arm probabilities softmax(Q / temperature).

    For an arm with pass rate p, Q converges to 2 sqrt(p (1 - p)): half-solved arms are sampled most.
    """

    envs: tuple[Environment, ...]
    rate: float = 0.5  # of an arm's value per version
    temperature: float = 1.0  # the lower, the more the best arm is preferred
    fades: bool = False  # whether an arm that was not sampled loses the share `rate` of its value per version
    seed: int = 0
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _values: list[float] = field(default_factory=list, init=False, repr=False, compare=False)  # Q of each arm
    _step: int = field(default=0, init=False, repr=False, compare=False)  # version up to which groups were applied
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1 or self.temperature <= 0:
            raise ConfigurationError(
                f"LevelBandit needs 0 < rate <= 1 and temperature > 0, got {self.rate} and {self.temperature}"
            )
        self._arms = BanditArms(self.envs)
        self._values = [0.0] * len(self.envs)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        if step != self._step:
            self._update(step)
        self._num_sampled += 1
        return self._arms.take(drawn(self.probabilities(), 1, (self.seed, self._num_sampled))[0])

    def probabilities(self) -> Doubles:
        """Probability of each arm in the next batch."""
        return softmax(self._values, self.temperature)

    def observe(self, group: Group) -> None:
        sizes = contrasts(group)
        if len(sizes) and (arm := self._arms.arm(group.task)) is not None:
            self._filed.add(group, arm, float(sizes.sum()), len(sizes))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the current probabilities of the arms."""
        return arm_metrics(self.envs, self.probabilities())

    def _update(self, step: int) -> None:
        rows = self._filed.take()
        for arm, value in enumerate(self._values):
            seen = [(total, count) for _, _, of, total, count in rows if of == arm]
            if seen:
                reward = sum(total for total, _ in seen) / sum(count for _, count in seen)
                self._values[arm] = value + self.rate * (reward - value)
            elif self.fades:
                self._values[arm] = value * (1 - self.rate) ** (step - self._step)
        self._step = step

    def state(self) -> dict[str, Any]:
        return {
            "arms": self._arms.state(),
            "filed": self._filed.state(),
            "values": list(self._values),
            "step": self._step,
            "draws": self._num_sampled,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._arms.restore(state["arms"])
        self._filed.restore(state["filed"])
        self._values = [float(value) for value in state["values"]]
        self._step, self._num_sampled = int(state["step"]), int(state["draws"])


def sec(
    setting: Setting = Setting(env="arithmetic:1+countdown:4+compose:3+arithmetic:8+countdown:5"),
    rate: float = 0.5,  # of an environment's value per version
    softness: float = 0.2,  # temperature of the choice: the lower, the more the best environment is preferred
    fades: bool = False,  # whether an environment that was not sampled loses the share `rate` of its value, as released
) -> Run:
    """GRPO on tasks of the environment with the largest |advantage|."""
    run = setting.run(
        "sec", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", 0.001)), reduction=SequenceMean(), by_category=True
    )
    run.sampler = LevelBandit(run.envs, rate, softness, fades, setting.seed)
    return run
