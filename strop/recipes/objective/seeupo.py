"""Turn by turn from the last to the first, one update each, by sequences, without a critic.

Title: SeeUPO: Sequence-Level Agentic-RL with Convergence Guarantees
Paper: arXiv 2602.06554 (2026)
Claim: 43.3 to 54.6 % above its baselines with Qwen3-14B, 24.1 to 41.9 % with Qwen2.5-14B.
Reading: A turn's ratio is the geometric mean over its tokens, as released; attempts without a turn keep their weight.
Acts: turns_updated > 1
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.sequence_standard import SequenceStandard
from strop.training.losses.gspo import Gspo
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.turn_by_turn import TurnByTurn


def seeupo(
    setting: Setting = Setting(world="guess:2"),
    clip: float = 0.2,
    kl: float = 0.002,  # weight of the penalty to the reference
) -> Run:
    """The trainer makes as many steps per draw as the longest attempt has turns."""
    trainer = TurnByTurn(TorchTrainer(learning_rate=setting.learning_rate, device=setting.device))
    losses = (Gspo(clip, clip), Kl("k3", kl))
    return setting.run("seeupo", SequenceStandard(), losses, trainer=trainer, reduction=SequenceMean())
