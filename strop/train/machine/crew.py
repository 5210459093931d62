"""Processes that work as one: started, given orders and asked for answers together, and ended together.

A rank that dies or hangs is named with its last words; the others are ended too, because they would wait for it.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from strop import errors
from strop.errors import RankError, StropError
from strop.train.machine.wire import give_order

_GRACE = 3.0  # seconds in which the others may fail too, so that the first one to fail can be told
_LAST_LINES = 12
_SHARED_MEMORY = Path("/dev/shm")
_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": _LOOPBACK,
    "NCCL_SOCKET_IFNAME": _LOOPBACK,
    "TQDM_DISABLE": "1",  # progress bars are no last words
}

Answers: TypeAlias = dict[int, dict[str, Any]]  # by rank


class Crew:
    """`size` ranks, each a process with one thread; `scratch` is a folder that all of them see."""

    def __init__(self, settings: Any, size: int, seconds: float, room: int) -> None:
        self.seconds = seconds
        self.scratch = _scratch(room)
        self._processes = [_start(self.scratch, rank) for rank in range(size)]
        self._end = weakref.finalize(self, _dismiss, self._processes, self.scratch)
        setup = {"path": sys.path, "settings": pickle.dumps(settings), "ranks": size, "seconds": seconds}
        setup["trainer"] = os.getpid()
        for rank, process in enumerate(self._processes):
            _tell(process, setup | {"rank": rank, "scratch": str(self.scratch)})

    def ask(self, verb: str, orders: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """One order for each rank; returns their answers once all of them have answered."""
        if not self.is_alive:
            raise RankError(f"there are no ranks left to {verb}: resume the run from its newest checkpoint")
        for process, order in zip(self._processes, orders, strict=True):
            _tell(process, {"verb": verb, **order})
        everybody = range(len(self._processes))
        answers = self._collect(everybody, self.seconds)
        missing = [rank for rank in everybody if rank not in answers]
        if missing or _failed(answers):
            raise self._failure(verb, answers | self._collect(missing, _GRACE, until_failure=False))
        return [answers[rank] for rank in everybody]

    @property
    def is_alive(self) -> bool:
        return self._end.alive

    def close(self) -> None:
        """End every rank and remove what they left; may be called twice."""
        self._end()

    def stacks(self, seconds: float = 3.0) -> str:
        """What every rank is doing, as its interpreter itself tells; from any thread."""
        logs = [_log(self.scratch, rank) for rank in range(len(self._processes))]
        before = [log.stat().st_size for log in logs]
        for process in self._processes:
            process.send_signal(signal.SIGUSR1)
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(
            log.stat().st_size == size for log, size in zip(logs, before, strict=True)
        ):
            time.sleep(0.01)
        time.sleep(0.05)  # the rest of it
        said = [log.read_bytes()[start:].decode(errors="replace") for log, start in zip(logs, before, strict=True)]
        return "".join(f"rank {rank}\n{text or 'does not answer SIGUSR1'}\n" for rank, text in enumerate(said))

    def _collect(self, ranks: Iterable[int], seconds: float, until_failure: bool = True) -> Answers:
        """Wait until all these ranks have answered, one has failed, or the time is over."""
        deadline, answers = time.monotonic() + seconds, Answers()
        with selectors.DefaultSelector() as selector:
            for rank in ranks:
                selector.register(self._processes[rank].stdout, selectors.EVENT_READ, rank)  # type: ignore[arg-type]
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    selector.unregister(key.fileobj)
                    answers[key.data] = self._answer(key.data)
                if until_failure and _failed(answers):
                    break
        return answers

    def _answer(self, rank: int) -> dict[str, Any]:
        stdout = self._processes[rank].stdout
        assert stdout is not None
        line = stdout.readline()
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        return {
            "error": f"died ({_ending(self._processes[rank])})",
            "kind": "",
            "at": time.monotonic(),
            "is_dead": True,
        }

    def _failure(self, verb: str, answers: Answers) -> StropError:
        """What went wrong, and where first; unless all ranks refuse alike, they are out of step and ended."""
        kinds = {answer.get("kind") for answer in answers.values()}
        size = len(self._processes)
        first = min(
            _failed(answers), key=lambda rank: ("is_dead" not in answers[rank], answers[rank]["at"]), default=None
        )
        if first is not None and len(answers) == size and len(kinds) == 1 and kinds != {""}:
            return _as_told(answers[first])
        words = {rank: _last_words(self.scratch, rank) for rank in range(size)}
        for process in self._processes:
            process.kill()
        self.close()
        if first is None:
            silent = [rank for rank in range(size) if rank not in answers]
            said = "\n".join(f"rank {rank}: {words[rank]}" for rank in silent)
            return RankError(f"ranks {silent} of {size} gave no answer to {verb} within {self.seconds:g} s\n{said}")
        if answers[first]["kind"]:
            return _as_told(answers[first])
        return RankError(f"rank {first} of {size} {answers[first]['error']} when told to {verb}\n{words[first]}")


def _failed(answers: Answers) -> list[int]:
    return [rank for rank, answer in answers.items() if "error" in answer]


def _as_told(answer: dict[str, Any]) -> StropError:
    kind = getattr(errors, answer["kind"], StropError)
    told: StropError = kind(answer["error"])
    return told


def _start(scratch: Path, rank: int) -> subprocess.Popen[bytes]:
    with _log(scratch, rank).open("wb") as log:
        return subprocess.Popen(
            (sys.executable, "-m", "strop.train.machine.rank"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the run, which then ends its ranks
            env={**os.environ, **_ENVIRONMENT},
        )


def _tell(process: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # a dead rank has no answer either, and then it is told
        give_order(process.stdin, order)


def _dismiss(processes: Sequence[subprocess.Popen[bytes]], scratch: Path) -> None:
    for process in processes:
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()  # an idle rank ends by itself
    deadline = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
    shutil.rmtree(scratch, ignore_errors=True)


def _ending(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return "closed its pipe"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _log(scratch: Path, rank: int) -> Path:
    return scratch / f"rank-{rank}.log"


def _last_words(scratch: Path, rank: int) -> str:
    lines = _log(scratch, rank).read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LAST_LINES:]) or "it wrote nothing to stderr"


def _scratch(room: int) -> Path:
    """A folder in shared memory, or on disk where there is not `room` bytes of it."""
    is_roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > room
    return Path(tempfile.mkdtemp(prefix="strop-ranks-", dir=_SHARED_MEMORY if is_roomy else None))
