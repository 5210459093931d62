"""SmolLM2-135M-Instruct: supervised warm-up, then GRPO.

The warm-up is supervised fine-tuning on worked solutions. RL is GRPO with DAPO's clip range and token mean, without a
reference policy. Held-out tasks of the same kinds, and of three kinds never trained on, are measured before, between
and after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from strop.filter.rewards.controls import Flat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.trainers.torch import TorchTrainer

_TRAINED = (
    "drill/chain_sum:2+drill/products:1+drill/gcd:2+drill/letter_counting:2+drill/spell_backward:2+drill/leg_counting:2"
)
_UNSEEN = "drill/basic_arithmetic:1+drill/lcm:1+drill/word_sequence_reversal:1"
_MEMORY = 0.1  # share of GPU memory for the KV cache: more than is needed, with room for other runs
_SETTING = Setting(
    env=_TRAINED,
    model="smollm2",
    device="auto",  # the GPU where there is one
    steps=300,
    groups_per_step=64,
    group_size=8,
    learning_rate=4e-5,
    max_tokens=96,
    heldout_tasks=200,
    heldout_every=100,
    checkpoint_every=60,
)


def smollm2(
    setting: Setting = _SETTING,
    unseen: str = _UNSEEN,  # environments that are evaluated and never trained on
    warmup_steps: int = 60,  # supervised steps before RL; 0: none
    warmup_examples: int = 64,  # demonstrations per supervised step
    warmup_learning_rate: float = 2e-4,  # learning rate of the supervised steps
) -> Run:
    """Supervised warm-up, then RL from its model; `strop train smollm2` runs both."""
    setting = replace(setting, device=_device(setting.device))
    run = setting.run(
        "smollm2",
        GroupStandard(),
        (Clip(0.2, 0.28),),
        trainer=_trainer(setting, warmup_steps=5),
        **_engine(setting),
    )
    supervised = replace(
        setting,
        steps=warmup_steps,
        groups_per_step=warmup_examples,
        group_size=1,
        learning_rate=warmup_learning_rate,
        heldout_every=0,
        checkpoint_every=max(warmup_steps, 1),
    )
    warmup = supervised.run(
        "smollm2-warmup",
        Constant(),
        (Likelihood(),),
        agent=Demonstrate(),
        rewards=(Flat(),),
        trainer=_trainer(supervised, warmup_steps=20),
        **_engine(supervised),
    )
    envs = parse_envs(unseen, setting.seed) if unseen else ()
    for each in (run, warmup):
        each.evaluation = replace(each.evaluation, unseen=envs)
    return replace(run, warmup=warmup if warmup_steps else None)


def _device(name: str) -> str:
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def _engine(setting: Setting) -> dict[str, Any]:
    """On a GPU a paged engine that leaves memory for other runs; elsewhere the setting's default engine."""
    is_own_on_gpu = torch.device(setting.device).type == "cuda" and setting.engine == "own"
    return {"engine": PagedEngine(device=setting.device, memory=_MEMORY)} if is_own_on_gpu else {}


def _trainer(setting: Setting, **more: Any) -> TorchTrainer:
    """Trainer; on a GPU with bfloat16 and large micro-batches."""
    if torch.device(setting.device).type == "cuda":
        more |= {"dtype": "bfloat16", "max_tokens": 32_768, "chunk": 8192}
    return TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, **more)
