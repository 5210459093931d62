"""Candidates that follow each other, each reading a direction and short summaries of those before it; no training.

Title: ContextEvolve: Multi-Agent Context Compression for Systems Code Optimization
Paper: arXiv 2602.02597 (2026)
Claim: A third better than other evolutionary searches on systems code, with 29 % fewer tokens.
Reading: Only abstract and digests were found: priorities and prompts are a plain reading. Candidates are scored while
    the search goes on, as in the paper, whose evaluator is at hand: held-out accuracy is that of the best of
    `iterations` candidates by the world's own judgement, to be compared with `strop eval --k 6` and not with pass@1. A
    rule of the bundled worlds summarises in place of three language models.
Left out: Code as the thing that evolves; an archive that lives longer than one task.
Acts: fact/candidates > 1 and fact/gained > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.strategies.memory.evolved_context import EvolvedContext
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def contextevolve(
    setting: Setting = Setting(world="arithmetic:5", group_size=1, steps=4),
    adviser: str = "rules",  # who summarises and points the way: rules, itself, or http://HOST:PORT/v1#MODEL
    iterations: int = 6,  # candidates of one search: the last has more before it than it may read
    exemplars: int = 3,  # that are read as their summaries
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size searches of each task; the best candidate of each is the attempt."""
    search = EvolvedContext(parse_reflector(adviser), iterations, exemplars, longest)
    run = setting.run("contextevolve", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
