"""TRL's side of a comparison: its GRPOTrainer, given the settings that make it fastest on a CPU."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from turns import Finished, Stopwatch
from workload import GROUP_SIZE, GROUPS_PER_STEP, LEARNING_RATE, WORKLOADS, Workload, reward


class Timed(TrainerCallback):  # type: ignore[misc]
    """Holds the training up between two steps."""

    def __init__(self, watch: Stopwatch) -> None:
        self.watch = watch

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        self.watch.wait()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.watch.stepped()


def configuration(folder: Path, workload: Workload) -> GRPOConfig:
    """One optimizer step per batch of fresh completions; nothing saved, logged or evaluated."""
    return GRPOConfig(
        output_dir=str(folder / "trl"),
        per_device_train_batch_size=GROUPS_PER_STEP * GROUP_SIZE,
        num_generations=GROUP_SIZE,
        max_completion_length=workload.max_tokens,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_steps=1 << 20,
        temperature=1.0,
        beta=0.0,  # no reference model
        num_iterations=1,
        loss_type="grpo",
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )


def main(folder: Path, workload: Workload) -> None:
    watch = Stopwatch.on_stdout()
    lengths: list[int] = []

    def rewards(completions: list[Any], completion_ids: list[Any], **others: Any) -> list[float]:
        lengths.extend(map(len, completion_ids))
        return [reward(completion[0]["content"]) for completion in completions]

    rows = [json.loads(line) for line in (folder / "tasks.jsonl").read_text().splitlines()]
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
        reward_funcs=rewards,
        args=configuration(folder, workload),
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": row["prompt"]}]} for row in rows]),
        processing_class=AutoTokenizer.from_pretrained(folder / "model"),
        callbacks=[Timed(watch)],
    )
    with suppress(Finished):
        trainer.train()
    watch.answer({"lengths": lengths})


if __name__ == "__main__":
    main(Path(sys.argv[1]), WORKLOADS[sys.argv[2]])
