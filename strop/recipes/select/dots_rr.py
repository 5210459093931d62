"""Tasks near one half by what similar tasks showed, and half of every step from groups trained on lately.

Title: Improving Data Efficiency for LLM Reinforcement Fine-tuning Through Difficulty-targeted Online Data Selection and
    Rollout Replay
Paper: arXiv 2506.05316 (2025)
Claim: The results of GRPO in 23 to 62 % less time, over 6 pairs of models and data sets.
Reading: Likeness is that of the first model's own states, without a trained encoder, see the mechanism; the release's
    256 references, temperature 1/1000, choices for 2 steps and 512 groups kept. A quarter of the tasks is drawn
    uniformly and serves as references, in place of attempts that are thrown away. The release trains on 512 groups a
    step, 16 here, of which 8 are new. GRPO as in its own recipe, ratios to the policy that sampled.
Left out: The encoder that is trained on other models' records, and its scaling by mean and spread of the references. A
    buffer of mixed groups only, which the paper's text has and its release has not.
Acts: nearer_by > 0 and replayed_share > 0 with pool=16
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.estimators.reference_attention import ReferenceAttention
from strop.control.samplers.near_target import NearTarget
from strop.recipes.setting import Setting
from strop.replay.recent_share import RecentShare
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def dots_rr(
    setting: Setting = Setting(world="arithmetic:1+countdown:4+arithmetic:8"),
    pool: int = 128,  # tasks of each world, which come back
    uniform: float = 0.25,  # share of tasks that are drawn uniformly, and are references of the next choices
    references: int = 256,  # tasks tried last, which others are compared with
    temperature: float = 1e-3,  # of the choice
    every: int = 2,  # versions of the weights that a choice is for
    fresh: float = 0.5,  # share of new groups in a step; 1: no replay
) -> Run:
    """`groups_per_step` new groups, and on top as many of those kept as `fresh` leaves room for."""
    run = setting.run(
        "dots_rr",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        belief=ReferenceAttention(references, setting.device),
        buffer=RecentShare(fresh, seed=setting.seed),
        reduction=SequenceMean(),
    )
    count = setting.groups_per_step * every
    sampler = NearTarget(
        run.worlds, pool, count, int(uniform * count), temperature=temperature, every=every, seed=setting.seed
    )
    return replace(run, sampler=sampler)
