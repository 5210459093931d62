"""Adapter for Gymnasium environments with discrete actions, as text: `gymnasium/FrozenLake-v1`.

A task is a seed. The policy reads the observation as text and answers with the number of an action; rewards are the
environment's own. This is foreign code and runs in the calling process: wrap it in `Apart` or `Pooled`, as environments
selected by name are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

_NUMERAL = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class GymText(Environment):
    """Gymnasium environment as text; rollouts end with the Gymnasium episode or after `turns`."""

    game: str  # the id under which it is registered
    seed: int = 0
    turns: int = 32  # of one rollout
    options: Mapping[str, Any] = field(default_factory=dict)  # of gymnasium.make
    level: ClassVar[int] = 0

    def __post_init__(self) -> None:
        made = _made(self)
        actions = made.action_space
        made.close()
        if not isinstance(actions, _gymnasium().spaces.Discrete):
            raise ConfigurationError(
                f"{self.game} takes actions of {actions}; only those that are numbered (Discrete) can be said in a word"
            )
        if self.turns < 1:
            raise ConfigurationError(f"GymText needs turns >= 1, got {self.turns}")

    @property
    def name(self) -> str:
        return f"gymnasium/{self.game}"

    def task(self, index: int, heldout: bool = False) -> Task:
        """Seeds of both sides are different ones."""
        seed = 2 * (self.seed * 1_000_000 + index) + heldout
        made = _made(self)
        seen, _ = made.reset(seed=seed)
        prompt = f"{_shown(made, seen)}\n{_range(made)}"
        made.close()
        return Task((Message("user", prompt),), str(seed), self.name, self.level)

    def episode(self) -> GymEpisode:
        return GymEpisode(self)

    def check(self, task: Task, completion: str) -> float:
        raise ConfigurationError(f"{self.name} pays by itself: reward its tasks with Earned()")


@dataclass
class GymEpisode(Episode):
    """One Gymnasium episode; a completion that names no action changes nothing and costs a turn."""

    env: GymText
    made: Any = field(default=None, init=False, repr=False, compare=False)
    turns: int = field(default=0, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.made, self.turns = _made(self.env), 0
        self.made.reset(seed=int(task.answer))

    async def step(self, completion: Message) -> Observation:
        self.turns += 1
        said, space = final_answer(completion.content), self.made.action_space
        is_action = bool(_NUMERAL.fullmatch(said)) and space.contains(int(said))
        seen, paid, ended, cut, _ = self.made.step(int(said)) if is_action else (None, 0.0, False, False, {})
        is_done = bool(ended or cut or self.turns >= self.env.turns)
        text = _shown(self.made, seen) if is_action else _range(self.made)
        return Observation(() if is_done else (Message("user", text),), is_done, float(paid))

    async def close(self) -> None:
        if self.made is not None:
            self.made.close()


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise ConfigurationError("environments of Gymnasium need it: pip install 'strop[gymnasium]'") from error
    return gymnasium


def _made(env: GymText) -> Any:
    """As text where it can be rendered so."""
    gymnasium = _gymnasium()
    try:
        modes = gymnasium.spec(env.game).make(**env.options).metadata.get("render_modes", [])
        mode = {"render_mode": "ansi"} if "ansi" in modes else {}
        return gymnasium.make(env.game, **{**mode, **env.options})
    except (gymnasium.error.Error, TypeError, ModuleNotFoundError) as error:
        raise ConfigurationError(f"Gymnasium cannot make {env.game}: {error}") from error


def _shown(made: Any, seen: Any) -> str:
    if made.render_mode == "ansi":
        return str(made.render()).strip("\n")
    return json.dumps(_plain(seen))


def _plain(seen: Any) -> Any:
    """Numbers of numpy as such."""
    if isinstance(seen, Mapping):
        return {str(name): _plain(value) for name, value in seen.items()}
    if isinstance(seen, tuple | list):
        return [_plain(value) for value in seen]
    return seen.tolist() if hasattr(seen, "tolist") else seen


def _range(made: Any) -> str:
    first = int(made.action_space.start)
    return f"say an action from {first} to {first + int(made.action_space.n) - 1}"
