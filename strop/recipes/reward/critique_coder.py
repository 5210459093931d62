"""One task in five asks whether a program is right, and pays for the verdict; all others ask for programs.

Title: Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning
Paper: arXiv 2509.22824 (2025)
Claim: With critiques in place of a fifth of the data, an 8B coder passes 60 % of LiveCodeBench (v5).
Reading: A critique earns 1 where its last conclusion is the truth, a program the share of tests that it passes, as
    released. Programs to judge are the policy's own of earlier groups, true where they pass all tests; the paper's are
    written by a model beforehand. True and false ones come in turn, so that one letter for all earns a half in each
    draw; while only one kind waits, programs are asked for instead. The optimizer's numbers were not found:
    group-relative advantages and a clip of 0.2. The bundled model has never seen a program, so a short supervised run
    comes before, on the worlds' own programs and critiques.
Left out: Critiques that give reasons: the bundled model says its conclusion alone.
Acts: written_share > 0 and fact/passed > 0 and credit > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from strop.control.samplers.answers_in_turn import AnswersInTurn
from strop.control.samplers.uniform import Uniform
from strop.control.task_generators.critiqued import Critiqued
from strop.environments.bundled.critiques import Critiques
from strop.environments.code_execution import Trials
from strop.errors import ConfigurationError
from strop.filter.rewards.solved_or_judged import SolvedOrJudged
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def critique_coder(
    setting: Setting = Setting(world="programs:1+critiques:1"),
    share: float = 0.2,  # of the tasks, those that are critiques
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    warmup_steps: int = 24,  # of supervised training first
) -> Run:
    """Worlds of programs share their part evenly; those of critiques are shown before, and measured."""
    run = setting.run("critique_coder", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    programs = tuple(world for world in run.worlds if world.name != Critiques.name)
    if len(programs) in (0, len(run.worlds)):
        raise ConfigurationError(
            f"there must be programs and critiques: world=programs:1+critiques:1, got {setting.world}"
        )
    run.sampler, run.writer = AnswersInTurn(Uniform(programs), share), Critiqued()
    run.rewards = (SolvedOrJudged(PassedTests("share", Trials(setting.isolation))),)
    run.warmup = shown(setting, "critique_coder", warmup_steps)
    return run
