"""One flow of 8-bit numbers: engine and trainer multiply the same rounded weights and activations.

Title: Jet-RL: Enabling On-Policy FP8 Reinforcement Learning with Unified Training and Rollout Precision Flow
Paper: arXiv 2601.14243 (2026)
Claim: Up to 1.33 times as fast rollouts and 1.41 times as fast training, 1.16 times in all, at the accuracy of BF16,
    where 8-bit rollouts beside BF16 training diverge.
Reading: Weights in blocks of 128 x 128, activations and output gradients 1 x 128 along what is summed, both operands of
    a weight gradient 128 x 1 along tokens; embedding, head, norms and softmax are not rounded, and neither are the
    weights that learn. Weights are published whole and rounded by whoever loads them, by the same rule. Numbers are
    rounded and then multiplied in float32, on a GPU too: the result of such a machine, without its speed. A reference
    and earlier weights are rounded as well. Sums in another order now
    and then round an activation to the other side: engine and trainer differ by 0.0013 in a logprob on average, by 0.12
    where only one of them rounds. Training is GRPO's.
Left out: Kernels that multiply eight bits; the cache of keys in eight bits.
Acts: fp8/rounding > 0.001 and drift < 0.003
"""

from __future__ import annotations

from strop.generate.engines.torch import TorchEngine
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer


def jet_rl(setting: Setting = Setting()) -> Run:
    """What is trained is what was sampled, though both round what they multiply."""
    engine = TorchEngine(device=setting.device, products="fp8")
    trainer = TorchTrainer(setting.learning_rate, device=setting.device, products="fp8")
    return setting.run("jet_rl", GroupStandard(), (Clip(),), engine=engine, trainer=trainer)
