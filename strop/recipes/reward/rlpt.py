"""No labels: the policy predicts the next sentence of plain text, or a missing one, and a judge says if it is so.

Title: Reinforcement Learning on Pre-Training Data
Paper: arXiv 2509.19249 (2025)
Claim: 3.0, 5.1, 8.1 and 6.0 points on MMLU, MMLU-Pro, GPQA-Diamond and KOR-Bench (Qwen3-4B-Base), and more with more
    computation.
Reading: Both objectives, E[r | next] + share * E[r | between]: credit is divided by a group's spread, so `share` is how
    often a missing sentence is asked for in proportion to a next one, and no factor of rewards. 8 attempts, temperature
    1, strictly on-policy, no penalty to a reference, after a supervised start. A rule that compares words stands for
    the judge; a prediction must hold the whole next sentence and may go on. Texts are sums told in sentences; text=FILE
    takes others.
Left out: The search for near-duplicates and for text of benchmarks: equal texts are one, and sides are by text.
Acts: drawn/next_segment-2 > 0 and reward/continued > 0 and warmup/nll > 0 with taught=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.next_segment import NextSegment
from strop.filter.rewards.env_reward import Earned
from strop.filter.rewards.judged.continued import Continued
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_worlds
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def rlpt(
    setting: Setting = Setting(world="next_segment:1+next_segment:2"),
    text: str = "",  # a text file, texts separated by empty lines; empty: sums told in sentences
    judge: str = "rules",  # who compares: rules, itself, a folder, or http://HOST/v1#MODEL
    share: float = 0.5,  # tasks with a sentence missing, for each that asks for the next one
    taught: int = 10,  # steps of supervised training first
) -> Run:
    """Reasoning about text, paid by the text itself."""
    run = setting.run("rlpt", GroupStandard(), (Clip(),))
    run.warmup = shown(setting, "rlpt", taught)
    if text:
        wrap_worlds(run, lambda world: (replace(world, path=text),) if isinstance(world, NextSegment) else (world,))
    weights = tuple(share if world.level == 2 else 1.0 for world in run.worlds)
    run.sampler = Mixture(run.worlds, weights, setting.seed)
    run.reward_seconds = judge_seconds(judge)
    run.rewards = (Continued(parse_judge(judge, "strop.standins.judges.continuation:continued")), Earned(weight=0.0))
    return run
