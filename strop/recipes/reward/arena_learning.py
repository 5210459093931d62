"""Fights against a stronger model: what the policy loses is imitated first, then preferred.

Title: Arena Learning: Build Data Flywheel for LLMs Post-training via Simulated Chatbot Arena
Paper: arXiv 2407.10627 (2024)
Claim: Battles that a judge decides in place of people rank models as people do, and train them round after round.
Reading: Read in notes only. A fight is lost where the rival wins in both orders; a split is a tie and trains nothing.
    The slices are tasks of two runs in a row: supervised on winners, then DPO on (winner, loser). Ratings are
    Bradley-Terry with one tie added for each rival. The world's demonstrations stand for the stronger model (`rival=` a
    folder or an address is one) and rules for the judge (`judge=http://...#MODEL`). What the world would have paid is
    logged beside it and weighs nothing.
Left out: The third slice, a reward model of lost fights and PPO against it.
Acts: rating != 1000 and kept_share < 1 and margin != 0 with imitated=1
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.gates.lost_fights import LostFights
from strop.filter.rewards.judged.fights import Fights
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.llm_agent import Advised
from strop.generate.strategies.arena import Arena
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.roles import Agent, Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean

_JUDGE = "strop.standins.judges.criteria:compared"


def arena_learning(
    setting: Setting = Setting(),
    rival: str = "demonstrations",  # the stronger model: the world's demonstrations, a folder, or http://HOST/v1#MODEL
    judge: str = "rules",  # who compares two replies: rules, itself, a model's folder, or http://HOST/v1#MODEL
    imitated: int = 20,  # steps on the first slice, supervised on winners
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """`imitated` steps come before `steps` of DPO."""

    def stage(sizes: Setting, loss: Loss, winner_only: bool) -> Run:
        gates = (LostFights(winner_only),)
        against: Agent = Demonstrate() if rival == "demonstrations" else Advised(parse_judge(rival, _JUDGE))
        strategy = Arena((against,))
        parts = {"gates": gates, "strategy": strategy, "reduction": SequenceMean()}
        run = sizes.run("arena_learning", Constant(), (loss,), **parts)
        run.rewards = (Fights(parse_judge(judge, _JUDGE)), measured(run.worlds))
        run.reward_seconds = judge_seconds(judge)
        return run

    run = stage(setting, Dpo(beta), winner_only=False)
    run.warmup = stage(replace(setting, steps=imitated), Likelihood(), winner_only=True)
    return run
