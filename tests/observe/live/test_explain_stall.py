"""`strop why`: what a run waits for, told while it runs, hangs or is dead; and a run told to stop ends."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.cli.commands.why import ask_for_stacks, explain
from strop.control.admission.bounded_lag import BoundedLag
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError, StarvationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.launch.running.launch import launch
from strop.observe.live import status_file as observe_status
from strop.observe.live.explain_stall import lines, sentence
from strop.observe.live.status_file import read_status
from strop.observe.metrics.stage_tracker import Stages
from strop.observe.run_files.run_info import is_running
from strop.placement.process_engine import LocalProcess
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder
from tests.observe.hangs import HangingEngine, HangingEnvironment, HangingTrainer, MuteEngine
from tests.test_pipeline import Same

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")


def status(**changes: Any) -> dict[str, Any]:
    plain = {
        "step": 11,
        "steps": 40,
        "groups_per_step": 8,
        "loops": {"training": {"what": "waits for groups", "seconds": 100.0}},
        "waiting": 5,
        "num_running": 2,
        "groups": [
            {"number": 41, "what": "rollouts", "seconds": 120.0, "in_env": {"41/0": 95.0, "41/3": 3.0}},
            {"number": 42, "what": "rewards", "seconds": 7.0, "in_env": {}},
        ],
        "engine": {},
        "still_seconds": 95.0,
    }
    return plain | changes


def test_one_sentence_says_who_waits_for_whom() -> None:
    told = sentence(status())
    assert told == "training waits for 3 groups; the oldest, group 41, has waited 95 s for its environment"
    scoring = status(groups=status()["groups"][1:], waiting=7)
    assert sentence(scoring) == "training waits for 1 group; the oldest, group 42, has waited 7 s for its rewards"
    sampling = status(groups=[{"number": 41, "what": "rollouts", "seconds": 700.0, "in_env": {}}], waiting=8)
    assert "older groups" in sentence(sampling) and "has waited 12 min for an engine" in sentence(sampling)
    loops = {"training": {"what": "waits for groups", "seconds": 1.0}}
    loops |= {"generation": {"what": "waits for the admission", "seconds": 1.0}}
    assert sentence(status(groups=[], loops=loops)).endswith("none is running: generation waits for the admission")
    for what, said in (("trains", "step 12 has been training for 3 s"), ("publishes", "on their way to the engines")):
        assert said in sentence(status(loops={"training": {"what": what, "seconds": 3.0}}))
    assert sentence(status(loops={})) == "the run is being opened"
    assert "  group 41: 120 s old, waits 95 s for its environment (2 rollouts in it)" in lines(status())


def test_stages_know_the_oldest() -> None:
    stages = Stages()
    for number in (3, 1, 2):
        stages.enter(f"group {number}", "rollouts")
        time.sleep(0.002)
    moved = stages.moved
    stages.leave("group 1")
    assert list(stages.of("group")) == ["3", "2"] and stages.moved > moved
    stages.enter("group 3", "rewards")
    assert list(stages.of("group")) == ["2", "3"]


# forked from a server that has run nothing: a fork of this process could inherit a lock that another thread holds
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["strop.launch.running.launch", "tests.observe.hangs"])


def hang(run: Run, root: Path, told: Path) -> None:
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
    observe_status._END_SECONDS = 1.0
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115 (lives as long as the process)
    with suppress(BaseException):
        launch(run, root, "run")
    os._exit(0)


class Hung:
    """A run in a process of its own; what it says on stderr goes to a file."""

    def __init__(self, model: Path, root: Path, **parts: Any) -> None:
        self.folder, self._told = RunFolder(root / "run"), root / "told"
        self._process = CONTEXT.Process(target=hang, args=(make_run(model, **parts), root, self._told), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def wait(self, told: str = "") -> Hung:
        """Until it stands still, and this is why."""
        for _ in range(1200):
            state = read_status(self.folder.status)
            if state and state["still_seconds"] > 1.2 and told in sentence(state):
                return self
            time.sleep(0.05)
        self.end()
        raise AssertionError(f"it never hung: {self._told.read_text()}")

    def end(self) -> str:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.code()
        return self._told.read_text()

    def code(self) -> int:
        self._process.join(60)
        assert self._process.exitcode is not None, "it did not end within 60 s"
        return self._process.exitcode


def make_run(model: Path, **parts: Any) -> Run:
    values = {"model": str(model), "steps": 3, "groups_per_step": 2, "group_size": 2, "max_tokens": 6}
    run = build(recipe_named("grpo"), values | {"heldout_tasks": 0, "heldout_every": 0})
    return replace(run, stall_seconds=1.0, **parts)


def in_env(is_blocking: bool) -> dict[str, Any]:
    envs = (HangingEnvironment(1, is_blocking=is_blocking),)
    return {"envs": envs, "sampler": Uniform(envs)}


def test_a_env_that_does_not_answer_is_named_with_stacks(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Hung(model, tmp_path, **in_env(is_blocking=False)).wait()
    explain(run.folder.path, with_stacks=True, as_json=False)
    told = capsys.readouterr().out
    assert "training waits for 2 groups; the oldest, group 0, has waited" in told and "s for its environment" in told
    assert "2 groups in flight, the oldest first:" in told
    assert "hangs.py" in told and "4 tasks, among them" in told and "thread MainThread" in told
    explain(run.folder.path, with_stacks=True, as_json=True)
    assert json.loads(capsys.readouterr().out)["is_running"] is True
    assert "nothing has moved for 1 s: training waits for 2 groups" in run.end()
    explain(run.folder.path, with_stacks=True, as_json=False)
    told = capsys.readouterr().out
    assert told.startswith("not running: killed ") and "last state: training waits for 2 groups" in told


def test_a_blocked_loop_is_told_and_shown(model: Path, tmp_path: Path) -> None:
    run = Hung(model, tmp_path, **in_env(is_blocking=True)).wait()
    try:
        text = ask_for_stacks(run.folder, run.pid)
        assert "hangs.py" in text and "sleep" in text
        os.kill(run.pid, signal.SIGUSR1)  # the way that works when not even a thread gets its turn
        for _ in range(100):
            if "Current thread" in run.folder.stacks.read_text():
                break
            time.sleep(0.02)
        assert "Current thread" in run.folder.stacks.read_text() and is_running(run.folder)
    finally:
        run.end()


def test_the_stacks_of_an_engine_in_another_process_are_shown_too(model: Path, tmp_path: Path) -> None:
    run = Hung(model, tmp_path, engine=LocalProcess(TorchEngine()), **in_env(is_blocking=False))
    run.wait("for its environment")
    try:
        text = ask_for_stacks(run.folder, run.pid)
        assert "thread MainThread" in text and "processes of the engine" in text and "placement/engine_host.py" in text
    finally:
        run.end()


def test_a_part_that_cannot_be_asked_does_not_end_the_status(model: Path, tmp_path: Path) -> None:
    """The thread that writes it is also the one that ends what hangs."""
    run = Hung(model, tmp_path, engine=MuteEngine(), trainer=HangingTrainer())
    for _ in range(600):
        if run.folder.path.is_dir() and "has no status" in (tmp_path / "told").read_text():
            break
        time.sleep(0.05)
    time.sleep(1.0)
    for _ in range(2):
        os.kill(run.pid, signal.SIGINT)
        time.sleep(0.3)
    assert run.code() == 130
    told = (tmp_path / "told").read_text()
    assert told.count("has no status") == 1 and "did not stop within 1 s" in told


def test_a_run_that_is_over_says_so(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch(make_run(model), tmp_path, "run")
    explain(tmp_path / "run", with_stacks=True, as_json=False)
    assert capsys.readouterr().out.startswith("not running: ended ")
    with pytest.raises(ConfigurationError, match=r"has no status.json: it is not a run folder"):
        explain(tmp_path, with_stacks=True, as_json=False)


def test_the_error_that_ended_a_run_is_told(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(model, rewards=(Same(),), gates=(ZeroVariance(),))
    with pytest.raises(StarvationError):
        launch(run, tmp_path, "run")
    explain(tmp_path / "run", with_stacks=False, as_json=False)
    assert capsys.readouterr().out.startswith("not running: ended (StarvationError: step 1 needs 2 groups")


@pytest.mark.parametrize("lag", [0, 1])  # the trainer hangs in the loop's own thread, or in another
def test_told_to_stop_twice_it_ends_within_a_bound_whatever_hangs(model: Path, tmp_path: Path, lag: int) -> None:
    run = Hung(model, tmp_path, trainer=HangingTrainer(), admission=BoundedLag(lag))
    run.wait("step 1 has been training for")
    began = time.monotonic()
    for _ in range(2):
        os.kill(run.pid, signal.SIGINT)
        time.sleep(0.3)
    assert run.code() == 130 and time.monotonic() - began < 20
    told = (tmp_path / "told").read_text()
    assert "press Ctrl-C again" in told and "did not stop within 1 s" in told and "and is ended" in told
    assert "hangs.py" in run.folder.stacks.read_text() and not is_running(run.folder)
    assert read_status(run.folder.status)["ended"].startswith("did not stop within 1 s")


def test_an_engine_that_does_not_close_ends_within_a_bound(model: Path, tmp_path: Path) -> None:
    """Also where nobody asked: the last step is done and saved, and the run must not hold its machine for ever."""
    run = Hung(model, tmp_path, engine=HangingEngine())
    assert run.code() == 1
    assert read_status(run.folder.status)["ended"] == "did not stop within 1 s (closes)"
    assert checkpoint.newest_whole(run.folder.checkpoints)[0].name == "step-3"
