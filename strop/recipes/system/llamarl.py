"""LlamaRL (AIPO): asynchronous policy gradient, one version off-policy, with a one-sided capped importance weight.

Title: LlamaRL: A Distributed Asynchronous Reinforcement Learning Framework for Efficient Large-scale LLM Training
Paper: arXiv 2505.24034 (2025)
Claim: Up to 10.7 times as fast as synchronous systems at 405B parameters.
Reading: A capped token keeps its gradient, with the weight `cap`; two open-source trainers drop it.
Left out: Offloading, and weight transfer from GPU to GPU.
Acts: lag > 0 and drift > 0.001
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import LeaveOneOut
from strop.training.losses.aipo import Aipo


def llamarl(
    setting: Setting = Setting(lag=1),
    cap: float = 8.0,  # largest importance weight
) -> Run:
    """Leave-one-out baseline; a token's weight is its ratio to the behaviour policy, at most `cap`."""
    return setting.run("llamarl", LeaveOneOut(), (Aipo(cap),))
