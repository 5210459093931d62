"""What a program is paid in an episode: what it paid until it was done, however often the program tries."""

from __future__ import annotations

import asyncio
import json

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.generate.policy import Policy
from strop.recipes.agent.ufo.environment import TryAgain
from strop.roles import Episode
from strop.sandbox.bubblewrap import problem
from strop.types import Message, Observation, Outcome
from tests.generate.serve.serving import pocket
from tests.generate.serve.test_program import ASKS, played_at, program

needs_sandbox = pytest.mark.skipif(bool(problem()), reason=f"isolation: {problem()}")
# keys are looked for wherever a program may find one, so that it is refused for what it does and not for what it has
GUESSES = """
keys, head = [told.get("episode_key"), os.environ.get("STROP_KEY")], {"content-type": "application/json"}
head["x-api-key"] = next(each for each in keys if each)
for guess in map(str, GUESSED):
    try:
        u.urlopen(u.Request(os.environ["STROP_URL"] + "/rollout/step", json.dumps({"content": guess}).encode(), head))
    except u.HTTPError as error:
        assert error.code == 409 and b"final" in error.read(), error
"""


def guessing(guessed: str) -> str:
    return ASKS + GUESSES.replace("GUESSED", guessed)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return pocket()


@pytest.mark.parametrize("isolation", ["process", pytest.param("sandbox", marks=needs_sandbox)])
@pytest.mark.parametrize("index", range(2))
def test_sixty_guesses_earn_what_the_first_one_earns(policy: Policy, isolation: str, index: int) -> None:
    env = Arithmetic(1)
    task = env.task(index)
    assert 0 < int(task.answer) < 60, "the guesses hold the answer"
    agent = program(guessing("range(60)"), isolation=isolation)
    rollout = played_at(policy, agent, task, env)
    assert rollout.outcome is Outcome.FINISHED and rollout.turn_rewards == (0.0,), rollout.error
    assert agent.learn([])["served/refused"] == 59
    first = program(guessing(f"[{task.answer}, *range(60)]"), isolation=isolation)
    assert played_at(policy, first, task, env).turn_rewards == (1.0,)


def test_wrong_steps_cost_the_turns_of_the_episode(policy: Policy) -> None:
    """It may be tried twice, and says so; a third guess is not heard."""
    env = TryAgain(Arithmetic(1), 2)
    task = env.task(0)
    wrong = str(int(task.answer) + 1)
    for guesses, paid in (([wrong, task.answer, wrong], 1.0), ([wrong, wrong, task.answer], 0.0)):
        assert sum(played_at(policy, program(guessing(json.dumps(guesses))), task, env).turn_rewards) == paid


SIDE_BY_SIDE = """
from concurrent.futures import ThreadPoolExecutor
def one(guess):
    head, body = {"x-api-key": told["episode_key"]}, json.dumps({"content": str(guess)}).encode()
    try:
        return u.urlopen(u.Request(os.environ["STROP_URL"] + "/rollout/step", body, head)).status
    except u.HTTPError as error:
        return error.code
with ThreadPoolExecutor(20) as pool:
    assert sorted(pool.map(one, range(60))) == [200] + [409] * 59
"""


def test_guesses_side_by_side_are_one_guess(policy: Policy) -> None:
    env = Arithmetic(1)
    agent = program(ASKS + SIDE_BY_SIDE)
    rollout = played_at(policy, agent, env.task(0), env)
    assert rollout.outcome is Outcome.FINISHED and rollout.turn_rewards in ((0.0,), (1.0,)), rollout.error
    assert agent.learn([])["served/refused"] == 59


POSTS = """
for reward in (0.25, 1.0):
    body, head = json.dumps({"reward": reward}).encode(), {"x-api-key": told["episode_key"]}
    try:
        u.urlopen(u.Request(os.environ["STROP_URL"] + "/rollout/reward", body, head))
    except u.HTTPError as error:
        assert error.code == 409 and b"final" in error.read()
"""


def test_the_first_reward_that_is_posted_is_final(policy: Policy) -> None:
    env = Arithmetic(1)
    agent = program(ASKS + POSTS, pays="post")
    assert played_at(policy, agent, env.task(0), env).turn_rewards == (0.25,)
    assert agent.learn([])["served/refused"] == 1


# what a policy wrote and a program runs: it looks for a key that acts where children find things
CHILD = """
import subprocess
looks = 'import os, sys; print("env-strop" in str(os.environ) + sys.stdin.read())'
made = subprocess.run([sys.executable, "-c", looks], stdin=None, capture_output=True, text=True)
assert made.stdout == "False\\n", made
print(json.dumps({"reward": 1.0 if told["episode_key"].startswith("env-strop") else 0.0}))
"""


def test_what_a_program_starts_inherits_no_key_that_acts(policy: Policy) -> None:
    env = Arithmetic(1)
    assert played_at(policy, program(ASKS + CHILD, pays="line"), env.task(0), env).turn_rewards == (1.0,)


class SlowAnswer(SingleTurn):
    """Judges while nobody waits any more."""

    async def step(self, completion: Message) -> Observation:
        await asyncio.sleep(1)
        return await super().step(completion)


class Slowly(Arithmetic):
    def episode(self) -> Episode:
        return SlowAnswer(self)


LEAVES = """
import socket
from urllib.parse import urlparse
to, body = urlparse(os.environ["STROP_URL"]), json.dumps({"content": CONTENT})
told_away = f"POST /rollout/step HTTP/1.1\\r\\nhost: {to.hostname}\\r\\nx-api-key: {told['episode_key']}\\r\\n"
with socket.create_connection((to.hostname, to.port)) as line:
    line.sendall(f"{told_away}content-length: {len(body)}\\r\\n\\r\\n{body}".encode())
    time.sleep(0.5)
"""


def test_a_step_that_was_accepted_is_paid_though_nobody_waits_for_it(policy: Policy) -> None:
    env = Slowly(1)
    task = env.task(0)
    code = ASKS + "import time" + LEAVES.replace("CONTENT", repr(task.answer))
    rollout = played_at(policy, program(code), task, env)
    assert rollout.outcome is Outcome.FINISHED and rollout.turn_rewards == (1.0,), rollout.error
