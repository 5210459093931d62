"""A teacher makes new questions from wrong replies; the solver learns from pairs of a right and a wrong one.

Title: Socratic-Zero: Bootstrapping Reasoning via Data-Free Agent Co-evolution
Paper: arXiv 2509.24726 (2025)
Claim: From 100 questions an 8B solver gains 20.2 points over other ways of making data, on seven benchmarks.
Reading: 8 attempts, DPO on right against wrong, 100 questions of each world to begin with, and questions made from
    failures beside them; the paper works in 5 rounds, here questions follow from every group. The utility that weighs
    what its generator learns is the chance that a failure is followed up. Its constants were not found in the release
    and are parameters. Rules of the bundled worlds teach in place of a large model, and their answers are right.
Left out: The generator, a second model that learns to write as the teacher does.
Acts: written > 0 and written_share > 0
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.from_failures import FromFailures
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean


def socratic_zero(
    setting: Setting = Setting(world="arithmetic:4+countdown:3"),
    adviser: str = "rules",  # the teacher: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    seeds: int = 100,  # tasks of each world to begin with
    share: float = 0.5,  # of the draws that new questions may have
    questions: int = 2,  # that follow from the failures of one group
    target: float = 0.5,  # success at which a failure is followed up always
    width: float = 0.2,  # around it
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """What went wrong is asked again, on other numbers."""
    run = setting.run("socratic_zero", Constant(), (Dpo(beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
    run.writer = FromFailures(parse_adviser(adviser), questions, target, width)
    run.sampler = WithWritten(Few(run.worlds, seeds), share)
    return run
