"""A teacher rewrites lines of programs and tests say what that did; what a model learned of it pays lines in PPO.

Title: Process-Supervised Reinforcement Learning for Code Generation
Paper: arXiv 2502.01715 (2025)
Claim: Better than RL with outcomes alone, above all where programs are long.
Reading: Only the abstract was found, the rest is ours. Run it twice: first the judge of lines learns while the policy
    rests, from programs with one line refactored or mutated, good where all tests pass; then `judge`, its
    `checkpoints/step-N/values`, pays each line, and the tests the end. Rules stand for the teacher. Pay is divided by
    the number of lines, which bounds the sum. A short supervised run comes before.
Left out: A model of its own kind for the judge: it has the policy's shape.
Acts: fact/good_lines < 1 and line_labels > 0 and value_grad_norm > 0 with warmup_steps=1, steps=1
"""

from __future__ import annotations

from strop.environments.code_execution import Trials
from strop.filter.rewards.line_prm import JudgedLines
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.strategies.rewritten_lines import RewrittenLines
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.reinforce import Reinforce
from strop.training.values.critic import Critic
from strop.training.values.line_judge import LineJudge
from strop.training.values.line_scores import LineScores


def prlcoder(
    setting: Setting = Setting(world="programs:2+programs:3"),
    judge: str = "",  # checkpoints/step-N/values of the first run; empty: this is it
    weight: float = 1.0,  # of judged lines beside the tests
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
    warmup_steps: int = 30,  # of supervised training first
) -> Run:
    """Without `judge` the judge of lines learns and the policy rests."""
    tests = PassedTests(trials=Trials(setting.isolation))
    if judge:
        parts = {"values": Critic(device=setting.device), "minibatches": 2}
        run = setting.run("prlcoder", Gae(), (Clip(clip, clip), Kl("k2", kl)), reward_seconds=60.0, **parts)
        run.rewards = (tests, JudgedLines(LineScores(judge, setting.model, setting.device), weight))
    else:
        parts = {"values": LineJudge(device=setting.device), "strategy": RewrittenLines()}
        run = setting.run("prlcoder", Constant(), (Reinforce(weight=0.0),), reward_seconds=60.0, **parts)
        run.rewards = (tests,)
    run.warmup = shown(setting, "prlcoder", warmup_steps)
    return run
