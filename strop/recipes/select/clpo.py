"""Hard tasks come back in simpler words and those of medium difficulty in others, beside the tasks themselves.

Title: CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning
Paper: arXiv 2509.25004 (2025)
Claim: 6.96 points more pass@1 on average over eight benchmarks.
Reading: As released: 4 attempts, one rewrite of each task with the same answer, simpler up to a success of 0.3 and in
    other words up to 0.7, groups without contrast dropped, half of the penalty on hard tasks. The release tries and
    trains rewrites in the draw of their originals; here they are tried in the next ones, half of each draw. Rules of
    the bundled worlds rewrite in place of the policy, since the bundled model writes no problems: adviser=itself is
    the paper's. A text that says its answer is refused.
Left out: Hard rewrites first where a batch is cut to the number of machines.
Acts: written > 0 and written_share > 0 and hard_share > 0
"""

from __future__ import annotations

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.reworded import Reworded
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl_by_success import KlBySuccess


def clpo(
    setting: Setting = Setting(world="arithmetic:5+countdown:3", group_size=4, groups_per_step=16),
    adviser: str = "rules",  # who rewrites: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    hard: float = 0.3,  # success of a task up to which a simpler one is asked for
    medium: float = 0.7,  # success up to which another wording is asked for
    share: float = 0.5,  # of the draws that rewrites may have
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """The policy's own successes say what is rewritten, and how."""
    run = setting.run("clpo", GroupStandard(), (Clip(0.2, 0.2), KlBySuccess(hard, 0.5, kl)), gates=(ZeroVariance(),))
    run.writer = Reworded(parse_adviser(adviser), hard, medium)
    run.sampler = WithWritten(Uniform(run.worlds), share)
    return run
