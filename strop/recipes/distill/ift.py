"""Imitate while reading a little of one's own guesses, early tokens first.

Title: Intuitive Fine-Tuning: Towards Unifying SFT and RLHF into a Single Process
Paper: arXiv 2405.11870 (2024)
Claim: From demonstrations alone it is as good as fine-tuning followed by preference alignment, or better.
Reading: As in the release, the gradient flows through the weights of tokens, too.
    Where the policy guesses every token right, as the bundled model does in arithmetic, this is plain imitation.
Left out: RMSprop: the trainer has Adam.
Acts: guessed_share < 1
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.intuitive import Intuitive
from strop.training.reductions.sequence_mean import SequenceMean


def ift(
    setting: Setting = Setting(world="countdown:3", group_size=1, groups_per_step=64),
    share: float = 0.2,  # of its own guess in what the policy reads
    decay: float = 0.95,  # how far an error counts for what follows it
) -> Run:
    """One demonstration per task, read with a share of the policy's own guesses."""
    losses = (Intuitive(share, decay),)
    return setting.run("ift", Constant(), losses, agent=Demonstrate(), reduction=SequenceMean())
