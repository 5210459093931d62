"""Group of rank processes that start, execute commands, answer and end together.

A rank that dies or hangs is reported with its last output; the others are ended too, because they would wait for it.
"""

from __future__ import annotations

import selectors
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from strop.errors import RankError, StropError
from strop.workers.child import Child
from strop.workers.frames import Arrays
from strop.workers.limits import whole_environment
from strop.workers.pickled_parts import packed, told
from strop.workers.untrusted_answers import NoAnswer

_GRACE = 3.0  # seconds in which the others may fail too, so that the first one to fail can be told
_SHARED_MEMORY = Path("/dev/shm")
_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_EPISODE = {
    "GLOO_SOCKET_IFNAME": _LOOPBACK,
    "NCCL_SOCKET_IFNAME": _LOOPBACK,
    "TQDM_DISABLE": "1",  # progress bars are no last words
}

Answers: TypeAlias = dict[int, dict[str, Any]]  # by rank


class Crew:
    """`size` ranks, each a process with one thread; `scratch` is a folder that all of them can access."""

    def __init__(self, settings: Any, size: int, seconds: float, room: int) -> None:
        self.seconds = seconds
        self.scratch = _scratch(room)
        episode = whole_environment(1) | _EPISODE
        module = "strop.training.machine.rank"
        self._ranks = [Child(module, episode, self.scratch) for _ in range(size)]
        self._end = weakref.finalize(self, _dismiss, self._ranks, self.scratch)
        setup = {"ranks": size, "seconds": seconds, "scratch": str(self.scratch)}
        trainer = {"settings": packed(settings, type(settings).__name__, "its ranks")}
        for number, rank in enumerate(self._ranks):
            rank.tell({**setup, "rank": number}, trainer)

    def ask(self, verb: str, orders: Sequence[Mapping[str, Any]], parts: Arrays | None = None) -> list[dict[str, Any]]:
        """One order for each rank, and `parts` for all; returns their answers once all of them have answered."""
        if not self.is_alive:
            raise RankError(f"there are no ranks left to {verb}: resume the run from its newest checkpoint")
        for rank, order in zip(self._ranks, orders, strict=True):
            rank.tell({"id": 0, "verb": verb, "order": order}, parts)
        everybody = range(len(self._ranks))
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

    def stacks(self) -> str:
        """What every rank is doing, as its interpreter itself tells; from any thread."""
        return "".join(f"rank {number}\n{rank.stacks()}\n" for number, rank in enumerate(self._ranks))

    def _collect(self, ranks: Iterable[int], seconds: float, until_failure: bool = True) -> Answers:
        """Wait until all these ranks have answered, one has failed, or the time is over."""
        deadline, answers = time.monotonic() + seconds, Answers()
        with selectors.DefaultSelector() as selector:
            for rank in ranks:
                selector.register(self._ranks[rank], selectors.EVENT_READ, rank)
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    answer = self._heard(key.data)
                    if answer is not None:
                        selector.unregister(key.fileobj)
                        answers[key.data] = answer
                if until_failure and _failed(answers):
                    break
        return answers

    def _heard(self, rank: int) -> dict[str, Any] | None:
        """A rank's answer, once it is whole."""
        try:
            frames = self._ranks[rank].heard()
            return frames[0].head if frames else None
        except NoAnswer as nothing:
            why = str(nothing) or f"died ({self._ranks[rank].ended(_GRACE)})"
            return {"error": why, "kind": "", "at": time.monotonic(), "is_dead": True}

    def _failure(self, verb: str, answers: Answers) -> StropError:
        """What went wrong, and where first; unless all ranks refuse alike, they are out of step and ended."""
        kinds = {answer.get("kind") for answer in answers.values()}
        size = len(self._ranks)
        first = min(
            _failed(answers), key=lambda rank: ("is_dead" not in answers[rank], answers[rank]["at"]), default=None
        )
        if first is not None and len(answers) == size and len(kinds) == 1 and kinds != {""}:
            return told(answers[first]["kind"], answers[first]["error"], f"rank {first}")
        words = [rank.last_words() or "it wrote nothing to stderr" for rank in self._ranks]
        for rank in self._ranks:
            rank.terminate()
        self.close()
        if first is None:
            silent = [rank for rank in range(size) if rank not in answers]
            said = "\n".join(f"rank {rank}: {words[rank]}" for rank in silent)
            return RankError(f"ranks {silent} of {size} gave no answer to {verb} within {self.seconds:g} s\n{said}")
        if answers[first]["kind"]:
            return told(answers[first]["kind"], answers[first]["error"], f"rank {first}")
        return RankError(f"rank {first} of {size} {answers[first]['error']} when told to {verb}\n{words[first]}")


def _failed(answers: Answers) -> list[int]:
    return [rank for rank, answer in answers.items() if "error" in answer]


def _dismiss(ranks: Sequence[Child], scratch: Path) -> None:
    for rank in ranks:
        rank.hang_up()
    deadline = time.monotonic() + _GRACE
    for rank in ranks:
        rank.end(max(0.0, deadline - time.monotonic()))
    shutil.rmtree(scratch, ignore_errors=True)


def _scratch(room: int) -> Path:
    """A folder in shared memory, or on disk where there is not `room` bytes of it."""
    is_roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > room
    return Path(tempfile.mkdtemp(prefix="strop-ranks-", dir=_SHARED_MEMORY if is_roomy else None))
