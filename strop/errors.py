"""Exceptions of strop: each message says what is wrong, with the numbers, and what to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StropError(Exception):
    """Error that is shown without a traceback."""


class ConfigurationError(StropError):
    """Run that cannot work, refused before it starts."""


class ModelError(StropError):
    """Unusable model folder."""


class DataError(StropError):
    """Unreadable task file, with file and line."""


class RewardError(StropError):
    """Reward that returned something invalid."""


class EpisodeError(StropError):
    """Step or reset that the episode's state does not allow; no reward is paid for it."""


class LLMClientError(StropError):
    """LLM client that did not answer; the caller continues without the answer."""


class UnreadVerdictError(LLMClientError):
    """Judge answer without a recognizable verdict."""


class StarvationError(StropError):
    """No batch can be filled; the message lists what each gate dropped."""


class CheckpointError(StropError):
    """Truncated or modified checkpoint."""


class DeliveryError(StropError):
    """Engine that samples from other weights than the published ones."""


class EngineError(StropError):
    """Engine that is permanently lost; the message has the number of restarts and its last error."""


class RankError(StropError):
    """Trainer rank that died or hung; the message has its number and its last output."""


class NumericsError(StropError):
    """Loss or gradient that is not finite; the weights were not changed."""


class BusyError(StropError):
    """Run folder that another process uses."""


# Names of fields in TRL, verl, OpenRLHF and transformers, by ours.
_ELSEWHERE = {
    "learning_rate": "lr actor_lr actor_learning_rate learningrate",
    "kl": "beta kl_coef kl_coeff kl_loss_coef kl_beta kl_penalty init_kl_coef",
    "group_size": "num_generations n rollout_n n_samples num_samples n_samples_per_prompt samples_per_prompt",
    "max_tokens": "max_new_tokens max_completion_length max_response_length response_length generate_max_len",
    "context": "max_seq_length max_seq_len max_model_len max_prompt_length vllm_max_model_length prompt_max_len",
    "groups_per_step": "batch_size train_batch_size per_device_train_batch_size rollout_batch_size",
    "minibatches": "ppo_mini_batch_size mini_batch_size steps_per_generation num_minibatches num_mini_batches",
    "epochs": "num_iterations ppo_epochs num_ppo_epochs",
    "steps": "max_steps num_epochs num_train_epochs total_epochs total_training_steps num_steps train_steps iterations",
    "clip": "epsilon clip_range cliprange clip_ratio eps_clip clip_eps",
    "losses.0.high": "epsilon_high clip_ratio_high eps_clip_high",
    "trainer.clip_norm": "max_grad_norm grad_clip gradient_clipping max_norm",
    "trainer.max_tokens": "gradient_accumulation_steps micro_batch_size micro_train_batch_size ppo_micro_batch_size",
    "trainer.checkpointing": "gradient_checkpointing enable_gradient_checkpointing",
    "trainer.lora": "lora lora_rank lora_r peft peft_config use_peft",
    "trainer.warmup_steps": "lr_warmup_steps num_warmup_steps warmup_ratio",
    "reward": "reward_funcs reward_fn reward_func reward_function rewards_funcs custom_reward_function",
    "rewards.0.weight": "reward_weights",
    "env": "dataset train_dataset dataset_name data data_path train_files train_file environment task tasks",
    "model": "model_name model_name_or_path model_path model_id pretrain base_model actor_model",
    "system": "system_prompt system_message sysprompt",
    "stop": "stop_strings stop_sequences stop_words stop_token stop_tokens",
    "template_arguments": "chat_template_kwargs enable_thinking apply_chat_template_kwargs thinking",
    "schedule": "lr_scheduler lr_scheduler_type lr_schedule scheduler",
    "optimizer": "optim optimizer_name",
    "checkpoint_every": "save_steps save_freq save_every save_interval",
    "keep_checkpoints": "save_total_limit max_ckpt_num",
    "heldout_every": "eval_steps test_freq eval_every eval_interval evaluation_steps",
    "heldout_tasks": "eval_size num_eval eval_samples",
    "lag": "staleness max_staleness async_steps off_policy_steps max_off_policy",
    "ranks": "num_gpus n_gpus gpus n_gpus_per_node world_size nproc_per_node num_processes",
    "engine": "use_vllm vllm inference_engine",
    "seed": "random_seed random_state",
    "device": "gpu use_cuda cuda",
    "--track": "report_to logger wandb log_with trackers_to use_wandb",
    "--name": "name run_name experiment_name exp_name output_dir out_dir save_path",
    "--dry-run": "dry dry_run",
}
_OURS = {name: ours for ours, names in _ELSEWHERE.items() for name in names.split()}

_FEW = 24  # names that can be listed; of more, the three nearest are named, however far


def is_known_elsewhere(name: str) -> bool:
    """Whether another library calls one of our fields so."""
    return name.lower() in _OURS


def nearest(name: str, valid: Iterable[str]) -> str:
    """Hint for a mistyped name."""
    names = sorted(valid)
    ours = _OURS.get(name.lower(), "")
    if ours.partition(".")[0] in names or (ours.startswith("--") and "groups_per_step" in names):
        return f"here that is {ours}"
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.4 if len(names) <= _FEW else 0.0)
    return f"did you mean {' or '.join(close)}?" if close else f"valid: {', '.join(names)}"


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """First exception within nested exception groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
