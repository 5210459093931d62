"""External program as an agent: it calls an OpenAI- or Anthropic-compatible endpoint, and its requests become turns.

OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY are set. The task is on standard input: JSON
with `messages`, `tools` and `episode_key`. The program may act in the task's environment (`POST
$STROP_URL/rollout/step` with that key) until the environment is done, report its reward once (`POST
$STROP_URL/rollout/reward`, or a last line {"reward": 0.5}), or print its answer for the environment to score. A
reported reward is trusted: if the program runs code that the policy writes, let the environment score it. The episode
key differs from the API key and is in no environment variable, since child processes inherit those.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from strop.capabilities import Closes, Learns, Refuses
from strop.errors import ConfigurationError, EpisodeError, StropError
from strop.generate.conversation import Talk
from strop.generate.rollout import EnvironmentFailed
from strop.roles import Agent, Dialogue, Episode
from strop.sandbox.bubblewrap import Bubble, problem
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.python.unconfined_python import PlainCommand
from strop.storage.picture_store import uri_of
from strop.types import Group, Message, Metrics, Observation, Origin, Task
from strop.workers.passing_folder import PassingFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strop.generate.serve.rollout_access import Rollouts
    from strop.generate.serve.serve_session import Visit
    from strop.generate.serve.server import Door
    from strop.run import Run

_PROGRAMS = str(Path(__file__).parent.parent / "serve" / "example_clients")
_CARRIER = str(Path(__file__).parent.parent / "serve" / "sandbox_proxy.py")
_PORT = 8000  # within the sandbox, where no other program runs
_SHOWN = 300  # characters of standard error in a message


@dataclass(eq=False)
class OutsideProgram(Agent, Closes, Learns, Refuses):
    """Agent that runs `command` for each rollout; a timeout or an error fails the rollout and never becomes a
    reward.
    """

    command: str  # split as by a shell; no shell runs it
    pays: Literal["env", "line", "post"] = "env"  # source of the reward
    seconds: float = 300.0  # of one rollout
    memory: int = 2 << 30  # bytes
    isolation: Literal["sandbox", "process"] = "sandbox"  # process: the program has all permissions of the user
    readable: tuple[str, ...] = ()  # further files and folders that it may read in the sandbox
    late: Literal["fails", "judged"] = "fails"  # judged: turns before the timeout count; no reward reported earns 0
    origin: ClassVar[Origin] = Origin.POLICY
    _guests: Rollouts | None = field(default=None, init=False, repr=False)
    _door: Door | None = field(default=None, init=False, repr=False)
    _address: str = field(default="", init=False, repr=False)
    _folder: Any = field(default=None, init=False, repr=False)  # holds the endpoint's socket
    _counts: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not shlex.split(self.command) or not self.seconds > 0:
            raise ConfigurationError(
                f"OutsideProgram needs a command and seconds > 0, got {self.command!r}, {self.seconds:g}"
            )
        if self._files:  # as absolute paths, since a run may be resumed from another directory
            words = [str(Path(word).absolute()) if _is_file(word) else word for word in shlex.split(self.command)]
            self.command = shlex.join(words)

    def problems(self, run: Run) -> list[str]:
        found = (
            [] if find_spec("starlette") and find_spec("uvicorn") else ["OutsideProgram: pip install 'strop[serve]'"]
        )
        if self.isolation == "sandbox" and (why := problem(self._seen)):
            found.append(f"OutsideProgram runs programs that a model controls: {why}, or set isolation=process")
        return found

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("an external program cannot continue a rollout from its middle")
        await episode.reset(task)
        guests, answers, failures = await self._opened(), list[Observation](), list[Exception]()
        key, visit = guests.admit(cast(Talk, dialogue))

        async def step(completion: Message) -> Observation:
            try:
                answers.append(await episode.step(completion))
            except EpisodeError:
                raise  # an error of the caller: the response is 409, and the episode is unchanged
            except (StropError, EnvironmentFailed) as failure:
                failures.append(failure)
                raise
            return answers[-1]

        visit.step, visit.hears_reward = step, self.pays == "post"
        try:
            ran = await self._run(task, key, guests.let_act(visit))
        finally:
            await guests.end(key)
            self._count(visit)
        await visit.settled()
        if failures:
            raise failures[0]  # even if the program ignored it
        is_late = ran.ending is Ending.TIMEOUT and self.late == "judged" and len(dialogue.turns) > 0
        if not is_late:
            _check(ran, dialogue)
        earned = await self._earned(ran, visit, answers, step, is_late)
        return () if earned is None else (*(0.0,) * (len(dialogue.turns) - 1), earned)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Counts of requests since the last step."""
        told = {f"served/{name}": float(count) for name, count in self._counts.items()}
        self._counts = {}
        return told

    async def close(self) -> None:
        if self._door is not None:
            await self._door.close()
            self._folder.close()
            self._door = self._guests = None

    async def _opened(self) -> Rollouts:
        from strop.generate.serve.rollout_access import Rollouts
        from strop.generate.serve.server import Door

        if self._guests is None:
            self._guests, self._folder = Rollouts(), PassingFolder()
            self._door = Door(self._guests, path=str(self._folder.path / "door"))
            self._opening = asyncio.ensure_future(self._door.open())
        self._address = await asyncio.shield(self._opening)
        return self._guests

    async def _run(self, task: Task, key: str, episode_key: str) -> Ran:
        told = {"messages": [_plain(each) for each in task.messages], "tools": [asdict(t) for t in task.tools]}
        given = json.dumps({**told, "episode_key": episode_key})
        allowance, words = Allowance(self.seconds, self.memory), self._words
        if self.isolation == "process":
            return await PlainCommand(_episode(self._address, key)).run(words, given, allowance)
        door = str(self._folder.path / "door")
        bubble = Bubble(tuple(sorted({door, *self._seen})), _episode(f"http://127.0.0.1:{_PORT}", key))
        return await bubble.run([sys.executable, _CARRIER, door, str(_PORT), *words], given, allowance)

    @property
    def _seen(self) -> tuple[str, ...]:
        """Paths that it may read in the sandbox, besides the system and the endpoint."""
        named = {word for word in self._files if not word.startswith((sys.prefix, sys.base_prefix, "/usr/", "/bin/"))}
        return tuple(sorted({_CARRIER, _PROGRAMS, sys.prefix, sys.base_prefix, *named, *self.readable}))

    @property
    def _files(self) -> list[str]:
        """Files named in the command: a program, its settings."""
        return [word for word in shlex.split(self.command) if _is_file(word)]

    @property
    def _words(self) -> list[str]:
        words = [word.replace("{programs}", _PROGRAMS) for word in shlex.split(self.command)]
        return [sys.executable, *words[1:]] if words[0] in ("python", "python3") else words

    async def _earned(
        self, ran: Ran, visit: Visit, answers: list[Observation], step: Any, is_late: bool
    ) -> float | None:
        match self.pays:
            case "post" if visit.reward is not None:
                return visit.reward
            case "post" | "line" if is_late:
                return 0.0
            case "post":
                raise EnvironmentFailed("the program ended without reporting a reward")
            case "line":
                return _line(ran.stdout)
        if not answers and not is_late:
            await step(Message("assistant", ran.stdout.strip()))
        paid = [answer.reward for answer in answers if answer.reward is not None]
        return sum(paid) if paid else 0.0 if is_late else None

    def _count(self, visit: Visit) -> None:
        for name, count in asdict(visit.served).items():
            self._counts[name] = self._counts.get(name, 0) + count


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # e.g. program text
        return False


