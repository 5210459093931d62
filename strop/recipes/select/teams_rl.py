"""A policy over six ways of rewriting learns which ones make new tasks; the model is fine-tuned on what they made.

Title: TeaMs-RL: Teaching LLMs to Generate Better Instruction Datasets via Reinforcement Learning
Paper: arXiv 2403.08694 (2024)
Claim: As good as a strong baseline's instructions with 5.73 % of its queries to the larger model.
Reading: The release pays 1 where a reviewer calls old and new task not equal, and nothing else, as here. Its policy
    (TRPO over an encoding of the text) is a table by kind of task; it learns while the model is trained on what was
    made, and not before. Replies are the worlds' own demonstrations, where the paper asks its expert. The rules of the
    bundled worlds know six operations, two of which change nothing that counts, so there is something to learn.
Left out: Three further review rewards, which the release has switched off.
Acts: written > 0 and written_share > 0 and operation_share_max > 0.166667
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.operations import Operations
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood


def teams_rl(
    setting: Setting = Setting(world="arithmetic:3+countdown:3", group_size=1, groups_per_step=32),
    adviser: str = "rules",  # who rewrites and reviews: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    seeds: int = 32,  # tasks of each world that rewriting begins with
    rate: float = 0.5,  # of the table of operations
) -> Run:
    """Written tasks come first; where none waits, a seed."""
    run = setting.run("teams_rl", Constant(), (Likelihood(),), agent=Demonstrate())
    run.writer = Operations(parse_adviser(adviser), rate)
    run.sampler = WithWritten(Few(run.worlds, seeds), share=1.0)
    return run
