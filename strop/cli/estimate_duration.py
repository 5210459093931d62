"""How long a run on a CPU will take, roughly, so that nobody waits for days unawares."""

from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from strop.capabilities import OnDevice, inside
from strop.models.loading.model_names import model_folder
from strop.run import Run

_RATE = 5e10  # floating-point operations per second and thread, of a middling CPU
_SECONDS_WORTH_A_WORD = 1800.0
_CHARACTERS = 3.0  # of a token


def warning(run: Run) -> str:
    """What to say before a long run on a CPU; nothing where it is short or computes elsewhere."""
    runs = [run] if run.warmup is None else [run.warmup, run]
    devices = {part.device for each in runs for part in inside((each.engine, each.trainer), OnDevice)}
    seconds = sum(expected_seconds(each, num_parameters(model_folder(run.model))) for each in runs)
    if devices != {"cpu"} or seconds < _SECONDS_WORTH_A_WORD:
        return ""
    wishes = "steps, groups_per_step, group_size" + (" and warmup_steps" if run.warmup is not None else "")
    return (
        f"on a CPU this takes about {in_words(seconds)}; on a GPU (device=cuda) minutes. "
        f"Smaller {wishes} make it shorter; Ctrl-C saves, and --resume goes on"
    )


def expected_seconds(run: Run, parameters: int) -> float:
    """6 operations per parameter and trained token, 2 per generated one; evaluations left out."""
    rollouts = run.steps * run.groups_per_step * (run.budget.size or 8)
    prompts = [len(env.task(0).messages[-1].content) / _CHARACTERS for env in run.envs]
    completion = run.sampling.max_tokens / 2
    tokens = rollouts * (sum(prompts) / max(len(prompts), 1) + completion)
    return (6 * tokens + 2 * rollouts * completion) * parameters / (_RATE * run.threads)


def num_parameters(folder: Path) -> int:
    """Counted from the headers of the weight files."""
    count = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (it is no dict)
                size = 1
                for side in file.get_slice(name).get_shape():
                    size *= side
                count += size
    return count


def in_words(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
