"""ReMix (2507.06892), two updates on every rollout and rollouts of the last two policies, against on-policy GRPO.

Papers: remix
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.replay.remix import MixedClip, remix
from strop.recipes.setting import Setting
from strop.replay.fifo import Fifo
from strop.run import Run
from strop.training.losses.clip import Clip


def treatment(setting: Setting) -> Run:
    """Old rollouts until version 40, clipped around where the policy before the step stands."""
    return remix(replace(setting, env="arithmetic:4", heldout_tasks=256, heldout_every=4), reincarnation=40)


def control(setting: Setting) -> Run:
    """The same losses on fresh rollouts alone, each trained on once."""
    return replace(treatment(setting), buffer=Fifo(), epochs=1)


def negative(setting: Setting) -> Run:
    """The same replay, clipped around the policies that sampled: what moved since then has no gradient left."""
    run = treatment(setting)
    losses = tuple(Clip(loss.clip, loss.clip) if isinstance(loss, MixedClip) else loss for loss in run.losses)
    return replace(run, losses=losses)


experiment = Experiment(
    key="remix",
    claim="At equal generated tokens, two updates on every rollout with rollouts of the last two policies, clipped "
    "around the current one, reach a higher held-out accuracy on the way than on-policy training.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=120_000,
    metric="heldout_area",
)
