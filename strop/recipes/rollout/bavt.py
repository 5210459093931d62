"""A tree of turns under a fixed budget, deepened where a judge saw progress; the policy rests.

Title: Spend Less, Reason Better: Budget-Aware Value Tree Search for LLM Agents
Paper: arXiv 2603.12634 (2026)
Claim: Better than plain searches with four times its budget, on four agent benchmarks.
Reading: Nothing is trained. Held-out tasks are searched in the same way, so that `strop train bavt` measures it;
    `calls=1` is the policy alone with one turn, and the paper's tiers are 5, 10 and 20 calls. The judge is a rule of
    the world in place of the same language model.
Left out: Tools. Tokens of the judge, which the paper charges.
Acts: fact/turns_spent > 1
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.llm_clients.procedural import Procedural
from strop.generate.strategies.trees.budgeted_tree import BudgetedTree
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def bavt(
    setting: Setting = Setting(world="guess:4", group_size=1, steps=4),
    judge: str = "strop.standins.judges.progress:narrowing",  # module:function that says by how much a step helped
    calls: int = 10,  # turns of one search, all branches together
    tokens: int = 512,  # written in one search
) -> Run:
    """group_size searches of each task; its best dialogue is the attempt."""
    search = BudgetedTree(Procedural(judge), calls, tokens)
    run = setting.run("bavt", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
