"""What stands before a verdict: where a template forgets thoughts, where a context ends; and two words that differ."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.judging.preferences import Preferences, asked_of, completions_of, shown_by
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.policy import Policy
from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.generate.templates.chat_template import Template
from strop.generate.verdict_tokens import before_verdict, word_ids
from strop.recipes.preference_pairs import preferring
from strop.recipes.setting import Setting
from strop.types import Group, Rollout
from tests.generate.talking import END, FORGETFUL, Recording, ids, policy_of, save_folder

ENV = Preferences(Arithmetic(4), (("grounded", 1.0),))  # the same answer with and without its working
BEHIND = "\n<|start|>user\ngood or bad?<|end|>\n<|start|>assistant\n<think>"


async def unscored(group: Group) -> None:
    """Nobody asks."""


def recited(policy: Policy, says_completions: bool) -> list[Rollout]:
    strategy, group = RecitedVerdicts(says_completions), Group(0, ENV.task(0), [])
    strategy.meet(policy)
    play = GroupPlayer(group, policy, (ENV,), Chat(), 0, unscored)
    return asyncio.run(strategy(group, [play.another(), play.another()], play))


@pytest.mark.parametrize("says_completions", [False, True])
def test_a_completion_is_judged_with_its_thoughts(tmp_path: Path, says_completions: bool) -> None:
    """The template shows those of the last message only, and the question comes behind the completion."""
    policy = policy_of(save_folder(tmp_path, FORGETFUL), Recording([]))
    template, task = policy.template, ENV.task(0)
    for rollout, completion, reward in zip(
        recited(policy, says_completions), completions_of(task), (1.0, 0.0), strict=True
    ):
        before = [piece for turn in rollout.turns for piece in (turn.prompt, turn.tokens)][:-1]
        read = np.concatenate(before)
        asked = template.opening(asked_of(task))
        assert template.decode(read) == f"{template.decode(asked)}{completion}<|end|>{BEHIND}"
        assert read.tolist() == before_verdict(template, asked_of(task), completion).tolist(), "as a judge reads it"
        assert rollout.num_tokens == 1 + says_completions * (len(ids(completion)) + 1)
        assert rollout.turn_rewards == ((0.0, reward) if says_completions else (reward,))
    assert before_verdict(template, asked_of(task), "")[len(asked)] == END, "nothing is a completion, too"


@pytest.mark.parametrize("says_completions", [False, True])
def test_a_completion_that_leaves_no_room_is_refused(tmp_path: Path, says_completions: bool) -> None:
    folder = save_folder(tmp_path)
    template = Template.load(folder)
    longest = len(before_verdict(template, asked_of(ENV.task(0)), completions_of(ENV.task(0))[0]))
    assert len(recited(policy_of(folder, Recording([]), context=longest + 1), says_completions)) == 2
    with pytest.raises(ConfigurationError, match="no room for a verdict: set a larger context"):
        recited(policy_of(folder, Recording([]), context=longest), says_completions)


def test_held_out_completions_are_judged_with_their_thoughts(tmp_path: Path) -> None:
    """As they were learned, and not as the template shows earlier completions; one that leaves no room earns
    nothing.
    """
    folder = save_folder(tmp_path, FORGETFUL)
    task = ENV.task(0, heldout=True)
    evaluation = preferring(Setting(), "test", ()).evaluation
    engine = Recording([f"</think>{word}|" for word in (ENV.solution(task), "?")])
    policy, template = policy_of(folder, engine), Template.load(folder)
    group = Group(0, task, [])
    play = GroupPlayer(group, policy, (ENV,), evaluation.agent, 0, unscored)
    made = asyncio.run(evaluation.strategy(group, [play.another(), play.another()], play))
    read = before_verdict(template, asked_of(task), shown_by(task))
    assert all(prompt.tolist() == read.tolist() for prompt in engine.prompts)
    assert [sum(rollout.turn_rewards) for rollout in made] == [1.0, 0.0]
    full = GroupPlayer(group, policy_of(folder, engine, context=len(read)), (ENV,), evaluation.agent, 0, unscored)
    (cut,) = asyncio.run(evaluation.strategy(group, [full.another()], full))
    assert sum(cut.turn_rewards) == 0.0 and len(engine.prompts) == 2


class Words:
    """A tokenizer of given ids."""

    def __init__(self, **found: list[int]) -> None:
        self.found = {"+": found["good"], "-": found["bad"]}

    def encode(self, text: str) -> np.typing.NDArray[np.int64]:
        return np.array(self.found[text])


def test_words_are_two_different_tokens() -> None:
    """A tokenizer that knows neither has one for both, and every score would be 0."""
    assert word_ids(Words(good=[0], bad=[5])).tolist() == [0, 5]  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"has one token, 3, for both '\+' and '-'"):
        word_ids(Words(good=[3], bad=[3]))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"makes 1 of '\+' and 2 of '-'"):
        word_ids(Words(good=[3], bad=[3, 4]))  # type: ignore[arg-type]
