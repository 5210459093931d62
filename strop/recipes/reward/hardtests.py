"""GRPO on programs judged by tests that advisers write, whose precision and recall are measured beside.

Title: HardTests: Synthesizing High-Quality Test Cases for LLM Coding
Paper: arXiv 2505.24098 (2025)
Claim: Tests for 47,000 problems, with a precision 11.3 and a recall 17.5 points higher than those of other sets.
Reading: Plain inputs, special ones and ones that slow or careless programs fail, as many as the release asks for or
    fewer; a validator's program says which may be asked about, and an output counts where two different oracle programs
    give it. Rules stand for the model that writes all this, and one of three oracles is careless. is_hard=false leaves
    the last two kinds of inputs out, which lets more wrong programs pass. What the world's own tests say is the truth
    that precision and recall are of; it pays nothing. A short supervised run comes before.
Left out: Judges for tasks with many right answers, and categories of problems.
Acts: fact/tests_kept < 1 and test_recall > 0 and reward/hard_tests > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from strop.environments.code_execution import Trials
from strop.filter.agreed_tests import AgreedTests
from strop.filter.rewards.hard_tests import HardTests
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip

_RULES = "strop.standins.test_cases"


def hardtests(
    setting: Setting = Setting(world="programs:1+programs:2"),
    is_hard: bool = True,  # with special and hacking inputs, beside plain ones
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    warmup_steps: int = 20,  # of supervised training first
) -> Run:
    """Nothing but written tests pays; the world's own measure them."""
    writers = ("direct", "special", "hacking") if is_hard else ("direct",)
    written, solved = (
        tuple(Procedural(f"{_RULES}:{name}") for name in names)
        for names in (writers, ("straight", "nested", "careless"))
    )
    run = setting.run("hardtests", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    tests = AgreedTests(written, Procedural(f"{_RULES}:validator"), solved)
    run.rewards = (HardTests(tests, Trials(setting.isolation)),)
    run.warmup = shown(setting, "hardtests", warmup_steps)
    return run
