"""Insights from failures beside successes, proved before they are kept, and read before later attempts; no training.

Title: CORE: Contrastive Reflection Enables Rapid Improvements in Reasoning
Paper: arXiv 2605.28742 (2026)
Claim: With as few as five training samples, reasoning improves on four tasks without an update of weights.
Reading: The loss weighs nothing: a step is a round over the training tasks in which insights are written and tried.
    Held-out tasks are attempted with the insights that are there, and leave none. Similar is what shares short pieces
    of text, where the paper compares embeddings; usefulness is that of an independent version of the method. A rule of
    the bundled worlds says what to learn in place of a language model; adviser=itself asks the policy.
Left out: Prompts, which were not found.
Acts: lessons > 0 and fact/insights_tried > 0 and fact/insights > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.more_where_failed import MoreWhereFailed
from strop.generate.memory.store import Library
from strop.generate.strategies.memory.insights import INSIGHTS, Insights
from strop.generate.strategies.memory.recalled import Recalled
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def core(
    setting: Setting = Setting(world="arithmetic:5", group_size=4, groups_per_step=5, steps=4),
    adviser: str = "rules",  # who says what to learn: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    tasks: int = 5,  # of each world, to learn from
    shown: int = 2,  # insights before a task
    trials: int = 4,  # attempts that prove an insight at the task it came from
    explore: float = 0.2,  # bonus for insights that were seldom read, in training
    most: int = 100,  # insights that are kept, and as many right attempts
    same: float = 0.85,  # overlap of two insights that are one
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size attempts at each task; where one fails, it is shown beside one that was right."""
    library = Library(most, same)
    learning = Insights(library, parse_reflector(adviser), shown, trials, explore, longest)
    run = setting.run("core", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    run.sampler = MoreWhereFailed(run.worlds, tasks, setting.seed)
    measured = replace(run.evaluation, strategy=Recalled(library, INSIGHTS, shown, longest))
    return replace(run, evaluation=measured)
