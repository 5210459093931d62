"""Imitation and exploration in one step, in a balance that is learned from what helps tasks not trained on.

Title: AMFT: Aligning LLM Reasoners by Meta-Learning the Optimal Imitation-Exploration Balance
Paper: arXiv 2508.06944 (2025)
Claim: Better than supervised training, RL and their sequence; its authors asked to withdraw the paper while it is
    investigated, so that its figures count for nothing here.
Reading: A group holds one demonstration beside the policy's attempts; its reward counts in the group's mean. One of
    four groups is not trained on, and says by its attempts which of both losses helps. Rates and bounds were not found.
    More is imitated where entropy is above its first value, as the paper says in words.
Left out: The critic: attempts are compared with their siblings.
Acts: mu != 0.5 and meta_gradient != 0 with taught=1
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.trainers.meta_mixed import MetaMixed
from strop.training.trainers.torch import TorchTrainer
from strop.types import Origin


def amft(
    setting: Setting = Setting(world="arithmetic:6"),
    mu: float = 0.5,  # share of imitation, at first
    rate: float = 0.1,  # at which other tasks move it
    entropy_rate: float = 0.01,  # at which entropy moves it
    printed: bool = False,  # the sign of entropy as the paper prints it, against its words
    taught: int = 4,  # steps of supervised training before
) -> Run:
    """One optimizer step per draw on a mixture of both losses; the mixture learns."""
    run = setting.run(
        "amft",
        GroupStandard(),
        (Among(Clip(0.2, 0.2), (Origin.POLICY,)), Among(Likelihood(), (Origin.TEACHER,))),
        strategy=Demonstrated(Demonstrate()),
        trainer=MetaMixed(
            TorchTrainer(setting.learning_rate, device=setting.device), mu, rate, entropy_rate, printed=printed
        ),
    )
    run.warmup = shown(setting, "amft", taught)
    return run
