"""GRPO over six kinds of tasks at once, each judged by its own verifier, without those too easy or too hard.

Title: Revisiting Reinforcement Learning for LLM Reasoning from A Cross-Domain Perspective
Paper: arXiv 2506.14965 (2025)
Claim: 7.9 and 6.7 % over the best open baselines (7B and 32B) on 17 benchmarks, from 92,000 examples of six domains.
Reading: As released: 16 attempts, clip 0.2, token mean, no penalty to a reference, eight optimizer steps of 64 of 512
    tasks per draw. Tasks stay that the strong model solved at all and the weak one in less than 0.9 of its attempts
    (the names of the released files). Sums, expressions, functions of strings, look-ups, guessing and Euclid's
    algorithm stand for mathematics, code, science, logic, simulation and tables. Each world judges its own replies, one
    of another source is refused, and siblings are of one world, so that coarse and fine rewards share no mean.
Left out: Near-duplicates by n-grams (equal texts are one task), and a judge of free answers.
Acts: in_band < 1 with weak=RUN, strong=RUN, world=arithmetic:4
"""

from __future__ import annotations

from pathlib import Path

from strop.control.samplers.pass_rate_band import PassRateBand
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip

_SIX = "arithmetic:4+countdown:3+compose:1+keyvalue:2+guess:2+drill/gcd:1"


def guru(
    setting: Setting = Setting(world=_SIX, group_size=16),
    *,
    weak: str,  # folder of a run of a weak model, as runs/NAME
    strong: str,  # folder of a run of a strong model over the same tasks
    low: float = 1e-5,  # tasks that the strong model solves no more often are left out
    high: float = 0.9,  # tasks that the weak model solves as often are left out
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """`weak` and `strong` are earlier runs, for example of `pocket` with learning_rate=1e-9; they are only read."""
    steps = min(8, setting.groups_per_step)
    run = setting.run("guru", GroupStandard(), (Clip(clip, clip),), minibatches=steps)
    known, able = (str(Path(folder) / "ledger.db") for folder in (weak, strong))
    run.sampler = PassRateBand(known, able, low, high, setting.seed)
    return run
