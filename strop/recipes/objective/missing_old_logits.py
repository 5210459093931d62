"""A symmetric mask for the engines' mismatch, PPO's clip for staleness, told apart by old logprobs.

Title: Missing Old Logits in Asynchronous Agentic RL: Semantic Mismatch and Repair Methods for Off-Policy Correction
Paper: arXiv 2605.12070 (2026)
Claim: Asynchronous training is steadier where mismatch and staleness are corrected apart.
Reading: `old` is what stands between behaviour and policy: old (exact, from kept weights) or averaged (a proxy
    without them). The paper's limit was not found; 2 is the plainest. Where engine and trainer
    agree to rounding, as here on a CPU, no token's mismatch reaches it and only the clip acts.
Left out: The two other exact repairs: a second model beside the trainer, and scoring before each publish.
Acts: staleness > 0.001 and clipped_share > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.separated import Separated
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer


def missing_old_logits(
    setting: Setting = Setting(lag=4),
    old: str = "old",  # old (exact, from kept weights) or averaged (a proxy)
    limit: float = 2.0,  # mismatch beyond limit or 1 / limit masks a token
) -> Run:
    """policy / behaviour = mismatch * staleness, each with a rule of its own."""
    snapshots, window = (setting.lag + 1, 0) if old == "old" else (0, max(setting.lag, 1))
    return setting.run(
        "missing_old_logits",
        GroupStandard(),
        (Clip(anchor=old),),
        correction=Separated(limit, old),
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, snapshots=snapshots, average_window=window
        ),
    )
