"""GRPO by sentence: a judge that thinks about each one says what is right, a preference what is useful.

Title: From Faithfulness to Correctness: Generative Reward Models that Think Critically
Paper: arXiv 2509.25409 (2025)
Claim: Judging each sentence first by what was given, then by reasoning, finds more errors than one verdict per answer,
    and makes policies more correct and more useful at once.
Reading: Read in reviews only. A sentence earns 1 where it is judged correct; the preference against the task's own
    answer, in both orders, goes to all sentences with twice that weight; credit is standardized over all sentences of a
    group. A rule stands for the judge (`judge=http://...#MODEL` asks one) and the world's check for the preference.
    `trains=judge` is the judge's own training: 1/2 for faithfulness and for correctness told right, and a bonus of ours
    for an error caught, on tasks of a file whose answers are true verdicts (`world=FILE.jsonl`).
Left out: Search results as what has to be kept to: the bundled worlds give the task alone.
Acts: reward/sentence_verdicts > 0 and fact/faithful > 0 and credit_within > 0
"""

from __future__ import annotations

from strop.errors import ConfigurationError
from strop.filter.judges.pairwise_judge import Graded
from strop.filter.rewards.judged.sentence_verdicts import SentenceVerdicts
from strop.filter.rewards.judged.verdicts_right import VerdictsRight
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.advantages.sentence_standard import SentenceStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def trm(
    setting: Setting = Setting(),
    trains: str = "policy",  # or judge: the model learns to give verdicts
    judge: str = "rules",  # who judges sentences: rules, itself, a model's folder, or http://HOST/v1#MODEL
    preference: float = 2.0,  # weight of the preference beside 1 for the sentences
    bonus: float = 0.5,  # for an error caught, where a judge is trained
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """A policy under a judge of sentences, or that judge."""
    if trains not in ("policy", "judge"):
        raise ConfigurationError(f"trm trains policy or judge, got {trains!r}")
    advantage = SentenceStandard() if trains == "policy" else GroupStandard()
    run = setting.run("trm", advantage, (Clip(0.2, 0.2), Kl("k3", kl)))
    if trains == "judge":
        run.rewards = (VerdictsRight(bonus),)
        return run
    adviser = parse_judge(judge, "strop.standins.judges.sentences:judged")
    run.rewards = (SentenceVerdicts(adviser), Pairwise(Graded(run.worlds), preference))
    run.reward_seconds = judge_seconds(judge)
    return run
