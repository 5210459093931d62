"""Sweep over every causal family of transformers: a tiny twin of each, loaded by strop and judged by transformers.

    python -m tests.models.sweep [jobs=N] [only=llama,gpt2] [again=red|accepted|all]

What is known of this version of transformers is left out, unless `again` asks for those that are wrong or failed (red),
for those that run or are red (accepted), or for all. It is written after every few families, so that it goes on where
it was stopped. strop/models/loading/families.json is the table; docs/models.md and what the loader says of families
come from it.
"""

from __future__ import annotations

import gc
import inspect
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from strop.models.loading.tiny_twin import WINDOW, save_twin, tiny_twin
from tests.models.judge import Judgement, alone_in, judged
from tests.models.page import PAGE, page_of
from tests.tiny_models import save_tokenizer

TABLE = Path(__file__).parents[2] / "strop/models/loading/families.json"
DEADLINE = 120.0  # seconds of a family
_OFTEN = 10  # families between writes
# what the defaults of a configuration leave open, so that no model of them can be built
_HYBRID = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
_COMPLETED: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    "deepseek_v2": {"num_experts_per_tok": 6, "topk_method": "greedy"},
    "dots1": {"n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "granitemoehybrid": {"layer_types": _HYBRID * 8},
    "hrm_text": {"num_hidden_layers": 16, "num_layers_per_stack": 2},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "lfm2": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 8},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 8},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
    "qwen4_exp": {},
    "xlstm": {"qk_dim_factor": 1.0},
}
Table = dict[str, Judgement]


def families() -> list[str]:
    """All that transformers can make a causal language model of."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def read_table(path: Path = TABLE) -> Table:
    """What is known of this version of transformers; nothing of another one."""
    found = json.loads(path.read_text()) if path.is_file() else {}
    if found.get("transformers") != transformers.__version__:
        return {}
    return {name: Judgement(**row) for name, row in found["families"].items()}


def write_table(found: Mapping[str, Judgement], path: Path = TABLE) -> None:
    """One line for each family, in order."""
    rows = [f"{json.dumps(name)}: {json.dumps(_row(found[name]))}" for name in sorted(found)]
    version = json.dumps(transformers.__version__)
    path.write_text(f'{{"transformers": {version}, "families": {{\n' + ",\n".join(rows) + "\n}}\n")


def _row(judgement: Judgement) -> dict[str, Any]:
    """Two digits of each difference: what is further behind depends on the processor."""
    told = {name: float(f"{each:.1e}") if isinstance(each, float) else each for name, each in asdict(judgement).items()}
    return {name: each for name, each in told.items() if each or name == "verdict"}


def twin_of(family: str, folder: Path) -> None:
    """The folder of a tiny twin with windows wherever the family can have them."""
    config = AutoConfig.for_model(family, **_COMPLETED.get(family, {}))
    if "is_decoder" in config.to_dict():
        config.is_decoder = True  # of families that can also be encoders
    save_tokenizer(folder)
    try:
        save_twin(_windowed(tiny_twin(config, sets_windows=True)), folder)
    except Exception:  # a family that has no windows beside something else
        save_twin(tiny_twin(config), folder)


def _windowed(config: Any) -> Any:
    """With a window also where only the model's code knows that there can be one."""
    code = inspect.getsource(inspect.getmodule(MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]) or object)
    if 'config, "sliding_window"' in code and not hasattr(config, "sliding_window"):
        config.sliding_window = WINDOW
    return config


def verdict(family: str, folder: Path) -> Judgement:
    """The judgement on a family, or why transformers cannot build it."""
    try:
        twin_of(family, folder)
        with torch.no_grad():
            is_finite = bool(alone_in(folder)(input_ids=torch.arange(3, 60)[None]).logits.isfinite().all())
        if not is_finite:
            return Judgement("unbuilt", "its twin's logits are not finite")
    except Exception as error:
        return Judgement("unbuilt", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])
    found = judged(folder)
    return replace(found, why=found.why.partition(" Families that run")[0].replace(f"{folder}: ", ""))


def played(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Judgement, float]]:
    """Judgements as they come, each from a process of its own, forked so that imports are paid once."""
    fork, waiting, running = multiprocessing.get_context("fork"), list(reversed(names)), dict[str, Any]()
    gc.collect()
    gc.freeze()  # or each child would look through, and so copy, all that was imported
    while waiting or running:
        while waiting and len(running) < jobs:
            name, (mine, theirs) = waiting.pop(), fork.Pipe(duplex=False)
            process = fork.Process(target=_child, args=(name, theirs))
            process.start()
            theirs.close()
            running[name] = process, mine, time.monotonic()
        for name, (process, answer, begun) in list(running.items()):
            seconds = time.monotonic() - begun
            if (found := _outcome(process, answer, seconds)) is not None:
                process.kill()
                process.join()
                del running[name]
                yield name, found, seconds
        time.sleep(0.02)


def _outcome(process: Any, answer: Connection, seconds: float) -> Judgement | None:
    if answer.poll():
        try:
            return Judgement(**answer.recv())
        except EOFError:
            process.join()
            return Judgement("failed", f"the process died with {process.exitcode}")
    return Judgement("failed", f"not over after {DEADLINE:.0f} s") if seconds > DEADLINE else None


def _child(name: str, answer: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        answer.send(asdict(verdict(name, Path(folder))))
    answer.close()
    os._exit(0)


def swept(names: Sequence[str], jobs: int, found: Table) -> Table:
    """The table with these families judged anew."""
    try:
        for place, (name, judgement, seconds) in enumerate(played(names, jobs), 1):
            found[name] = judgement
            worst = max(judgement.trainer, judgement.gradient, judgement.engine)
            told = judgement.why[:150] or f"{worst:.1e}"
            print(f"{place}/{len(names)} {name} {seconds:.1f}s {judgement.verdict}: {told}", flush=True)
            if place % _OFTEN == 0:
                write_table(found)
    finally:
        write_table(found)
    return found


def is_asked(judgement: Judgement | None, again: str) -> bool:
    if judgement is None or again == "all":
        return True
    return (again in ("red", "accepted") and judgement.is_red) or (again == "accepted" and judgement.verdict == "runs")


def main(words: Sequence[str]) -> None:
    asked = dict(word.split("=", 1) for word in words)
    found, again = read_table(), asked.get("again", "")
    named = asked["only"].split(",") if "only" in asked else None
    names = named or [name for name in families() if is_asked(found.get(name), again)]
    found = swept(names, int(asked.get("jobs", "1")), found)
    PAGE.write_text(page_of(found))


if __name__ == "__main__":
    main(sys.argv[1:])
