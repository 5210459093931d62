"""NFT (2505.18116), which also learns from wrong attempts, against fine-tuning on right ones alone.

Papers: nft
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.coin import Coin
from strop.recipes.objective.nft import nft
from strop.recipes.setting import Setting
from strop.run import Run


def setting(seed: int) -> Setting:
    return Setting(world="countdown:4", seed=seed, heldout_tasks=384, heldout_every=0)


def treatment(seed: int) -> Run:
    """Right attempts fit the policy, wrong ones the implicit negative policy."""
    return nft(setting(seed))


def control(seed: int) -> Run:
    """The same loss without its negative side: rejection sampling fine-tuning."""
    return nft(setting(seed), negative_weight=0.0)


def negative(seed: int) -> Run:
    """A coin decides which attempts are right."""
    return replace(treatment(seed), rewards=(Coin(),))


experiment = Experiment(
    key="nft",
    claim="At equal generated tokens, negative-aware fine-tuning reaches a higher held-out accuracy than fine-tuning "
    "on right attempts alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
