"""What a policy did at other tasks foretells a new one, and attempts go where they will teach most.

Title: V0: A Generalist Value Model for Any Policy at State Zero
Paper: arXiv 2602.03584 (2026)
Claim: One model foretells the success of any policy at a prompt, from a context of pairs and without any update.
Reading: Features are the first model's own states and the head is the closed form of a Gaussian process, see the
    mechanism. The paper has 256 pairs in its context, all of the current policy; 64 here, which are 8 steps. The
    allotment's solver is not published; at a price, every task takes its best number of attempts. GRPO as in its own
    recipe, around `group_size` attempts a task.
Left out: Pretraining of features and head over many policies, with its ranking loss of weight 1/4. Routing between
    models by their values.
Acts: belief_spread > 0 and attempts_spread > 0
"""

from __future__ import annotations

from strop.control.budgets.by_utility import ByUtility
from strop.control.estimators.generalist import Generalist
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def v0(
    setting: Setting = Setting(world="arithmetic:1+arithmetic:4+countdown:4"),
    support: int = 64,  # tasks in the context, those tried last
    least: int = 2,  # attempts at any task
    most: int = 0,  # attempts at any task; 0: twice group_size
) -> Run:
    """`group_size` attempts on average."""
    return setting.run(
        "v0",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        belief=Generalist(support, setting.device),
        budget=ByUtility(setting.group_size, least, most or 2 * setting.group_size),
        reduction=SequenceMean(),
    )
