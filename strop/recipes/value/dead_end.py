"""Learn which tokens lead to replies that end wrong, then decode with those tokens capped.

Title: Systematic Rectification of Language Models via Dead-end Analysis
Paper: arXiv 2302.14003 (2023)
Claim: Less toxic text than other controlled decoding, by a small value model that needs only the output distribution.
Reading: Undesired is a wrong answer. Run it twice: the policy rests while the value learns, then `values`, its
    `checkpoints/step-N/values`, caps the next token's probability at 1 + Q - margin. As released: three passes over
    what was sampled, a slow copy that follows by 0.1, a margin of 0.1. The value is that of the replies that were seen,
    so where most of them are wrong every cap is low: after 4 steps of learning on arithmetic:4, 0 of 8 held-out tasks
    were solved with caps and 2 without. It is for worlds in which most replies end well, as most texts are not toxic.
Left out: A value model that is smaller than the policy.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from strop.generate.engines.wrappers.guided import Guided
from strop.generate.guidances.capped import Capped
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.residual import Residual
from strop.training.losses.reinforce import Reinforce
from strop.training.values.dead_end import DeadEnd


def dead_end(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: learn them
    margin: float = 0.1,  # below the cap that the value allows
) -> Run:
    """The policy rests. With `values`, a saved `checkpoints/step-N/values`, attempts are capped by it."""
    resting = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, Capped(margin), device=setting.device)
        return setting.run("dead_end", Constant(), resting, engine=engine, rescore_every=0)
    return setting.run("dead_end", Residual(), resting, values=DeadEnd(device=setting.device))
