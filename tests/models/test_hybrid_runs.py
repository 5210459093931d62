"""GRPO runs from the command line on tiny models of families with states, sinks, chunks and experts: they learn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from strop.pocket.tokenizer import END, PAD, TOKEN_IDS, VOCABULARY, save_tokenizer
from tests.models.state_models import COMMON, MASKS_ALONE, PARTS

pytestmark = pytest.mark.families
RIGHT = sorted(set(PARTS) - set(MASKS_ALONE))
_REWARD = """\
def share(completion: str) -> float:
    \"\"\"Of digits.\"\"\"
    return sum(each.isdigit() for each in completion) / max(len(completion), 1)
"""


def save_speaker(folder: Path, family: str) -> Path:
    """A random model that speaks the bundled model's language."""
    torch.manual_seed(0)
    ends = {
        "vocab_size": len(VOCABULARY),
        "bos_token_id": None,
        "eos_token_id": TOKEN_IDS[END],
        "pad_token_id": TOKEN_IDS[PAD],
    }
    config = CONFIG_MAPPING[family](**COMMON | PARTS[family] | ends | {"initializer_range": 0.06})
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    save_tokenizer(folder, 512)
    return folder


@pytest.mark.parametrize("family", RIGHT)
def test_grpo_learns_and_rescores_what_it_sampled(tmp_path: Path, family: str) -> None:
    save_speaker(tmp_path / "model", family)
    (tmp_path / "digits.py").write_text(_REWARD)
    tasks = [{"prompt": f"{i}+{i + 1}=", "answer": str(2 * i + 1)} for i in range(64)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tasks))
    steps = 50
    fields = f"steps={steps} groups_per_step=4 group_size=8 max_tokens=12 heldout_tasks=4 kl=0 rescore_every=1"
    fields += " trainer.learning_rate=0.006 allow_constant_completions=true"
    command = [
        sys.executable,
        "-m",
        "strop",
        "train",
        "grpo",
        "model=model",
        "env=tasks.jsonl",
        "reward=digits.py:share",
    ]
    done = subprocess.run([*command, *fields.split(), "--name", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "runs/run/metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward"] for line in lines if "reward" in line]
    worst = [line["rescored_difference_max"] for line in lines if "rescored_difference_max" in line]
    print(
        family,
        f"reward {rewards[0]:.2f} -> {sum(rewards[-3:]) / 3:.2f}, rescored {max(worst):.1e} in {len(worst)} steps",
    )
    assert len(worst) == steps and max(worst) < 1e-5
    assert sum(rewards[-3:]) / 3 > rewards[0] + 0.1