def _check(ran: Ran, dialogue: Dialogue) -> None:
    """Raise for a program that failed: its rollout does not measure the policy."""
    if not ran.is_well:
        why = {Ending.TIMEOUT: "did not end in time"}.get(ran.ending, f"ended with {ran.ending.value}, code {ran.code}")
        raise EnvironmentFailed(f"the program {why}: {ran.stderr[-_SHOWN:]}")
    if not dialogue.turns:
        raise EnvironmentFailed("the program sent no request to the policy")


def _line(printed: str) -> float:
    lines = printed.strip().splitlines()
    try:
        return float(json.loads(lines[-1])["reward"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise EnvironmentFailed(
            f'the last line is not {{"reward": NUMBER}}: {(lines or [""])[-1][:_SHOWN]!r}'
        ) from error


def _episode(address: str, key: str) -> tuple[tuple[str, str], ...]:
    told = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": key}
    told |= {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": key, "STROP_URL": address}
    return tuple(told.items())


def _plain(message: Message) -> dict[str, Any]:
    """As OpenAI's interface takes it: a text, or pictures as data URIs before it."""
    seen = [{"type": "image_url", "image_url": {"url": uri_of(each.data)}} for each in message.images]
    text = {"type": "text", "text": message.content}
    return {"role": message.role, "content": [*seen, text] if seen else message.content}
