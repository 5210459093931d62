"""Taking turns: a worker trains a few steps when it is told to, says how long they took, and waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import torch


class Finished(Exception):  # noqa: N818 (it is no error)
    """Nobody asks for more steps."""


@dataclass
class Stopwatch:
    """The worker's side: `stepped` after every step; waiting is not on the clock."""

    answers: TextIO
    left: int = 0
    began: tuple[float, float] = (0.0, 0.0)
    seconds: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def on_stdout(cls) -> Stopwatch:
        """Answer on what is standard output now; whatever else is printed goes to standard error."""
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        return cls(answers)

    def wait(self) -> None:
        """Take the next order, `threads steps`, or raise Finished."""
        order = sys.stdin.readline().split()
        if not order:
            raise Finished
        threads, self.left = map(int, order)
        torch.set_num_threads(threads)
        self.seconds = []
        self.began = _clocks()

    def stepped(self) -> None:
        wall, busy = _clocks()
        self.seconds.append((wall - self.began[0], busy - self.began[1]))
        self.left -= 1
        if self.left == 0:
            self.answer({"seconds": self.seconds})
            self.wait()
        else:
            self.began = _clocks()

    def answer(self, data: dict[str, Any]) -> None:
        print(json.dumps(data), file=self.answers, flush=True)


def _clocks() -> tuple[float, float]:
    """Seconds on the wall, and seconds that this process kept a core busy: the latter hardly depend on neighbours."""
    return time.perf_counter(), time.process_time()


class Worker:
    """The other side: a process that runs `script folder workload`."""

    def __init__(self, script: Path, folder: Path, workload: str, threads: int, log: TextIO) -> None:
        episode = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(folder), workload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=episode | {"HF_HUB_OFFLINE": "1"},
        )

    def steps(self, threads: int, count: int) -> list[tuple[float, float]]:
        """Seconds of each step, on the wall and of cores."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{threads} {count}\n")
        self._process.stdin.flush()
        return [(wall, busy) for wall, busy in self._answer()["seconds"]]

    def finish(self) -> list[int]:
        """End it; how many tokens each of its completions had."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        lengths: list[int] = self._answer()["lengths"]
        self._process.wait()
        return lengths

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}; see its log")
        answer: dict[str, Any] = json.loads(line)
        return answer
