"""RL on a single task: the one whose accuracy varied most over a pilot run.

Title: Reinforcement Learning for Reasoning in Large Language Models with One Training Example
Paper: arXiv 2504.20571 (2025)
Key: 1-shot-rlvr
Claim: MATH500 from 36.0 to 73.6 % with one task, as much as with 1,200.
Reading: As released: the task is repeated to fill the draw, groups of 8, temperature 0.6, a penalty to the reference of
    0.001 and an entropy bonus of 0.001, one optimizer step per draw. Groups without contrast stay: the gain comes after
    the task is solved. A draw of 128 copies is one of 8 here.
Left out: PPO in place of GRPO.
Acts: different_share < 1 and pilot_spread > 0 with pilot=PILOT
"""

from __future__ import annotations

from pathlib import Path

from strop.control.samplers.most_varied import MostVaried
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl


def one_shot_rlvr(
    setting: Setting = Setting(temperature=0.6),
    *,
    pilot: str,  # folder of a run over a few tasks, as runs/NAME
    count: int = 1,  # tasks
    kl: float = 0.001,  # weight of the penalty to the reference
    entropy: float = 0.001,  # weight of the bonus on entropy
) -> Run:
    """`pilot` is the folder of an earlier run that tried each task several times; it is only read."""
    run = setting.run("one_shot_rlvr", GroupStandard(), (Clip(), Kl("k3", kl), Entropy(entropy)))
    run.sampler = MostVaried(str(Path(pilot) / "ledger.db"), count)
    return run
