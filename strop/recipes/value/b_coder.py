"""Q has the policy's own logits as its shape: a value is learned for it, then the logits, backed up conservatively.

Title: B-Coder: Value-Based Deep Reinforcement Learning for Program Synthesis
Paper: arXiv 2310.03173 (2023)
Claim: Better than policy-based methods in program synthesis, with little reward engineering.
Reading: Run it twice: the value learns while the policy rests, then `values`, its `checkpoints/step-N/values`, stands
    still and the logits learn. Half of each group are demonstrations. The text read prints no discount; 1 is taken.
Left out: Programs and compilers, and with them rewards between a wrong answer and none. A second value head that learns
    beside the logits, and ranking candidates by the reward that Q implies.
Acts: share/teacher > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from strop.filter.rewards.graded_answer import GradedAnswer
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.residual import Residual
from strop.training.losses.conservative_q import ConservativeQ
from strop.training.losses.reinforce import Reinforce
from strop.training.values.conservative import Conservative


def b_coder(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: learn them
    alpha: float = 1.0,  # scale of the logits in Q
    advantage: float = 0.1,  # weight of what demonstrated tokens lack to the likeliest
    imitation: float = 0.5,  # weight of demonstrations' cross-entropy
) -> Run:
    """Without `values` the value model learns and the policy rests."""
    loss = ConservativeQ(alpha, advantage=advantage, imitation=imitation) if values else Reinforce(weight=0.0)
    parts = {
        "values": Conservative(alpha, folder=values, device=setting.device),
        "strategy": Demonstrated(Demonstrate(), max(setting.group_size // 2, 1)),
    }
    run = setting.run("b_coder", Residual(), (loss,), **parts)
    run.rewards = (GradedAnswer(run.rewards[0], right=1.0, wrong=-0.3, missing=-1.0),)
    return run
