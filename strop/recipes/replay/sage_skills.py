"""A chain of two related tasks: what the first one made is there for the second, and both earn if it is used.

Title: Reinforcement Learning for Self-Improving Agent with Skill Library
Paper: arXiv 2512.17102 (2025)
Claim: On AppWorld 8.9 % more scenarios completed, with 26 % fewer steps and 59 % fewer tokens.
Reading: The library is empty for the first task; what the first attempt of a chain saved is there for its second.
    Rewards minus the mean of their position, without a spread, no KL, the clip of GRPO. What makes no skill earns -1,
    as code that is not produced does. Skills are equations of the working and two sums that begin alike a scenario, in
    place of functions and of the tasks of an app.
Left out: Supervised training before, and at test time the retrieval of skills of the same scenario.
Acts: fact/used > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.skill_used import SkillUsed
from strop.generate.strategies.memory.skill_chain import SkillChain
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def sage_skills(
    setting: Setting = Setting(),
    most: int = 1,  # skills of a first attempt that its second one finds
) -> Run:
    """A group is group_size chains of two attempts."""
    run = setting.run("sage_skills", GroupMean(), (Clip(0.2, 0.2),), reduction=SequenceMean())
    run.strategy = SkillChain(run.worlds, most)
    (judged,) = run.rewards
    run.rewards = (SkillUsed(judged), replace(judged, weight=0.0))  # type: ignore[type-var]
    return run
