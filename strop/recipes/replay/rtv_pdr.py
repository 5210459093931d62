"""Attempts condensed to notes, compared in pairs by votes, the best notes read by a second round; no training.

Title: Scaling Test-Time Compute for Agentic Coding
Paper: arXiv 2604.16529 (2026)
Claim: Claude-4.5-Opus goes from 70.9 to 77.6 % on SWE-Bench Verified and from 46.9 to 59.1 % on Terminal-Bench 2.0.
Reading: Pairs, eight votes and 16 attempts are the paper's; how many notes are read was not found. Who comes before the
    other is shuffled for every vote. The loss weighs nothing, and held-out tasks are attempted in the same way. A rule
    of the bundled worlds condenses and votes in place of a language model: it knows no answers, and sees wrong steps.
    The bundled model was shown hints of two steps at most and is lost beside several notes; rounds=1 is the tournament
    alone, which on arithmetic:5 makes 59 % right with 4 attempts where one makes 27 %.
Left out: Groups of more than two, and coding agents.
Acts: fact/comparisons > 1 and fact/notes > 0 with rollouts=3, votes=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.strategies.tournament import Tournament
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce


def rtv_pdr(
    setting: Setting = Setting(world="arithmetic:5", group_size=1, steps=4, heldout_tasks=32),
    adviser: str = "rules",  # who condenses and votes: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    rollouts: int = 16,  # attempts of a round
    kept: int = 4,  # notes that the next round reads
    rounds: int = 2,  # of attempts
    votes: int = 8,  # of one comparison
    longest: int = 200,  # characters of all notes that stand beside a task
) -> Run:
    """group_size tournaments of each task; the winner of each is the attempt."""
    search = Tournament(parse_reflector(adviser), rollouts, kept, rounds, votes, longest)
    run = setting.run("rtv_pdr", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
