"""The policy writes its own tasks from a few, and is paid for agreeing with most of its attempts.

Title: SeRL: Self-Play Reinforcement Learning for Large Language Models with Limited Data
Paper: arXiv 2505.20347 (2025)
Claim: On par with training on good data with verified answers, from few tasks and no labels but its own votes.
Reading: As released: 16 attempts, tasks of 4 to 150 words that begin with a letter and overlap by at most 0.7 with any
    known one, self-rewards between 0.2 and 0.8 on average, REINFORCE++ with the penalty inside the return. The release
    writes 2000 tasks per iteration; here one follows from every group, and they are most of all draws. Ties and missing
    answers pay nobody (`mm_upt`). What the world would have paid is logged and weighs nothing; it knows no answers to
    written tasks. Rules of the bundled worlds write in place of the policy: adviser=itself is the paper's.
Left out: Rewards that expire after a few steps.
Acts: written > 0 and written_share > 0 and kept_share < 1
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.self_instruct import SelfInstruct
from strop.filter.gates.reward_band import RewardBand
from strop.filter.rewards.majority_vote import Majority
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip


def serl(
    setting: Setting = Setting(world="countdown:3", group_size=16),
    adviser: str = "rules",  # who writes tasks: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    seeds: int = 100,  # tasks of each world that are known from the start; the paper has 500
    fewest: int = 4,  # words of a task
    overlap: float = 0.7,  # ROUGE-L that a new task may have with a known one
    low: float = 0.2,  # mean self-reward of a group that is trained on
    high: float = 0.8,  # above, the policy agrees with itself already
    kl: float = 1e-4,  # penalty to the reference, inside the return
) -> Run:
    """No labels: seeds for their wording, and the majority for the rest."""
    run = setting.run("serl", TokenReturns(kl), (Clip(0.2, 0.2),), gates=(RewardBand(low, high),))
    truth = measured(run.worlds)
    run.rewards = (Majority(run.worlds), truth)
    run.writer = SelfInstruct(parse_adviser(adviser), fewest, overlap)
    run.sampler = WithWritten(Few(run.worlds, seeds), share=0.8)
    return run
