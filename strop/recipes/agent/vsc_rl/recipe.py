"""VSC-RL: DigiRL's filtered step imitation on episodes split into subgoals, plus cloning of the best rollouts.

Title: VSC-RL: Advancing Autonomous Vision-Language Agents with Variational Subgoal-Conditioned Reinforcement Learning
Paper: arXiv 2502.07949 (2025)
Claim: Better and more quickly learned than earlier agents in two benchmarks of device control with long tasks.
Reading: As released: the return of subgoals by DigiRL's hard-filtered update, and cloning of the best 10 % of rollouts
    in place of the divergence to a reference policy. Both are one optimizer step here, a sum, where the release makes
    two. Rules split goals and judge subgoals, where the paper asks a vision-language model. Each subgoal has reward
    1 / subgoals, and the value model predicts the share of reached subgoals. The bundled model has never read a
    subgoal, so supervised steps on demonstrations come first.
Left out: Pixels, and the offline first phase.
Acts: stepwise_share > 0 and stepwise_share < 1 and cloned_share > 0 and reward/outcome > 0
    with share=0.5, warmup_steps=3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked
from strop.recipes.agent.vsc_rl.environment import Subgoals
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.steps.hard_filtered import HardFiltered
from strop.training.losses.reinforce import Reinforce
from strop.training.values.turn_success import TurnSuccess
from strop.types import Group, Metrics

# VSC-RL's second term (2502.07949): cloning of the best rollouts of a batch, added to another advantage.


@dataclass(frozen=True)
class WithBestCloned(Advantage):
    """Advantage of `inner`, plus `weight` on all tokens of the `share` of rollouts with the largest rewards.

    At least one rollout is cloned; ties are broken by the order in the batch.
    """

    inner: Advantage
    share: float = 0.1  # share of a training batch's rollouts that are cloned
    weight: float = 1.0  # advantage added for cloning

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WithBestCloned needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        rollouts = [rollout for group in groups for rollout in group.scored]
        count = max(int(self.share * len(rollouts) + 1e-9), 1)
        for rollout in sorted(rollouts, key=lambda rollout: -rollout.reward)[:count]:
            if rollout.advantages is not None:
                rollout.advantages = rollout.advantages + self.weight
                rollout.facts["cloned"] = 1.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: shares of rollouts that are cloned, and that have an inner advantage at any token."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.advantages is not None]
        cloned = [rollout.facts.get("cloned", 0.0) for rollout in rollouts]
        inner = [
            bool(np.any(np.asarray(a.advantages) != self.weight * own)) for a, own in zip(rollouts, cloned, strict=True)
        ]
        count = max(len(rollouts), 1)
        return {"cloned_share": sum(cloned) / count, "stepwise_share": sum(inner) / count}


def vsc_rl(
    setting: Setting = Setting(env="keyvalue:3", groups_per_step=16, group_size=4),
    share: float = 0.1,  # share of a batch's rollouts whose positive steps are imitated
    cost: float = 0.05,  # subtracted from each step's advantage
    discount: float = 0.5,  # discount of the outcome per turn
    best: float = 0.1,  # share of a batch's rollouts that are cloned as a whole
    cloning: float = 1.0,  # advantage added for cloning
    warmup_steps: int = BundledOnly(10),  # supervised steps on demonstrations with subgoals before RL
) -> Run:
    """Imitation with advantage 0 or 1 for steps, and `cloning` more for the best rollouts."""
    advantage = WithBestCloned(HardFiltered(share, "instruction", cost, discount), best, cloning)
    values = TurnSuccess(steps=5, device=setting.device)
    run = setting.run("vsc_rl", advantage, (Reinforce(),), values=values, warmup=shown(setting, "vsc_rl", warmup_steps))
    wrap_envs(run, lambda env: (Subgoals(env),))
    run.evaluation = replace(run.evaluation, rewards=(Checked(run.envs),))
    return run
