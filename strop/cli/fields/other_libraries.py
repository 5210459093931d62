"""Names of TRL's and verl's fields beside ours, and a command in the making."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

# Of TRL: the same thing under our name.
TRL = {
    "model_name_or_path": "model",
    "learning_rate": "learning_rate",
    "seed": "seed",
    "max_steps": "steps",
    "temperature": "temperature",
    "top_p": "sampling.top_p",
    "top_k": "sampling.top_k",
    "max_completion_length": "max_tokens",
    "num_generations": "group_size",
    "vllm_max_model_length": "context",
    "weight_decay": "trainer.weight_decay",
    "max_grad_norm": "trainer.clip_norm",
    "warmup_steps": "trainer.warmup_steps",
    "save_steps": "checkpoint_every",
    "eval_steps": "heldout_every",
    "delta": "losses.0.dual",
    "steps_per_generation": "minibatches",
    "num_iterations": "epochs",
    "vllm_gpu_memory_utilization": "engine.memory",
}
# Fields that GRPOConfig has and DPOConfig has not.
ONLINE = {
    "num_generations",
    "max_completion_length",
    "reward_funcs",
    "epsilon",
    "importance_sampling_level",
    "steps_per_generation",
    "num_iterations",
}
TRL_LOSSES = {
    "grpo": "grpo",
    "dapo": "dapo",
    "bnpo": "dapo",
    "dr_grpo": "dr_grpo",
    "cispo": "cispo",
    "sapo": "sapo_soft",
    "sigmoid": "dpo",
    "ipo": "ipo",
}
# Of verl, below data., actor_rollout_ref. and trainer.
VERL = {
    "actor_rollout_ref.model.path": "model",
    "actor_rollout_ref.model.lora_rank": "trainer.lora",
    "actor_rollout_ref.actor.optim.lr": "learning_rate",
    "actor_rollout_ref.actor.optim.weight_decay": "trainer.weight_decay",
    "actor_rollout_ref.actor.optim.lr_warmup_steps": "trainer.warmup_steps",
    "actor_rollout_ref.actor.grad_clip": "trainer.clip_norm",
    "actor_rollout_ref.actor.ppo_epochs": "epochs",
    "actor_rollout_ref.rollout.n": "group_size",
    "actor_rollout_ref.rollout.temperature": "temperature",
    "actor_rollout_ref.rollout.top_p": "sampling.top_p",
    "actor_rollout_ref.rollout.top_k": "sampling.top_k",
    "actor_rollout_ref.rollout.gpu_memory_utilization": "engine.memory",
    "data.train_batch_size": "groups_per_step",
    "data.max_response_length": "max_tokens",
    "data.seed": "seed",
    "trainer.total_training_steps": "steps",
    "trainer.save_freq": "checkpoint_every",
    "trainer.test_freq": "heldout_every",
    "algorithm.lam": "trace",
}
ESTIMATORS = {
    "grpo": "grpo",
    "gae": "ppo",
    "rloo": "rloo",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "reinforce_plus_plus_baseline": "reinforce_plus_plus",
}
FIELDS_OF = {  # fields that one recipe has and others have not
    "trace": {"ppo"},
    "kl": {"grpo", "reinforce_plus_plus"},
    "beta": {"dpo"},
    "tau": {"ipo"},
}
# What strop decides by itself, or where it writes: said once, without alarm.
NEEDLESS = re.compile(
    r"bf16|fp16|gradient_checkpointing|output_dir|logging_steps|logging_strategy|log_completions|run_name|use_vllm|"
    r"vllm_mode|vllm_server|remove_unused_columns|dataloader|save_strategy|save_total_limit|eval_strategy|do_eval|"
    r"overwrite_output_dir|disable_dropout|push_to_hub|hub_|tf32|torch_dtype|dtype|attn_implementation|ddp_|"
    r"per_device_eval|report_to|save_only_model|trust_remote_code|packing|precompute_ref|"
    r".*micro_batch|.*max_token_len|.*dynamic_bsz|.*remove_padding|.*fsdp|.*offload|.*megatron|.*enable_gradient|"
    r".*tensor_model_parallel|.*enforce_eager|.*free_cache|.*load_format|.*max_num|.*chunked_prefill|.*dtype|.*strategy|"
    r"trainer\.(logger|project_name|experiment_name|n_gpus|nnodes|val_|default_|resume|device|balance)|"
    r"data\.(truncation|filter|shuffle|return|prompt_key)|actor_rollout_ref\.rollout\.(name|mode|val_kwargs)|"
    r"ray_|hydra|defaults|config_name|critic\..*(batch|fsdp|path)|.*ulysses|.*entropy_from|.*torch_compile"
)


@dataclass
class Converted:
    """A command in the making, and what could not be carried over."""

    recipe: str
    values: dict[str, Any] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)  # fields without a counterpart, with a reason
    needless: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def command(self) -> str:
        words = [f"{name}={_text(value)}" for name, value in self.values.items() if value is not None]
        return shlex.join(["strop", "train", self.recipe, *words])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
