"""SeeUPO (2602.06554): turn by turn from the last to the first, one update each, by sequences, without a critic."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.sequence_standard import SequenceStandard
from strop.train.losses.gspo import Gspo
from strop.train.losses.kl import Kl
from strop.train.reductions.sequence_mean import SequenceMean
from strop.train.trainers.torch import TorchTrainer
from strop.train.trainers.turn_by_turn import TurnByTurn


def seeupo(setting: Setting = Setting(world="guess:2"), clip: float = 0.2, kl: float = 0.002) -> Run:
    """The trainer makes as many steps per draw as the longest attempt has turns."""
    trainer = TurnByTurn(TorchTrainer(learning_rate=setting.learning_rate, device=setting.device))
    losses = (Gspo(clip, clip), Kl("k3", kl))
    return setting.run("seeupo", SequenceStandard(), losses, trainer=trainer, reduction=SequenceMean())
