"""vLLM's worker for CPUs, with weights that stay readable and nothing that is compiled first."""

from __future__ import annotations

from typing import Any

import torch
from vllm import _custom_ops
from vllm.v1.worker.cpu_worker import CPUWorker


class PlainCpuWorker(CPUWorker):  # type: ignore[misc]
    """Multiplies with torch: oneDNN would take weights in an order of its own and leave nothing to read back."""

    def load_model(self, *arguments: Any, **named: Any) -> None:
        _custom_ops._supports_onednn = False
        torch._dynamo.config.disable = True  # the first step would wait a minute for a compiler
        super().load_model(*arguments, **named)
