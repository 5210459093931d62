"""A judge that thinks compares all siblings, and its comparisons are the credit.

Title: Think-RM: Enabling Long-Horizon Reasoning in Generative Reward Models
Paper: arXiv 2505.16265 (2025)
Claim: 8 % more on RM-Bench than Bradley-Terry reward models and generative ones that are scaled otherwise.
Reading: The judge is asked once per pair, for a verdict from -3 to 3 without 0, with sides by chance. adviser is rules
    that check calculations, or a language model behind an address. An unread verdict is missing, and divisors count
    what is known; the release has none missing. What the world would have paid is logged beside it and weighs nothing.
Left out: Making the judge: its warm-up on long thoughts and its training by whether its verdict has the right sign.
Acts: credit > 0 and reward/outcome != 0
"""

from __future__ import annotations

from strop.filter.rewards.pairwise_lead import PairwiseLead
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.given import Given
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def think_rm(
    setting: Setting = Setting(group_size=4),
    adviser: str = "rules",  # or http://HOST:PORT/v1#MODEL
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """G (G - 1) / 2 judgements per task, and no score of any single reply."""
    rules = Procedural("strop.standins.judges.pairwise:compared")
    judge = rules if adviser == "rules" else parse_adviser(adviser)
    run = setting.run("think_rm", Given(), (Clip(clip, clip), Kl("k3", kl)), minibatches=2)
    truth = measured(run.worlds)
    run.rewards = (PairwiseLead(judge or rules), truth)
    return run
