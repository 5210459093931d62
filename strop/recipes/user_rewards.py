"""Parser of reward names: `grade.py:closeness+0.5*style.py:short`, and `env` for the environment's own reward."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import grades
from strop.roles import Reward
from strop.types import ScoreRange

_NAME = re.compile(r"(?:(?P<weight>\d{1,9}(?:\.\d{1,9})?)\*)?(?P<name>env|.+:[A-Za-z_]\w*)", re.DOTALL)


Rules: TypeAlias = tuple[tuple[str, str], ...]


def own_rewards(text: str, judged: tuple[Reward, ...], rules: Rules = ()) -> tuple[Reward, ...]:
    """The rewards named in a text, joined by +, each with its weight before a `*`; their weighted sum counts.

    `rules` says how answers of each environment are read, as functions are handed them.
    """
    return tuple(reward for part in _parts(text) for reward in _named(part, judged, rules))


def _parts(text: str) -> list[str]:
    """The text cut at each + that ends a name: a file name may contain one."""
    found, rest = list[str](), ""
    for piece in text.split("+"):
        rest = f"{rest}+{piece}" if rest else piece
        if _NAME.fullmatch(rest.strip()):
            found.append(rest.strip())
            rest = ""
    if rest or not found:
        raise ConfigurationError(f"a reward is FILE.py:FUNCTION or env, several joined by +; got {text!r}")
    return found


def _named(part: str, judged: tuple[Reward, ...], rules: Rules) -> tuple[Reward, ...]:
    found = _NAME.fullmatch(part)
    assert found is not None
    chosen = judged if found["name"] == "env" else (PythonFunction(found["name"], rules=rules),)
    if found["weight"] is None:
        return chosen
    return tuple(replace(each, weight=float(found["weight"])) for each in chosen)  # type: ignore[type-var]


def with_success(
    rewards: tuple[Reward, ...],
    judged: tuple[Reward, ...],
    is_answered: bool,
    score_range: Sequence[float] = (),
    name: str = "",
) -> tuple[Reward, ...]:
    """Rewards of which the first that grades says how right a rollout is.

    That is the reward of this `name`; else the first that states a range; else the environment's check, with weight 0
    beside the others, where its tasks have answers.
    """
    if name:
        names = [reward.name for reward in rewards]
        if name not in names:
            raise ConfigurationError(f"success={name}: there is no such reward; {nearest(name, names)}")
        rewards = (rewards[names.index(name)], *(each for each in rewards if each.name != name))
    if score_range:
        rewards = _ranged(rewards, score_range)
    if name and not grades(rewards[0]):
        raise ConfigurationError(
            f"success={name} needs the range of its scores, from wrong to right: reward_range=LOW,HIGH, or "
            f"{name}.low = LOW and {name}.high = HIGH below the function"
        )
    if any(map(grades, rewards)) or not is_answered:
        return rewards
    return (*rewards, *(replace(each, weight=0.0) for each in judged))  # type: ignore[type-var]


def _ranged(rewards: tuple[Reward, ...], score_range: Sequence[float]) -> tuple[Reward, ...]:
    """The first reward whose range is not fixed, with this one."""
    if len(score_range) != 2 or not 0 < abs(score_range[0] - score_range[1]) < inf:
        raise ConfigurationError(
            f"reward_range is LOW,HIGH: the finite score of a wrong and of a right rollout; {score_range}"
        )
    found = ScoreRange(*map(float, score_range))
    for place, reward in enumerate(rewards):
        if isinstance(reward, PythonFunction | Earned):
            return (*rewards[:place], replace(reward, grades=found), *rewards[place + 1 :])
    raise ConfigurationError("reward_range is for a reward of your own, or an environment that pays its episodes")
