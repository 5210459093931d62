"""An engine in another process answers as one in this process, and losing it is no more than a delay."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, EngineError, ModelError, StropError
from strop.placement.process_engine import LocalProcess
from strop.types import Sampling
from tests.placement.light import BROKEN, DEADLY, NOISY, REFUSED, STUCK, Letters, hurried, written

Result = TypeVar("Result")
SHORT = Sampling(max_tokens=5, stop=("x",))
PROMPT = np.arange(3)


def run(engine: LocalProcess, work: Coroutine[Any, Any, Result], seconds: float = 30.0) -> Result:
    """Open, work, close; never longer than the bound."""

    async def whole() -> Result:
        engine.open(Path("nowhere"))
        try:
            async with asyncio.timeout(seconds):
                return await work
        finally:
            await engine.close()

    return asyncio.run(whole())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone_within(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


@pytest.mark.parametrize("in_step", [False, True])
def test_many_requests_at_once_each_get_their_own_answer(in_step: bool) -> None:
    engine = LocalProcess(Letters(), in_step=in_step)

    async def ask() -> list[Completion]:
        await engine.load(WeightVersion(4, "four", "folder"))
        prompts = [np.arange(1 + key % 7) for key in range(60)]
        first = await asyncio.gather(*(engine.sample(p, SHORT, key) for key, p in enumerate(prompts)))
        return [*first, await engine.sample(PROMPT, SHORT, 5)]

    *many, last = run(engine, ask())
    for key, completion in enumerate(many):
        assert completion.tokens.tolist() == written(key, 1 + key % 7, 5)
        assert completion.logprobs.tolist() == [0, -1, -2, -3, -4] and completion.logprobs.dtype == np.float32
        assert completion.versions.tolist() == [4] * 5 and completion.stop is Stop.LENGTH
        assert completion.aux["place"].tolist() == list(range(1 + key % 7, 6 + key % 7))
    assert last.tokens.tolist() == written(5, 3, 5)
    assert engine.num_lost == 0
    told = engine.learn([])["letters/asked"]  # whenever nothing else ran there: in step after 60 and after 1
    assert told == 30.5 if in_step else 1 <= told <= 60
    assert engine.learn([]) == {}


@pytest.mark.parametrize("in_step", [False, True])
def test_an_abort_ends_one_request_where_it_is(in_step: bool) -> None:
    engine = LocalProcess(Letters(seconds_per_token=0.02), in_step=in_step)

    async def ask() -> tuple[Completion, Completion, str]:
        one, other = (asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=n), n)) for n in (500, 30))
        third = asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=400), 9))
        await asyncio.sleep(0.2)
        engine.abort(500)
        third.cancel()
        engine.forget()
        return await one, await other, await engine.load(WeightVersion(1, "abc", "folder"))

    one, other, loaded = run(engine, ask())
    assert one.stop is Stop.ABORTED and len(one.tokens) < 100
    assert one.tokens.tolist() == written(500, 3, len(one.tokens))
    assert (len(other.tokens), loaded) == (30, "abc")


def test_who_must_hurry_is_told_to() -> None:
    engine = LocalProcess(Letters(seconds_per_token=2.0))
    assert run(engine, hurried(engine)) == 100


def test_what_goes_wrong_in_there_is_told_here() -> None:
    engine = LocalProcess(Letters())

    async def ask() -> None:
        with pytest.raises(ConfigurationError, match="1 to 9 tokens, got 10"):
            await engine.sample(PROMPT, SHORT, REFUSED)
        with pytest.raises(StropError, match="ValueError: no such thing"):
            await engine.sample(PROMPT, SHORT, BROKEN)
        noisy = await engine.sample(PROMPT, SHORT, NOISY)  # what it prints is no part of the conversation
        assert noisy.tokens.tolist() == written(NOISY, 3, 5)

    run(engine, ask())
    assert engine.num_lost == 0


def test_a_model_that_cannot_be_opened_is_told_to_the_first_who_asks() -> None:
    engine = LocalProcess(Letters(refuses="has no weights"))
    with pytest.raises(ModelError, match="nowhere: has no weights"):
        run(engine, engine.load(WeightVersion(0, "", "folder")))
    assert engine.num_lost == 0


@pytest.mark.parametrize("in_step", [False, True])
def test_a_killed_process_is_replaced_and_nobody_notices(in_step: bool) -> None:
    engine = LocalProcess(Letters(seconds_per_token=0.02), in_step=in_step)
    first: list[int] = []

    async def ask() -> list[Completion]:
        await engine.load(WeightVersion(7, "seven", "folder"))
        running = [asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=20), key)) for key in range(10)]
        await asyncio.sleep(0.1)
        first.append(engine.pid)
        os.kill(engine.pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
        engine.abort(3)  # while there is no process
        return await asyncio.gather(*running)

    completions = run(engine, ask())
    assert engine.num_lost == 1 and first != [engine.pid]
    for key, completion in enumerate(completions):
        count = 0 if key == 3 else 20
        assert completion.tokens.tolist()[:count] == written(key, 3, count)
        assert set(completion.versions) <= {7}  # the replacement holds the newest version before anything is asked
    assert completions[3].stop is Stop.ABORTED and len(completions[3].tokens) < 20
    assert gone_within(first, 1)


def test_a_request_that_kills_every_process_ends_with_its_last_words() -> None:
    engine = LocalProcess(Letters(), restarts=2)
    with pytest.raises(EngineError, match=r"lost 3 times in a row .*restarts=2.*: exit code 7") as caught:
        run(engine, engine.sample(PROMPT, SHORT, DEADLY))
    assert "these are my last words" in str(caught.value)


def test_answers_between_two_losses_count_as_progress() -> None:
    engine = LocalProcess(Letters(), restarts=1)

    async def ask() -> None:
        for key in range(3):
            await engine.sample(PROMPT, SHORT, key)
            os.kill(engine.pid, signal.SIGKILL)

    run(engine, ask())
    assert engine.num_lost >= 2


def test_a_process_that_shows_no_sign_of_life_is_killed() -> None:
    engine = LocalProcess(Letters(), restarts=0, silence_seconds=0.4)
    with pytest.raises(EngineError, match=r"no sign of life for 0.4 s; killed"):
        run(engine, engine.sample(PROMPT, SHORT, STUCK))


def test_a_process_tells_what_it_is_doing() -> None:
    engine = LocalProcess(Letters())
    assert engine.stacks() == "no process\n"

    async def ask() -> str:
        await engine.load(WeightVersion(0, "", "folder"))
        stuck = asyncio.create_task(engine.sample(PROMPT, SHORT, STUCK))
        await asyncio.sleep(0.2)
        stuck.cancel()
        return engine.stacks()

    assert "_misbehave" in run(engine, ask())


def test_closing_tells_whoever_waits_and_leaves_nothing() -> None:
    engine = LocalProcess(Letters(seconds_per_token=1.0))

    async def ask() -> tuple[float, int]:
        waiting = asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=1000), 1))
        await engine.load(WeightVersion(0, "", "folder"))
        began, pid = time.monotonic(), engine.pid
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await waiting
        with pytest.raises(EngineError, match="closed"):
            await engine.sample(PROMPT, SHORT, 1)
        return time.monotonic() - began, pid

    seconds, pid = run(engine, ask())
    assert seconds < 3 and gone_within([pid], 1)


ORPHANS = """
import asyncio, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background
from pathlib import Path
import numpy as np
from strop.placement.process_engine import LocalProcess
from strop.types import Sampling
from strop.backends import WeightVersion
from tests.placement.light import Letters

async def main():
    engine = LocalProcess(Letters(seconds_per_token=1.0))
    engine.open(Path("nowhere"))
    await engine.load(WeightVersion(0, "", "folder"))
    print(engine.pid, engine._child._process.pid, flush=True)
    await engine.sample(np.arange(3), Sampling(max_tokens=1000), 1)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_the_parent(number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(is_alive, pids))
    parent.send_signal(number)
    parent.wait(30)  # an interpreter with torch takes its time to end on a busy machine
    parent.stdout.close()
    assert gone_within(pids, 10)


def test_it_is_its_own_configuration() -> None:
    engine = LocalProcess(Letters(seconds_per_token=0.5), threads=2, in_step=True)
    names = {"LocalProcess": LocalProcess, "Letters": Letters}
    assert eval(repr(engine), names) == engine == pickle.loads(pickle.dumps(engine))
    with pytest.raises(ConfigurationError, match="threads >= 1"):
        LocalProcess(Letters(), threads=0).open(Path("nowhere"))

    class Local(Letters):
        """Cannot be imported by anybody else."""

    with pytest.raises(ConfigurationError, match="Local cannot be sent to a process of its own"):
        LocalProcess(Local()).open(Path("nowhere"))
