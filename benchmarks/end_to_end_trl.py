"""TRL's side of end_to_end.py: its GRPOTrainer with the settings that make it fastest on one device."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from end_to_end import LEARNING_RATE, figures, tasks
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from strop.environments.external.reasoning_gym_small import tagged

_NUM_TASKS = 1200


class Timed(TrainerCallback):  # type: ignore[misc]
    """Notes when steps end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.ends.append(time.perf_counter())


def configuration(folder: Path, arguments: argparse.Namespace) -> GRPOConfig:
    """One optimizer step per batch of fresh completions, in micro-batches; nothing saved, logged or evaluated."""
    is_gpu = torch.device(arguments.device).type == "cuda"
    rollouts = arguments.groups * arguments.group_size
    micro = min(arguments.trl_batch, rollouts)
    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rollouts // micro,
        steps_per_generation=rollouts // micro,
        num_generations=arguments.group_size,
        max_completion_length=arguments.max_tokens,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_steps=arguments.warm + arguments.steps,
        temperature=1.0,
        beta=0.0,  # no reference model
        num_iterations=1,
        loss_type="grpo",
        gradient_checkpointing=False,
        use_cpu=not is_gpu,
        bf16=is_gpu,
        optim="adamw_torch_fused",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )


def trl_side(model: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run and its figures."""
    timed, lengths = Timed(), []  # type: ignore[var-annotated]

    def rewards(completions: list[Any], completion_ids: list[Any], answer: list[str], **others: Any) -> list[float]:
        lengths.extend(map(len, completion_ids))
        said = [completion[0]["content"] for completion in completions]
        return [float(tagged(text) == right) for text, right in zip(said, answer, strict=True)]

    rows = [
        {"prompt": [{"role": "user", "content": task.messages[0].content}], "answer": task.answer}
        for task in tasks(_NUM_TASKS)
    ]
    dtype = torch.bfloat16 if torch.device(arguments.device).type == "cuda" else torch.float32
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=dtype, attn_implementation="sdpa"),
        reward_funcs=rewards,
        args=configuration(model.parent / "trl-output", arguments),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(model),
        callbacks=[timed],
    )
    trainer.train()
    ends = timed.ends[arguments.warm - 1 :]
    rollouts = arguments.groups * arguments.group_size
    tokens = sum(lengths[-rollouts * (len(ends) - 1) :])
    return figures(ends, float(tokens), lengths, arguments)
