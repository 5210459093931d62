"""Attempts are compared with an expert step by step, and put back on its path twice; steps and attempts earn credit.

Title: UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning
Paper: arXiv 2509.11543 (2025)
Claim: At 7B 12 points more on AndroidWorld and 23.8 more on AITW than the model training began with.
Reading: The release's step reward and returns; the expert is the world itself, asked where the attempt stands, so a
    mended attempt goes on in a live world and not on a recording. An attempt's score is the sum of its steps, each
    attempt counted once; the release averages over rows of steps. Groups whose attempts all scored alike are replaced.
    What an expert put in is read and never trained.
Left out: Screens; thoughts that another model writes for patches: the world's own demonstration has its working.
Acts: steps_mended > 0 and credit_within > 0
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.agents.patched import Patched
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.steps.step_and_episode import StepAndEpisode
from strop.training.losses.clip import Clip


def ui_s1(
    setting: Setting = Setting(world="keyvalue:5"),
    patches: int = 2,  # mismatches that do not end an attempt
    repairs: bool = True,  # False: a wrong reply stays, for a control
    discount: float = 0.5,  # from step to step
    episode: float = 1.0,  # weight of an attempt's credit beside that of its steps
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    minibatches: int = 2,
) -> Run:
    """GRPO on steps and attempts along an expert's path."""
    return setting.run(
        "ui_s1",
        StepAndEpisode(discount, episode=episode),
        (Clip(clip, clip),),
        agent=Patched(patches, repairs),
        gates=(ZeroVariance(),),
        minibatches=minibatches,
    )
