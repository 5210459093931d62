"""A model learns which line of a program is the first bad one; then it pays lines, and the critic begins as it.

Title: Process Supervision-Guided Policy Optimization for Code Generation
Paper: arXiv 2410.17621 (2024)
Claim: 28.2 to 29.8 % on LiveCodeBench and 31.8 to 35.8 % on a benchmark of the authors' own, against RL with tests.
Reading: Run it twice: first the judge of lines learns while the policy rests, from labels that halving finds; then
    `judge`, its `checkpoints/step-N/values`, pays each line beside the tests, and the critic begins as it. Pay is
    divided by the number of lines, and blank lines and comments earn nothing, because models add lines for pay; the
    weight was not found. The bundled model has never written a program, so a short supervised run comes before.
Left out: Labels from several checkpoints of a former run.
Acts: fact/completed_places > 0 and line_labels > 0 and value_grad_norm > 0 with warmup_steps=0, steps=1, samples=2,
    model=CODER
"""

from __future__ import annotations

from strop.environments.code_execution import Trials
from strop.filter.rewards.line_prm import JudgedLines
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.strategies.first_bad_line import FirstBadLine
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.values.begun_critic import BegunCritic
from strop.training.values.line_judge import LineJudge
from strop.training.values.line_scores import LineScores


def prm_code(
    setting: Setting = Setting(world="programs:2+programs:3"),
    judge: str = "",  # checkpoints/step-N/values of the first run; empty: this is it
    samples: int = 4,  # completions of a beginning, in the first run
    weight: float = 0.25,  # of judged lines beside the tests
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    warmup_steps: int = 30,  # of supervised training first
) -> Run:
    """Without `judge` the judge of lines learns and the policy rests."""
    tests = PassedTests(trials=Trials(setting.isolation))
    if judge:
        parts = {"values": BegunCritic(device=setting.device, folder=judge), "minibatches": 2}
        run = setting.run("prm_code", Gae(), (Clip(clip, clip),), reward_seconds=60.0, **parts)
        run.rewards = (tests, JudgedLines(LineScores(judge, setting.model, setting.device), weight))
    else:
        parts = {"values": LineJudge(device=setting.device), "strategy": FirstBadLine(samples)}
        run = setting.run("prm_code", Constant(), (Reinforce(weight=0.0),), reward_seconds=60.0, **parts)
        run.rewards = (tests,)
    run.warmup = shown(setting, "prm_code", warmup_steps)
    return run
