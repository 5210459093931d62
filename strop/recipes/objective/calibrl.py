"""Own attempts, guided by how sure the policy is of an expert's answer.

Title: Controllable Exploration in Hybrid-Policy RLVR for Multi-Modal Reasoning
Paper: arXiv 2602.20197 (2026)
Claim: Steady gains on eight benchmarks, with exploration that does not collapse.
Reading: Both texts are compared place by place; the demonstration counts in no denominator; four optimizer steps per
    draw: all as released. Own tokens beyond the expert's end are not guided.
Left out: Images.
Acts: guided_share > 0 and above_expert != 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.calibrated import Calibrated
from strop.training.reductions.own_token_mean import OwnTokenMean


def calibrl(
    setting: Setting = Setting(),
    guidance: float = 0.1,  # weight of the comparison with the expert
    slope: float = 0.5,  # of the push where the policy is already on the right side
) -> Run:
    """One of the group's attempts is the world's demonstration, which is compared with and never trained on."""
    losses = (Calibrated(guidance, slope),)
    return setting.run(
        "calibrl",
        Constant(),
        losses,
        strategy=Demonstrated(Demonstrate()),
        reduction=OwnTokenMean(),
        minibatches=4,
    )
