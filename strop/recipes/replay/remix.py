"""Two updates on every attempt and attempts of the last two policies, held near the current one; later on-policy.

Title: Squeeze the Soaked Sponge: Efficient Off-policy Reinforcement Finetuning for Large Language Model
Paper: arXiv 2507.06892 (2025)
Claim: 52.1 % with a 1.5B model from 79,000 attempts, 63.3 and 64.4 % with 7B from 7,000 and 11,000: 30 to 450 times
    fewer than others need.
Reading: The equations come from a note on the paper; its repository holds no code. The variant with groups (GRPO) in
    place of a critic: credit is given anew in every draw. Weights of the leash and of the entropy were not found:
    0.001 each, as in the library it was built on. Reincarnation is one moment: from there on no old attempts, and the
    reference is the policy of then; the optimizer goes on as it is, and so do two updates per attempt.
Left out: The critic of the PPO variant, and one update per attempt after reincarnation.
Acts: replayed_share > 0 and clip_centre != 1 and reference_share < 1 and reference_version > 0
    with reincarnation=2, hold=0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.replay.mixed import Mixed
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl_convex import KlConvex
from strop.training.losses.mixed_clip import MixedClip
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer


def remix(
    setting: Setting = Setting(),
    replayed: float = 0.4,  # share of attempts of earlier policies
    window: int = 2,  # versions that they lie behind at most
    updates: int = 2,  # on every attempt of a draw
    reincarnation: int = 50,  # version at which the reference is reset and old attempts end
    hold: int = 50,  # versions before the leash to the reference loosens
    kl: float = 0.001,  # weight of the leash
    entropy: float = 0.001,  # weight of the entropy, which is rewarded
) -> Run:
    """Off-policy and quick at first, on-policy and steady from `reincarnation` on."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    return setting.run(
        "remix",
        GroupStandard(),
        (MixedClip(0.2), KlConvex(hold, kl), Entropy(entropy)),
        buffer=Mixed(replayed, window, reincarnation, setting.seed),
        trainer=MovingReference(policy, reference, reincarnation, times=1),
        epochs=updates,
    )
