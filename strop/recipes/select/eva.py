"""Tasks evolve where rewards differ most, and the policy learns from the best and the worst attempt at each.

Title: Scalable Reinforcement Post-Training Beyond Static Human Prompts: Evolving Alignment via Asymmetric Self-Play
Paper: arXiv 2411.00062 (2024)
Claim: Gemma-2-9b-it goes from 51.6 to 60.1 % on Arena-Hard with DPO, and from 52.6 to 62.4 % with RLOO.
Reading: Regret is the best minus the worst reward, the paper's default as others report it; no release was found, and
    its constants are parameters here. Creator and solver take turns group by group, not round by round. Rewards are
    the world's own, where the paper has a reward model: on 0 and 1 regret is 1 exactly where attempts differ. Rules of
    the bundled worlds evolve problems in place of a language model (adviser=http://HOST:PORT/v1#MODEL).
Left out: The variant with RLOO; other measures of information, which did worse.
Acts: written > 0 and written_share > 0 and regret > 0
"""

from __future__ import annotations

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.evolved import Evolved
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean


def eva(
    setting: Setting = Setting(world="arithmetic:4+countdown:3"),
    adviser: str = "rules",  # who evolves problems: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    evolved: float = 0.8,  # share of draws that evolved tasks may have
    deeper: float = 0.5,  # share of evolutions that ask for one more step; the others for another problem of the kind
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """One evolution after every group, of a task drawn in proportion to its regret."""
    run = setting.run("eva", Constant(), (Dpo(beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
    run.writer = Evolved(parse_adviser(adviser), deeper)
    run.sampler = WithWritten(Uniform(run.worlds), evolved)
    return run
