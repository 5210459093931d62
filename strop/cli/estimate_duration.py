"""Rough estimate of the duration of a run on a CPU, and the warning before a long one."""

from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from strop.capabilities import OnDevice, inside
from strop.models.loading.model_names import model_folder
from strop.run import Run

_RATE = 5e10  # floating-point operations per second and thread of an average CPU
_WARN_FROM_SECONDS = 1800.0
_CHARACTERS = 3.0  # per token


def warning(run: Run) -> str:
    """Warning before a long run on a CPU; empty if the run is short or uses another device."""
    runs = [run] if run.warmup is None else [run.warmup, run]
    devices = {part.device for each in runs for part in inside((each.engine, each.trainer), OnDevice)}
    seconds = sum(expected_seconds(each, num_parameters(model_folder(run.model))) for each in runs)
    if devices != {"cpu"} or seconds < _WARN_FROM_SECONDS:
        return ""
    settings = "steps, groups_per_step, group_size" + (" and warmup_steps" if run.warmup is not None else "")
    return (
        f"this run takes about {in_words(seconds)} on the CPU, minutes on a GPU (device=cuda); "
        f"reduce {settings} to shorten it. Ctrl-C saves a checkpoint, --resume continues"
    )


def expected_seconds(run: Run, parameters: int) -> float:
    """6 operations per parameter and trained token, 2 per generated token; evaluations are not counted."""
    rollouts = run.steps * run.groups_per_step * (run.budget.size or 8)
    prompts = [len(env.task(0).messages[-1].content) / _CHARACTERS for env in run.envs]
    completion = run.sampling.max_tokens / 2
    tokens = rollouts * (sum(prompts) / max(len(prompts), 1) + completion)
    return (6 * tokens + 2 * rollouts * completion) * parameters / (_RATE * run.threads)


def num_parameters(folder: Path) -> int:
    """Number of parameters, from the headers of the weight files."""
    count = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
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
