"""Worlds in the proportions that pilot runs foretell to be best.

Title: MoDoMoDo: Multi-Domain Data Mixtures for Multimodal LLM Reinforcement Learning
Paper: arXiv 2505.24871 (2025)
Claim: 5.24 % better on average outside of what was trained than an even mixture.
Reading: Pilots are runs of `strop train modomodo weights=...` with the same worlds: each alone, all but one, all, and
    some between. A quadratic in the weights is fitted to their held-out accuracy over all worlds, and its highest point
    is trained. The paper trains by GRPO on images; here by GRPO on what the bundled model can do. A world that is used
    up begins again, where the paper's run ends.
Left out: Pilots of several seeds, and outcomes outside of the worlds that are mixed.
Acts: uneven > 0
"""

from __future__ import annotations

from pathlib import Path

from strop.control.mixture_fit import Surface, pilots_in
from strop.control.samplers.fixed_mixture import Mixture
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def modomodo(
    setting: Setting = Setting(world="arithmetic:4+countdown:3+compose:1"),
    pilots: str = "",  # folder of the pilot runs, as runs; empty: the weights below
    weights: tuple[float, ...] = (2.0, 1.0, 1.0),  # of the worlds, in their order, where there are no pilots
    kl: float = 0.04,  # weight of the penalty to the reference
) -> Run:
    """The best mixture that a quadratic over the pilots knows, or `weights`."""
    run = setting.run("modomodo", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean())
    chosen = Surface.fitted(pilots_in(Path(pilots))).best() if pilots else weights
    run.sampler = Mixture(run.worlds, chosen, setting.seed)
    return run
