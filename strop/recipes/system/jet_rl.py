"""One flow of 8-bit numbers: engine and trainer multiply the same rounded weights and activations.

Title: Jet-RL: Enabling On-Policy FP8 Reinforcement Learning with Unified Training and Rollout Precision Flow
Paper: arXiv 2601.14243 (2026)
Claim: Up to 1.33 times as fast rollouts and 1.41 times as fast training, 1.16 times in all, at the accuracy of BF16,
    where 8-bit rollouts beside BF16 training diverge.
Reading: Weights in blocks of 128 x 128, activations and output gradients 1 x 128 along what is summed, both operands of
    a weight gradient 128 x 1 along tokens; embedding, head, norms and softmax are not rounded, and neither are the
    weights that learn. The trainer rounds them once for every change and publishes codes and scales, which are all that
    an engine holds. A GPU of the Hopper generation multiplies eight bits; what a block adds is summed in
    float32 in one order whatever the number of rows, so a row's product has the same bits in both: with random weights
    of 1.5 billion and 16, 100 or 256 rows, logprobs of engine and trainer differ by 4e-7 on average. Elsewhere what
    eight bits hold is multiplied in float32: sums in another order now and then round an activation to the other side,
    and on a CPU engine and trainer differ by 0.0008 in a logprob on average. A reference and earlier weights are
    rounded as well. Training is GRPO's.
Left out: The cache of keys in eight bits.
Acts: fp8/rounding > 0.001 and drift < 0.003
"""

from __future__ import annotations

from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer


def jet_rl(setting: Setting = Setting()) -> Run:
    """What is trained is what was sampled, though both round what they multiply."""
    kind = PagedEngine if setting.device.startswith("cuda") else TorchEngine
    engine = kind(device=setting.device, products="fp8")
    trainer = TorchTrainer(setting.learning_rate, device=setting.device, products="fp8")
    return setting.run("jet_rl", GroupStandard(), (Clip(),), engine=engine, trainer=trainer)
