"""vLLM inside strop, on a CPU: families, ranks and whole runs, each with an engine of its own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.backends import Completion, WeightVersion
from strop.errors import ConfigurationError, DeliveryError
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.launch.running.launch import launch
from strop.models.model import load_model, parameters
from strop.placement.place import place
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.weights.fingerprint import fingerprint
from tests.generate.engines.vllm_models import LONG, PROMPT, moved
from tests.tiny_models import load_reference, reference_logprobs, save_tiny_model

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed: make vllm"),
]


@dataclass
class StaleKeys(VllmEngine):
    """The fault that users of other systems met: prefixes outlive the weights that computed them."""

    def _renew(self) -> None:
        pass

    @property
    def _salt(self) -> str:
        return "always the same"


def test_stale_keys_stop_a_run(tmp_path: Path) -> None:
    """Prompts of more than a block of 32 tokens come back, and weights move far."""
    rows = [{"prompt": "make 55 from 2 7 10 11 " * 3 + str(number), "answer": "55"} for number in range(8)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "grade.py").write_text("def length(completion):\n    return len(completion) / 64\n")
    changes: dict[str, Any] = {"env": str(tmp_path / "tasks.jsonl"), "reward": f"{tmp_path / 'grade.py'}:length"}
    changes |= {"steps": 4, "groups_per_step": 2, "group_size": 4, "heldout_tasks": 2, "learning_rate": 3e-3}
    run = replace(build(recipe_named("grpo"), changes), rescore_every=1)
    sick = replace(run, engine=StaleKeys(rows=8, device="cpu", dtype="float32"))
    with pytest.raises(DeliveryError, match="stale keys"):
        launch(sick, tmp_path, "sick")
    sound = replace(run, engine=VllmEngine(rows=8, device="cpu", dtype="float32"))
    assert launch(sound, tmp_path, "sound")["is_complete"]


# ---- families and ranks


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "gemma2", "gemma3"])
def test_other_families_are_read_back_and_give_the_right_logprobs(family: str, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, family, spread=5.0, head_dim=32, hidden_size=128)
    held, reference, prompt = parameters(load_model(folder)), load_reference(folder), PROMPT[:20] % 30 + 4
    new = moved(held, 1)
    reference.load_state_dict(new, strict=False)

    async def everything() -> Completion:
        engine = VllmEngine(rows=4, device="cpu", dtype="float32")
        engine.open(folder)
        try:
            assert engine._held() == fingerprint(held)
            assert await engine.load(WeightVersion(1, location=new)) == fingerprint(new)
            return await engine.sample(prompt, LONG, 0)
        finally:
            await engine.close()

    completion = asyncio.run(everything())
    scores = reference_logprobs(reference, np.append(prompt, completion.tokens)).numpy()[len(prompt) - 1 : -1]
    want = scores[np.arange(len(completion.tokens)), completion.tokens]
    np.testing.assert_allclose(completion.logprobs, want, atol=1e-4)


def test_a_family_that_cannot_be_read_back_is_refused(tmp_path: Path) -> None:
    engine = VllmEngine(rows=4, device="cpu", dtype="float32")
    with pytest.raises(ConfigurationError, match="cannot be used with vLLM"):
        engine.open(save_tiny_model(tmp_path, "gpt2", n_embd=64))


TWO_RANKS = """
import asyncio, sys
import numpy as np
from pathlib import Path
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.backends import WeightVersion
from strop.types import Sampling
from strop.weights.fingerprint import fingerprint
from strop.models.model import load_model, parameters
from tests.generate.engines.vllm_models import LONG, POCKET, PROMPT, moved

if __name__ == "__main__":
    two, one = VllmEngine(rows=4, device="cpu", dtype="float32", tensor_parallel=2), TorchEngine()
    two.open(POCKET)
    one.open(POCKET)
    new = moved(parameters(load_model(POCKET)), 1)
    for engine in (two, one):
        assert asyncio.run(engine.load(WeightVersion(1, location=new))) == fingerprint(new)
    ours, theirs = (asyncio.run(engine.sample(PROMPT, LONG, 3)) for engine in (two, one))
    assert ours.tokens.tolist() == theirs.tokens.tolist()
    assert np.abs(ours.logprobs - theirs.logprobs).max() < 1e-4
    print("equal", flush=True)
    sys.stdin.read()
"""


def test_two_ranks_hold_the_same_weights_as_one_and_end_with_their_parent(tmp_path: Path) -> None:
    script = tmp_path / "two_ranks.py"
    script.write_text(TWO_RANKS)
    root = str(Path(__file__).parents[3])
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root}, text=True, **pipes
    )
    assert process.stdout is not None and process.stderr is not None
    said = process.stdout.readline()
    assert said == "equal\n", process.stderr.read()[-3000:]
    children = descendants(process.pid)
    assert len(children) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < end, "workers of vLLM outlive whoever started them"
        time.sleep(0.1)


def descendants(pid: int) -> list[int]:
    own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return own + [each for child in own for each in descendants(child)]


# ---- a whole run


def test_a_run_trains_with_it_and_every_token_has_the_logprob_of_its_version(tmp_path: Path) -> None:
    """In a process of its own, while weights change; every token of the ledger is scored again by transformers."""
    sizes = {"env": "arithmetic:2", "steps": 4, "groups_per_step": 2, "group_size": 4, "heldout_tasks": 4, "lag": 2}
    run = build(recipe_named("grpo"), {**sizes, "learning_rate": 1e-3, "checkpoint_every": 1, "engine": "vllm"})
    summary = launch(place(replace(run, keep_checkpoints=0, rescore_every=1), "process"), tmp_path, "run")
    assert summary["is_complete"]
    references = [load_reference(tmp_path / "run" / "checkpoints" / f"step-{step}") for step in range(5)]
    worst, count, seen = 0.0, 0, set()
    ledger = Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    for group in ledger.history():
        for rollout in group.rollouts:
            (turn,) = rollout.turns
            context = np.append(turn.prompt, turn.tokens)
            scores = [reference_logprobs(references[each], context).numpy() for each in sorted(set(turn.versions))]
            rows = np.searchsorted(sorted(set(turn.versions)), turn.versions)
            want = np.stack(scores)[rows, np.arange(len(turn.prompt) - 1, len(context) - 1), turn.tokens]
            worst, count = max(worst, float(np.abs(want - turn.logprobs).max())), count + len(turn.tokens)
            seen |= set(turn.versions.tolist())
    ledger.close()
    print(f"{count} tokens of versions {sorted(seen)}: worst difference {worst:.1e}")
    assert count > 200 and len(seen) > 1 and worst < 1e-4
