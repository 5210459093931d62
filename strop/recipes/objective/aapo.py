"""Beside each attempt one of the model training began with; being ahead of it counts.

Title: AAPO: Enhance the Reasoning Capabilities of LLMs with Advantage Momentum
Paper: arXiv 2505.14264 (2025)
Claim: Groups whose credit is near 0 train, too, and mathematics benchmarks rise above GRPO's.
Reading: The paper's momentum is no moving average: it is the lead over one sample of the reference. Attempts and
    samples are paired by their order.
Acts: share/teacher > 0 and credit_beside_rewards > 0
"""

from __future__ import annotations

from strop.control.budgets.fixed import Fixed
from strop.filter.gates.paired_with_reference import PairedWithReference
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.strategies.beside_reference import BesideReference
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.reference_momentum import ReferenceMomentum
from strop.training.losses.reinforce import Reinforce


def aapo(
    setting: Setting = Setting(),
    low: float = -0.2,  # of the lead over the reference, which is cut there
    high: float = 0.28,  # of the lead over the reference
) -> Run:
    """Cross-entropy weighted by the credit, token mean, no ratio; the reference doubles what is generated."""
    return setting.run(
        "aapo",
        ReferenceMomentum(low, high),
        (Reinforce(),),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=BesideReference(),
        gates=(PairedWithReference(),),
        budget=Fixed(2 * setting.group_size),
    )
