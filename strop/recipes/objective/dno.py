"""Rounds of preferences among attempts and a demonstration, each against the weights it began with.

Title: Direct Nash Optimization: Teaching Language Models to Self-Improve with General Preferences
Paper: arXiv 2404.03715 (2024)
Claim: A 7B model wins 33 % against GPT-4-Turbo on AlpacaEval 2, up from 7 %.
Reading: margin 0 fits all win rates softly, against the policy's own attempts; above 0 only clear winners count, and
    for certain: the practical variant. The demonstration's reference is the weights its siblings were sampled with.
Left out: Pairs of earlier rounds, the choice of the best round on a validation set, and sampling at temperature 0.7
    with top_p 0.95: attempts are drawn from the policy itself.
Acts: win_rate != 0.5 and share/teacher > 0 and lag > 0
"""

from __future__ import annotations

from strop.control.admission.periodic import Periodic
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dno import Dno
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.trainers.torch import TorchTrainer


def dno(
    setting: Setting = Setting(),
    period: int = 5,  # steps on what one version wrote
    eta: float = 0.1,  # scale of the log-ratios
    margin: float = 0.0,  # of win rates, from which a pair is certain; 0: all pairs, softly
) -> Run:
    """margin 0 fits all win rates softly; above 0 only clear winners count, and for certain."""
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=period)
    return setting.run(
        "dno",
        Constant(),
        (Dno(eta, margin or None),),
        gates=(ZeroVariance(),),
        strategy=Demonstrated(Demonstrate()),
        reduction=SequenceMean(),
        pace=Periodic(period, setting.steps),
        trainer=trainer,
    )
