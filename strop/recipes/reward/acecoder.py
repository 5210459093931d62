"""REINFORCE++ on programs that pass every test, or please a reward model that learned from pairs by pass rate.

Title: ACECODER: Acing Coder RL via Automated Test-Case Synthesis
Paper: arXiv 2502.01718 (2025)
Claim: Best of 32 by its reward model gains 10 points for an 8B model; 80 steps of RL with tests gain over 25 points on
    HumanEval-plus for a 7B one.
Reading: 1 where all tests pass and 0 else, as released; a share of tests invites special cases. With learns_pairs the
    reward model is made instead: programs of the model it begins as make pairs, and a checkpoint of that run is what
    `reward_model` reads. Tests are the world's own, which are right by what steps mean, where the paper's are written
    by a model and kept where a stronger one's program passes them. The bundled model has never written a program, so a
    short supervised run comes before.
Left out: Tests that a model writes, which hardtests has; best of N at the end.
Acts: reward/passed_tests > 0 and credit > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from strop.environments.code_execution import Trials
from strop.filter.rewards.reward_model import Scored
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.reward_model import RewardModel
from strop.generate.strategies.program_pairs import ProgramPairs
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.reductions.sequence_mean import SequenceMean


def acecoder(
    setting: Setting = Setting(world="programs:1+programs:2"),
    is_binary: bool = True,  # or the share of tests passed
    learns_pairs: bool = False,  # make the reward model
    reward_model: str = "",  # checkpoints/step-N of the run that made one, which pays in place of the tests
    kl: float = 0.001,  # price of log(policy / reference), token by token
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    warmup_steps: int = 20,  # of supervised training first
) -> Run:
    """Returns of the draw, standardised; the penalty is within them."""
    trials = Trials(setting.isolation)
    if learns_pairs:
        engine = WithReference(engine_on(setting.device), engine_on(setting.device))
        parts = {"strategy": ProgramPairs(trials=trials), "engine": engine, "reduction": SequenceMean()}
        run = setting.run("acecoder", Constant(), (BradleyTerry(),), **parts)
    else:
        run = setting.run("acecoder", TokenReturns(kl=kl), (Clip(clip, clip),), minibatches=2, reward_seconds=60.0)
        tests = PassedTests("all" if is_binary else "share", trials, weight=0.0 if reward_model else 1.0)
        judged = (Scored(RewardModel(reward_model, setting.device)),) if reward_model else ()
        run.rewards = (tests, *judged)
    run.warmup = shown(setting, "acecoder", warmup_steps)
    return run
