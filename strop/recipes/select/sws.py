"""Tasks that stay unsolved and get worse are answered with new problems of the same concepts.

Title: SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning
Paper: arXiv 2506.08989 (2025)
Claim: 10.0 points on average for a 7B model and 7.7 for a 32B one, over eight benchmarks.
Reading: Weak is a task whose success stays below a half and falls over its visits. The paper finds such tasks in a run
    of its own and makes the set for another; here problems come as weaknesses are found. They are taken where the
    adviser agrees with itself and the policy solves a quarter to three quarters; groups stay with 1/8 to 7/8 right.
    Rules of the bundled worlds name concepts, write and solve; theirs are always right, so one vote is enough.
Left out: The cosine of embeddings in the choice of concepts, and two judges of a problem's quality.
Acts: written > 0 with seeds=6, groups_per_step=8
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.weaknesses import Weaknesses
from strop.filter.gates.reward_band import RewardBand
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def sws(
    setting: Setting = Setting(world="arithmetic:6+countdown:4"),
    adviser: str = "rules",  # who names concepts, writes and solves: rules, itself, or http://HOST:PORT/v1#MODEL
    seeds: int = 32,  # tasks of each world; they come back, or nothing could be seen to get worse
    share: float = 0.5,  # of the draws that new problems may have
    visits: int = 2,  # to a task, before its slope says anything
    exercises: int = 4,  # problems asked for at each weakness
    votes: int = 1,  # answers of the adviser to its own problem; more of a language model
    probes: int = 4,  # attempts of the policy at a problem before it is taken
) -> Run:
    """Practice where it is needed, on what can be learned."""
    run = setting.run("sws", GroupStandard(), (Clip(0.2, 0.28),), gates=(RewardBand(0.125, 0.875),))
    run.writer = Weaknesses(parse_adviser(adviser), visits, exercises, votes, probes)
    run.sampler = WithWritten(Few(run.worlds, seeds), share)
    return run
