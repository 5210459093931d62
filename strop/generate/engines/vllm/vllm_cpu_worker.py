"""vLLM worker for CPUs with readable weights and without compilation."""

from __future__ import annotations

from typing import Any

import torch
from vllm import _custom_ops
from vllm.v1.worker.cpu_worker import CPUWorker


class PlainCpuWorker(CPUWorker):  # type: ignore[misc]
    """CPU worker that multiplies with torch: oneDNN would repack the weights, so that they could not be read back."""

    def load_model(self, *arguments: Any, **named: Any) -> None:
        _custom_ops._supports_onednn = False
        torch._dynamo.config.disable = True  # the first step would wait a minute for a compiler
        super().load_model(*arguments, **named)
