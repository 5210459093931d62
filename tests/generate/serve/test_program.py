"""Programs as agents: the same rollouts as without them, and nothing of a broken one becomes a reward."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.keyvalue import KeyValue, KeyValueEpisode
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.external_program import OutsideProgram
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.roles import Environment
from strop.sandbox.bubblewrap import problem
from strop.types import Message, Observation, Outcome, Rollout, Task
from tests.generate.serve.serving import dialogue, furthest, pocket, task_of

pytest.importorskip("openai")
PLAYS = Path(__file__).parent / "programs" / "plays.py"
PLAIN = KeyValue(2)
ASKS = (PLAYS.parent / "asks.py").read_text()


@pytest.fixture(scope="module")
def policy() -> Policy:
    return pocket()


def played(policy: Policy, agent: Any, index: int = 0, env: Environment = PLAIN) -> Rollout:
    return played_at(policy, agent, task_of(index), env, index)


def played_at(policy: Policy, agent: Any, task: Task, env: Environment, number: int = 0) -> Rollout:
    async def work() -> Rollout:
        talk = dialogue(policy, task, number)
        rollout = await play(agent, env, talk, seconds=2.0)
        assert furthest(talk) < 1e-5
        if isinstance(agent, OutsideProgram):
            await agent.close()
        return rollout

    return asyncio.run(work())


def program(code: str, isolation: Any = "process", **changes: Any) -> OutsideProgram:
    return OutsideProgram(shlex.join([sys.executable, "-c", code]), isolation=isolation, **changes)


def test_a_program_makes_the_rollouts_that_the_house_makes(policy: Policy) -> None:
    """Client, dialect and environment between them: the same tokens under the same keys, and the same pay."""
    for index in range(3):
        agent = OutsideProgram(f"{sys.executable} {PLAYS}", isolation="process")
        through, plain = played(policy, agent, index), played(policy, Chat(), index)
        assert through.outcome is plain.outcome is Outcome.FINISHED, through.error
        assert [t.tokens.tolist() for t in through.turns] == [t.tokens.tolist() for t in plain.turns]
        assert [t.prompt.tolist() for t in through.turns] == [t.prompt.tolist() for t in plain.turns]
        assert sum(through.turn_rewards) == sum(plain.turn_rewards)


LOOKS = """
import socket
try:
    socket.create_connection(("1.1.1.1", 53), 2)
    raise SystemExit("out")
except OSError:
    print(os.path.exists(HOME))
print(json.dumps({"reward": 0.25}))
"""
POSTS = """
body, head = b'{"reward": 0.5}', {"x-api-key": told["episode_key"]}
u.urlopen(u.Request(os.environ["STROP_URL"] + "/rollout/reward", body, head))
"""


@pytest.mark.skipif(bool(problem()), reason=f"isolation: {problem()}")
def test_within_sandbox_it_reaches_the_policy_and_nothing_else(policy: Policy) -> None:
    code = ASKS + LOOKS.replace("HOME", repr(str(Path(__file__))))
    rollout = played(policy, program(code, pays="line", isolation="sandbox"))
    assert rollout.outcome is not Outcome.FAILED and rollout.turn_rewards == (0.25,), rollout.error
    code = ASKS + LOOKS.replace("HOME", repr(str(Path(__file__)))).replace("print(os", "assert not (os")
    assert played(policy, program(code, pays="line", isolation="sandbox")).turn_rewards == (0.25,)


@pytest.mark.skipif(bool(problem()), reason=f"isolation: {problem()}")
def test_within_sandbox_a_file_of_ones_own_is_run(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(ASKS + "assert os.listdir(os.path.dirname(sys.argv[0])) == ['mine.py']")
    (tmp_path / "other.txt").write_text("secret")
    monkeypatch.chdir(tmp_path)
    agent = OutsideProgram("python mine.py")
    assert agent.command == f"python {tmp_path / 'mine.py'}"
    monkeypatch.chdir("/")
    rollout = played(policy, agent)
    assert rollout.outcome is not Outcome.FAILED, rollout.error


def test_what_it_prints_is_judged_by_the_env_and_what_it_posts_is_its_word(policy: Policy) -> None:
    rollout = played(policy, program(ASKS + "print(a)"))
    assert rollout.outcome is not Outcome.FAILED and rollout.turn_rewards in ((0.0,), (1.0,))
    assert played(policy, program(ASKS + POSTS, pays="post")).turn_rewards == (0.5,)


@pytest.mark.parametrize(
    ("code", "pays", "told"),
    [
        (
            "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
            "env",
            "in time",
        ),
        ("raise SystemExit(3)", "env", "code 3"),
        ("print(4)", "env", "sent no request to the policy"),
        (ASKS + "print('much')", "line", "last line"),
        (ASKS + "print('{\"reward\": null}')", "line", "last line"),
        (ASKS, "post", "without reporting a reward"),
    ],
)
def test_a_program_that_fails_is_no_reward(policy: Policy, code: str, pays: Any, told: str) -> None:
    rollout = played(policy, program(code, pays=pays, seconds=3.0 if "sleep" in code else 60.0))
    assert rollout.outcome is Outcome.FAILED and told in rollout.error and rollout.turn_rewards == ()


class Stuck(KeyValueEpisode):
    """Answers once, whatever it is asked."""

    steps = 0

    async def step(self, completion: Message) -> Observation:
        self.steps += 1
        if self.steps > 1:
            await asyncio.sleep(60)
        return Observation((Message("tool", "4"),), done=False, reward=0.0)


class StuckEnvironment(KeyValue):
    def episode(self) -> KeyValueEpisode:
        return Stuck()


STEPS = """
for content in ("once", "again"):
    try:
        body, head = json.dumps({"content": content}).encode(), {"x-api-key": told["episode_key"]}
        u.urlopen(u.Request(os.environ["STROP_URL"] + "/rollout/step", body, head))
    except u.HTTPError as error:
        assert error.code == 502 and b"no answer within" in error.read()
        print(json.dumps({"reward": 1.0}))
"""


@pytest.mark.parametrize("pays", ["env", "line"])
def test_a_tool_that_hangs_is_no_reward_whatever_the_program_makes_of_it(policy: Policy, pays: Any) -> None:
    rollout = played(policy, program(ASKS + STEPS, pays=pays), env=StuckEnvironment(2))
    assert rollout.outcome is Outcome.FAILED and "no answer within" in rollout.error and rollout.turn_rewards == ()


def test_a_program_that_is_not_there_ends_the_run() -> None:
    with pytest.raises(ConfigurationError, match="cannot be run"):
        played(pocket(), OutsideProgram("/nothing/there", isolation="process"))
    with pytest.raises(ConfigurationError, match="command"):
        OutsideProgram("")
    assert shutil.which("bwrap") or "bwrap" in OutsideProgram("true").problems(None)[0]  # type: ignore[arg-type]
