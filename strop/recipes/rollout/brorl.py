"""After a while of few attempts at each task, many: what nobody sampled then weighs nothing.

Title: BroRL: Scaling Reinforcement Learning via Broadened Exploration
Paper: arXiv 2510.01180 (2025)
Claim: A model that 3,000 steps had saturated improves again with 512 attempts at each task.
Reading: From 16 to 512 attempts at each task, a learning rate that grows as the root of the attempts in a step, as many
    optimizer steps per draw as before, groups of both right and wrong attempts only, rewards minus the group's mean
    divided by the spread of the draw. The bundled model goes from 8 to 64. Tokens of truncated answers are not masked.
Left out: The 3,000 steps of the run that it goes on from, and its penalty to a reference that is renewed.
Acts: broadness > 1 and step_scale > 1 with after=1, broad=8
"""

from __future__ import annotations

from strop.control.budgets.broadened import Broadened
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.baseline_standard import BaselineStandard
from strop.training.losses.clip import Clip
from strop.training.step_scales.root_of_attempts import RootOfAttempts
from strop.training.trainers.torch import TorchTrainer


def brorl(
    setting: Setting = Setting(world="countdown:4"),
    broad: int = 64,  # attempts at each task, later
    after: int = 50,  # steps with `group_size` attempts at each task
    minibatches: int = 4,  # optimizer steps of a draw
) -> Run:
    """`group_size` attempts at each task for `after` steps, `broad` from then on."""
    usual = max(setting.groups_per_step // minibatches, 1) * setting.group_size  # attempts of an optimizer step
    return setting.run(
        "brorl",
        BaselineStandard(),
        (Clip(0.2, 0.28),),
        budget=Broadened(setting.group_size, broad, after),
        gates=(ZeroVariance(),),
        minibatches=minibatches,
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, step_scale=RootOfAttempts(usual)
        ),
    )
