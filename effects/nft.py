"""NFT (2505.18116), which also learns from wrong rollouts, against fine-tuning on right ones alone.

Papers: nft
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Coin
from strop.recipes.objective.nft import nft
from strop.recipes.setting import Setting
from strop.run import Run


def countdown(setting: Setting) -> Setting:
    return replace(setting, env="countdown:4", heldout_tasks=384)


def treatment(setting: Setting) -> Run:
    """Right rollouts fit the policy, wrong ones the implicit negative policy."""
    return nft(countdown(setting))


def control(setting: Setting) -> Run:
    """The same loss without its negative side: rejection sampling fine-tuning."""
    return nft(countdown(setting), negative_weight=0.0)


def negative(setting: Setting) -> Run:
    """A coin decides which rollouts are right."""
    return replace(treatment(setting), rewards=(Coin(),))


experiment = Experiment(
    key="nft",
    claim="At equal generated tokens, negative-aware fine-tuning reaches a higher held-out accuracy than fine-tuning "
    "on right rollouts alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
