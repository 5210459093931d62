"""One task in five asks whether a program is right, and pays for the verdict; all others ask for programs.

Title: Critique-Coder: Enhancing Coder Models by Critique Reinforcement Learning
Paper: arXiv 2509.22824 (2025)
Claim: With critiques in place of a fifth of the data, an 8B coder passes 60 % of LiveCodeBench (v5).
Reading: A critique earns 1 where its last conclusion is the truth, a program the share of tests that it passes, as
    released. Programs to judge are the world's own, every other one with a step that was changed; the paper's are a
    model's, judged by the same tests. As many are right as wrong, so that one letter for all earns a half. The
    optimizer's numbers were not found: group-relative advantages and a clip of 0.2. The bundled model has never seen a
    program, so a short supervised run comes before.
Left out: Critiques that give reasons: the bundled model says its conclusion alone.
Acts: drawn/critiques-1 > 0 and fact/passed > 0 and credit > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from strop.control.samplers.mixture import Mixture
from strop.environments.critiques import Critiques
from strop.environments.trials import Trials
from strop.errors import ConfigurationError
from strop.filter.rewards.passed_tests import PassedTests
from strop.filter.rewards.solved_or_judged import SolvedOrJudged
from strop.recipes.setting import Setting
from strop.recipes.shown import shown
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip


def critique_coder(
    setting: Setting = Setting(world="programs:1+critiques:1"),
    share: float = 0.2,  # of the tasks, those that are critiques
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    warmup_steps: int = 24,  # of supervised training first
) -> Run:
    """Worlds of one kind share their part evenly."""
    if not 0 < share < 1:
        raise ConfigurationError(f"a share of critiques is between 0 and 1, got {share:g}")
    run = setting.run("critique_coder", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    critiques = [world.name == Critiques.name for world in run.worlds]
    if all(critiques) or not any(critiques):
        raise ConfigurationError(
            f"there must be programs and critiques: world=programs:1+critiques:1, got {setting.world}"
        )
    both = {True: share / sum(critiques), False: (1 - share) / (len(critiques) - sum(critiques))}
    run.sampler = Mixture(run.worlds, tuple(both[each] for each in critiques), setting.seed)
    run.rewards = (SolvedOrJudged(PassedTests("share", Trials(setting.isolation))),)
    run.warmup = shown(setting, "critique_coder", warmup_steps)
    return run
