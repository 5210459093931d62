"""Experiences and skills from attempts that are compared, merged where they overlap and read later; no training.

Title: XSkill: Continual Learning from Experience and Skills in Multimodal Agents
Paper: arXiv 2603.12056 (2026)
Claim: Better than agents without such memories on five benchmarks with four models, without an update of weights.
Reading: Thresholds, operations and limits are the release's. The loss weighs nothing: a step is a batch of tasks from
    which both memories grow. Held-out tasks are attempted with what is there, and leave nothing. Overlap of short
    pieces of text stands for cosines of embeddings, and is taken anew after every merge. A rule of the bundled worlds
    compares, merges and adapts in place of a language model; adviser=itself asks the policy.
Left out: Images; the number of experiences that are found for a part of a task was not found.
Acts: lessons > 0 and fact/experiences > 0 and fact/skill_words > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.memory.store import Library
from strop.generate.strategies.memory.skills_and_experiences import SkillsAndExperiences
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def xskill(
    setting: Setting = Setting(world="arithmetic:5", group_size=2, steps=4),
    adviser: str = "rules",  # who compares, merges and adapts: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    shown: int = 3,  # experiences for each part of a task
    operations: int = 2,  # add or modify, from one group
    same: float = 0.7,  # overlap from which what is added is merged with an experience
    forced: float = 0.6,  # overlap from which experiences are merged where there is no more room
    most: int = 120,  # experiences
    words: int = 1000,  # of the document of skills, before it is shortened
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size attempts at each task, compared; eight tasks are a batch."""
    library = Library(most, same, longest=10 * words)
    learning = SkillsAndExperiences(library, parse_reflector(adviser), shown, operations, forced, words, longest)
    run = setting.run("xskill", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    return replace(run, evaluation=replace(run.evaluation, strategy=replace(learning, learns=False)))
