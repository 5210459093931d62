"""Attempts from disturbed prompts, trained on the clean one, with the noise level as a prior.

Title: NoisyGRPO: Incentivizing Multimodal CoT Reasoning via Noise Injection and Bayesian Estimation
Paper: arXiv 2510.21122 (2025)
Claim: Better reasoning outside the training data and fewer hallucinations at 3B.
Reading: The paper noises images; here tokens of the prompt are exchanged. Nothing corrects for sampling under noise,
    as in the paper; so tokens are not scored again, either. In a talk of several turns the policy's own earlier words
    are disturbed as well.
Acts: fact/noise > 0 and credit_beside_rewards > 0
"""

from __future__ import annotations

from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.noisy_prompt import Noisy
from strop.generate.strategies.noise_levels import NoiseLevels
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.noise_posterior import NoisePosterior
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean

_LEVELS = (0.0, 0.3, 0.6, 0.9)


def noisygrpo(
    setting: Setting = Setting(group_size=4, groups_per_step=16),
    strength: float = 0.5,  # share of tokens exchanged at noise level 1
) -> Run:
    """Nothing corrects for sampling under noise, as in the paper; so tokens are not scored again, either."""
    return setting.run(
        "noisygrpo",
        NoisePosterior(),
        (Reinforce(),),
        engine=Noisy(TorchEngine(device=setting.device), _LEVELS, strength),
        strategy=NoiseLevels(_LEVELS),
        reduction=SequenceMean(),
        rescore_every=0,
    )
