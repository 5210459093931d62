"""Training of the pocket model: `python -m strop.pocket.make` writes model/ and made.json with strop's own trainer.

The same seed and steps give the same corpus and the same start; `--seconds` fits the schedule into a time instead.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import transformers

from strop.pocket.measure import CONTEXT, grades, show
from strop.pocket.shards import Shard, Shards
from strop.pocket.target_accuracy import ACCURACY
from strop.pocket.tokenizer import END, PAD, TOKEN_IDS, save_tokenizer
from strop.training.batch import Batch
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics

_SHIPPED = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
_LARGEST_BYTES = 8_000_000
_REPORTS = 20


@dataclass
class Making:
    """Settings of the training; recorded next to the model."""

    steps: int = 3200
    seconds: float | None = None  # instead of steps
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float32"
    tokens: int = 65_536  # of one step
    learning_rate: float = 2e-3
    warmup: float = 0.02  # share of the training
    workers: int = 4
    hidden: int = 192
    layers: int = 4
    tasks: int = 48  # held-out tasks per environment and level; 0: no grading
    rows: int = 1024  # rollouts decoded together while grading
    started: float = field(default_factory=time.monotonic, init=False, repr=False)

    def progress(self, step: int) -> float:
        """How much of the training is done, from 0 to 1."""
        return step / self.steps if self.seconds is None else (time.monotonic() - self.started) / self.seconds

    def rate(self, progress: float) -> float:
        """Rises linearly, then falls linearly to a fiftieth."""
        return self.learning_rate * min(progress / self.warmup + 0.01, 1.0, max(1.0 - progress, 0.02))


def new_model(folder: Path, making: Making) -> None:
    """A Llama with random weights, and its tokenizer, as a Hugging Face folder."""
    configuration = transformers.LlamaConfig(
        vocab_size=len(TOKEN_IDS),
        hidden_size=making.hidden,
        intermediate_size=making.hidden * 8 // 3,
        num_hidden_layers=making.layers,
        num_attention_heads=making.hidden // 32,
        num_key_value_heads=making.hidden // 32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        # the usual 0.02 suits a width of thousands; here it would keep logits too small and the model underconfident
        initializer_range=making.hidden**-0.5,
        bos_token_id=None,
        eos_token_id=TOKEN_IDS[END],
        pad_token_id=TOKEN_IDS[PAD],
    )
    torch.manual_seed(making.seed)
    model = transformers.LlamaForCausalLM(configuration)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True, eos_token_id=TOKEN_IDS[END], pad_token_id=TOKEN_IDS[PAD], max_new_tokens=160
    )
    model.save_pretrained(folder)
    save_tokenizer(folder, CONTEXT)


def to_batch(shard: Shard) -> Batch:
    """A shard as one rollout of many contexts; every trained token counts alike."""
    count = len(shard.tokens)
    trainable = torch.from_numpy(shard.trainable)
    num_trained = int(shard.trainable.sum())
    segments = np.repeat(np.arange(len(shard.lengths)), shard.lengths)
    starts = np.repeat(np.cumsum(shard.lengths) - shard.lengths, shard.lengths)
    return Batch(
        tokens=torch.from_numpy(shard.tokens.astype(np.int64)),
        positions=torch.from_numpy(np.arange(count) - starts),
        segments=torch.from_numpy(segments),
        rollouts=torch.zeros(count, dtype=torch.int64),
        groups=torch.zeros(1, dtype=torch.int64),
        trainable=trainable,
        behavior_logprobs=torch.zeros(count),
        advantages=torch.ones(count),
        share=trainable / num_trained,
        temperature=torch.ones(count),
        versions=torch.where(trainable, 0, -1),
        rewards=torch.zeros(1),
        successes=torch.zeros(1),
        origins=torch.zeros(1, dtype=torch.int64),
        group_numbers=(0,),
        rollout_ids=("corpus",),
        task_ids=("corpus",),
        step_tokens=num_trained,
    )


def train(trainer: TorchTrainer, making: Making, shards: Shards) -> Iterator[tuple[int, int, Metrics]]:
    """One optimizer step per shard; yields steps and tokens so far, and the metrics."""
    objective = Objective((Likelihood(),))
    tokens = 0
    for step, shard in enumerate(shards):
        if step == 0:
            # the start of the task generators is no part of the training, nor of its waiting
            making.started, shards.waited_seconds = time.monotonic(), 0.0
        if (progress := making.progress(step)) >= 1.0:
            return
        trainer.learning_rate = making.rate(progress)
        metrics = trainer.step([to_batch(shard)], objective)
        tokens += len(shard.tokens)
        yield step + 1, tokens, metrics


def make(out: Path, making: Making) -> None:
    """Train, write, grade, and record what was done."""
    model = out / "model"
    with tempfile.TemporaryDirectory() as scratch:
        start, end = Path(scratch) / "start", Path(scratch) / "end"
        new_model(start, making)
        metrics = _train(start, end, making)
        _ship(end, model)
    record: dict[str, object] = {
        "made_by": "python -m strop.pocket.make",
        "arguments": {name: value for name, value in asdict(making).items() if name != "started"},
        "versions": _versions(making.device),
        "training": metrics,
        "bytes": sum(path.stat().st_size for path in model.iterdir()),
        "accuracy": {env: {str(level): share for level, share in levels.items()} for env, levels in ACCURACY.items()},
    }
    # written before grading too: `strop.pocket.measure --record` can then add the grades on any machine
    _write(out / "made.json", record)
    if making.tasks:
        record["grades"] = show(grades(model, making.device, making.rows, making.tasks))
        _write(out / "made.json", record)


def _write(path: Path, record: dict[str, object]) -> None:
    path.write_text(json.dumps(record, indent=1) + "\n")


def _train(start: Path, end: Path, making: Making) -> Metrics:
    trainer = TorchTrainer(
        learning_rate=making.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        device=making.device,
        dtype=making.dtype,
        chunk=making.tokens,
    )
    torch.set_float32_matmul_precision("high")
    trainer.open(start, making.seed)
    shards = Shards(making.seed, making.tokens, making.workers)
    reported, metrics = 0.0, Metrics()
    for step, tokens, metrics in train(trainer, making, shards):
        seconds = time.monotonic() - making.started
        metrics = {
            "steps": step,
            "tokens": tokens,
            "seconds": round(seconds, 1),
            "tokens_per_second": round(tokens / seconds),
            "waited_for_data": round(shards.waited_seconds / seconds, 3),
            "nll": round(metrics["nll"], 4),
            "entropy": round(metrics["entropy"], 4),
        }
        if (progress := making.progress(step)) >= reported:
            print(f"{progress:4.0%} ", *(f"{name} {value}" for name, value in metrics.items()), flush=True)
            reported += 1 / _REPORTS
    end.mkdir()
    trainer.save(end)
    return metrics


def _ship(trained: Path, model: Path) -> None:
    """Only what a user of the model needs, and never more than fits."""
    model.mkdir(parents=True, exist_ok=True)
    for name in _SHIPPED:
        shutil.copyfile(trained / name, model / name)
    size = sum((model / name).stat().st_size for name in _SHIPPED)
    if size > _LARGEST_BYTES:
        raise SystemExit(f"the model has {size} bytes; at most {_LARGEST_BYTES} are shipped")


def _versions(device: str) -> dict[str, str]:
    where = torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": where,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for model/ and made.json")
    for name, kind in (("seconds", float), ("device", str), ("dtype", str), ("learning-rate", float)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Making, name.replace("-", "_")))
    for name in ("steps", "seed", "tokens", "workers", "hidden", "layers", "tasks", "rows"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Making, name))
    arguments = vars(parser.parse_args())
    make(arguments.pop("out"), Making(**arguments))


if __name__ == "__main__":
    main()
