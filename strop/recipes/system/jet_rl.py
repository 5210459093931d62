"""Jet-RL: GRPO with one FP8 precision flow; engine and trainer multiply the same rounded weights and activations.

Title: Jet-RL: Enabling On-Policy FP8 Reinforcement Learning with Unified Training and Rollout Precision Flow
Paper: arXiv 2601.14243 (2026)
Claim: Up to 1.33 times as fast rollouts and 1.41 times as fast training, 1.16 times in all, at the accuracy of BF16,
    where 8-bit rollouts with BF16 training diverge.
Reading: Weights are quantized in blocks of 128 x 128, activations and output gradients 1 x 128 along the summed
    dimension, both operands of a weight gradient 128 x 1 along tokens. Embedding, head, norms, softmax and the master
    weights are not quantized. The trainer quantizes once per update and publishes codes and scales; an engine holds
    nothing else. A Hopper GPU multiplies in 8 bits and accumulates blocks in float32 in one order for any number of
    rows, so a row's product has the same bits in engine and trainer: with random weights of 1.5 billion and 16, 100 or
    256 rows, their logprobs differ by 4e-7 on average. Other devices multiply the quantized values in float32; another
    order of summation sometimes rounds an activation the other way, and on a CPU the logprobs differ by 0.0008 on
    average. Reference and earlier weights are quantized as well.
Left out: The key-value cache in 8 bits.
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
    """GRPO with FP8 matrix products in engine and trainer."""
    kind = PagedEngine if setting.device.startswith("cuda") else TorchEngine
    engine = kind(device=setting.device, matmul_precision="fp8")
    trainer = TorchTrainer(setting.learning_rate, device=setting.device, matmul_precision="fp8")
    return setting.run("jet_rl", GroupStandard(), (Clip(),), engine=engine, trainer=trainer)
