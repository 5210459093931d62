"""Learn how likely the frozen model is to succeed, then decode it under that guidance.

Title: Q#: Provably Optimal Distributional RL for LLM Post-Training
Paper: arXiv 2502.20548 (2025)
Claim: Better accuracy on mathematics at a smaller KL to the reference than other guided methods.
Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse. Run it twice: the policy rests while
    the value learns, then `values`, its `checkpoints/step-N/values`, guides attempts and
    learns no more: its labels must be those of the reference alone.
Left out: Rounds that begin with guided tokens, and returns other than 0 and 1.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from strop.generate.engines.wrappers.guided import Guided
from strop.generate.guidances.q_sharp import QSharp
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.residual import Residual
from strop.training.losses.reinforce import Reinforce
from strop.training.values.success import Success


def q_sharp(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: learn them
    strength: float = 10.0,  # of guidance, 1 / kappa
) -> Run:
    """The policy rests. With `values`, a saved `checkpoints/step-N/values`, attempts are guided by it."""
    resting = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, QSharp(strength), device=setting.device)
        return setting.run("q_sharp", Constant(), resting, engine=engine, rescore_every=0)
    return setting.run("q_sharp", Residual(), resting, values=Success(device=setting.device))
