"""A first run becomes a short plan, and a second run with the plan before it is handed in; no training.

Title: Self-Abstraction from Grounded Experience for Plan-Guided Policy Refinement
Paper: arXiv 2511.05931 (2025)
Claim: 7.2 % better than the same agent without a plan, relatively; 73.2 and 74 % on SWE-Bench Verified.
Reading: Two runs of the same agent in worlds of their own; a plan is text before the task. The loss weighs nothing, and
    held-out tasks are attempted in the same way; both runs are paid for. A rule of the bundled worlds says the plan in
    place of a language model: it knows no answers, and sees wrong steps. Where it has nothing to say, the first run is
    handed in.
Left out: Another model for the plan than for the runs is adviser=; ensembles of several plans.
Acts: fact/plan_steps > 0 and fact/plan_share > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.strategies.second_run import SecondRun
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def sage_abstraction(
    setting: Setting = Setting(world="arithmetic:5", group_size=1, steps=4),
    adviser: str = "rules",  # who says the plan: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    plan_steps: int = 8,  # lines of a plan
    longest: int = 200,  # characters of a plan
) -> Run:
    """group_size second runs of each task, each after a first one."""
    twice = SecondRun(parse_reflector(adviser), plan_steps, longest)
    run = setting.run("sage_abstraction", Constant(), (Reinforce(weight=0.0),), strategy=twice)
    return replace(run, evaluation=replace(run.evaluation, strategy=twice))
