"""Rollouts that begin, pause, branch and change context: every token is written in exactly one rollout."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.backends import Completion
from strop.generate.agents.chat import Chat
from strop.generate.rollout import play
from strop.generate.rollout_limits import Limits, Paused
from strop.generate.turn_ops import as_prefix, cut
from strop.types import IntArray, Message, Outcome, Rollout, Sampling, Start
from tests.generate.talking import TASK, Recording, ids, policy_of, run, save_folder
from tests.generate.test_rollout import Echo

START = Start("a", 7)


def text_of(policy: object, tokens: IntArray) -> str:
    return policy.template.decode(tokens)  # type: ignore[attr-defined, no-any-return]


def test_words_put_into_its_mouth_are_read_and_not_written(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["4|"]))
    dialogue = policy.dialogue(TASK, replace(START, prefill="so: "))
    message = run(dialogue.completion())
    (turn,) = dialogue.turns
    assert message.content == turn.message.content == "so: 4"
    assert turn.tokens.tolist() == ids("4|") and turn.num_prefix == 4 and turn.prefix.tolist() == ids("so: ")
    assert turn.whole.tolist() == ids("so: 4|")
    assert engine.prompts[0].tolist() == turn.prompt.tolist(), "the engine read what the record says"


def test_words_behind_written_tokens_are_said_by_nobody(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["12", "5|"]), max_tokens=2)
    dialogue = policy.dialogue(TASK, START)
    run(dialogue.completion())
    onward = policy.dialogue(TASK, replace(START, turns=dialogue.turns, prefill="34"))
    assert run(onward.completion(Sampling(max_tokens=9))).content == "12345"
    (turn,) = onward.turns
    assert turn.versions.tolist() == [1, 1, -1, -1, 2, 2] and turn.logprobs.tolist() == [-0.5, -0.5, 0, 0, -0.5, -0.5]
    assert turn.num_prefix == 0


def test_a_second_completion_that_begins_with_given_words_follows_what_the_env_said(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["2|", "4|"]))
    first = policy.dialogue(TASK, START)
    run(first.completion())
    second = policy.dialogue(TASK, replace(START, turns=first.turns, prefill="= "))
    second.hear([Message("user", "more")])
    run(second.completion())
    assert second.turns[1].message.content == "= 4" and second.turns[1].told == (Message("user", "more"),)
    assert text_of(policy, second.turns[1].prompt).endswith("more<|end|>\n<|start|>assistant\n= ")


def test_the_limit_of_a_completion_counts_all_of_it(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["123", "4567"]), max_tokens=3)
    whole = policy.dialogue(TASK, START)
    run(whole.completion())
    onward = policy.dialogue(TASK, replace(START, turns=cut(whole.turns, 2)))
    run(onward.completion())
    assert engine.limits == [3, 1], "a completion of at most 3 tokens that has 2 may have 1 more"
    assert len(onward.turns[0].tokens) == 3
    full = policy.dialogue(TASK, replace(START, turns=whole.turns))
    run(full.completion())
    assert engine.limits == [3, 1] and full.is_cut, "a completion that is as long as it may be asks no engine"


def test_paused_and_taken_up_again_is_one_rollout(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["22", "22|", "4|"]))
    paused = run(play(Chat(), env := Echo(), policy.dialogue(TASK, replace(START, pause=2))))
    assert paused.outcome is Outcome.PRUNED and not paused.is_scored and paused.num_sampled == 2
    assert env.calls == ["episode", "reset", "close"], "the environment does not see half a completion"
    whole = run(play(Chat(), Echo(), policy.dialogue(TASK, replace(START, turns=paused.turns))))
    assert whole.outcome is Outcome.FINISHED and [turn.message.content for turn in whole.turns] == ["2222", "4"]
    assert whole.turns[0].versions.tolist() == [1, 1, 2, 2, 2] and engine.keys == [7, 7, 7]


def test_a_pause_counts_the_tokens_of_this_play_over_all_turns(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "333", "3"]))
    rollout = run(play(Chat(), Echo(), policy.dialogue(TASK, replace(START, pause=4))))
    assert rollout.outcome is Outcome.PRUNED and engine.limits == [4, 2]
    with pytest.raises(Paused):
        run(policy.dialogue(TASK, replace(START, turns=rollout.turns, pause=1)).completion())


def test_a_completion_that_ends_where_it_was_to_pause_is_the_last_of_this_play(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "4|"]))
    paused = run(play(Chat(), Echo(), policy.dialogue(TASK, replace(START, pause=2))))
    assert paused.outcome is Outcome.PRUNED and [turn.message.content for turn in paused.turns] == ["2"]
    whole = run(play(Chat(), Echo(), policy.dialogue(TASK, replace(START, turns=paused.turns))))
    assert whole.outcome is Outcome.FINISHED and len(whole.turns) == 2 and engine.keys == [7, 7]


def test_tokens_that_may_not_be_spent_truncate(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "333"]))
    rollout = run(play(Chat(), Echo(), policy.dialogue(TASK, START, Limits(tokens=4))))
    assert rollout.outcome is Outcome.TRUNCATED and rollout.num_tokens == 4 and engine.limits == [4, 2]


def test_what_may_be_spent_counts_all_contexts_of_an_rollout(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "9|", "8888", "7777"]))
    dialogue = policy.dialogue(TASK, START, Limits(tokens=7))
    run(dialogue.completion())
    helper = dialogue.aside([Message("user", "what is 3*3?")], policy_name="helper")
    run(helper.completion())
    deeper = helper.aside([Message("user", "sure?")])
    assert not deeper.is_cut
    run(deeper.completion())
    assert engine.limits == [7, 5, 3], "the helper had what was left, and so had who was asked by it"
    assert all(each.is_cut for each in (dialogue, helper, deeper))
    dialogue.restart([Message("user", "in short")])
    assert dialogue.is_cut and sum(len(turn.tokens) for turn in dialogue.turns) == 7


def test_turns_are_counted_over_all_contexts_of_an_rollout(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["2|", "9|"]))
    dialogue = policy.dialogue(TASK, START, Limits(turns=2))
    run(dialogue.completion())
    helper = dialogue.aside([Message("user", "what is 3*3?")])
    assert not helper.is_cut
    run(helper.completion())
    assert helper.is_cut and dialogue.is_cut


def test_asides_that_completion_at_once_share_what_is_left(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Waiting(["2222", "3333", "4|"]), max_tokens=4)
    dialogue = policy.dialogue(TASK, START, Limits(tokens=7))
    both = [dialogue.aside([Message("user", name)]) for name in ("one", "two")]

    async def at_once() -> None:
        await asyncio.gather(*(each.completion() for each in both))

    run(at_once())
    assert engine.limits == [4, 3] and sum(len(turn.tokens) for turn in dialogue.turns) == 7
    assert dialogue.is_cut


class Waiting(Recording):
    """Others are asked before it answers."""

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        found = await super().sample(prompt, sampling, key)
        await asyncio.sleep(0)
        return found


def test_a_branch_is_given_what_it_shares_with_its_parent(tmp_path: Path) -> None:
    """In an environment of turns: the environment's answer is read once, and only the branch's own tokens are written
    in it.
    """
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "333|", "4|", "5|", "4|"]))
    parent: Rollout = run(play(Chat(), Echo(), policy.dialogue(TASK, START)))
    assert [len(turn.tokens) for turn in parent.turns] == [2, 4, 2]
    shared = as_prefix(cut(parent.turns, 4))  # inside the second completion
    branch = run(play(Chat(), env := Echo(), policy.dialogue(TASK, Start("b", 8, shared, parent="a"))))
    assert branch.parent == "a" and [turn.message.content for turn in branch.turns] == ["2", "335", "4"]
    assert env.calls == ["episode", "reset", "step 2", "step 335", "step 4", "close"]
    assert [turn.tokens.tolist() for turn in branch.turns] == [[], ids("5|"), ids("4|")]
    assert branch.num_sampled == 4 and parent.num_sampled == 8
    read = np.concatenate([parent.turns[0].prompt, parent.turns[0].tokens, parent.turns[1].prompt, ids("33")])
    assert engine.prompts[3].tolist() == read.tolist(), "the environment's answer stands there once"
    assert np.concatenate([turn.prompt for turn in branch.turns[:2]]).tolist() == read.tolist(), "as the record says"


def test_a_beginning_ends_where_it_is_cut() -> None:
    turns = run(_turns("ab|", "cd|"))
    assert cut(turns, 0) == () and cut(turns, 6)[1] is turns[1]
    assert [len(turn.tokens) for turn in cut(turns, 3)] == [3], "a whole completion is no unfinished one"
    assert [len(turn.tokens) for turn in cut(turns, 4)] == [3, 1] and cut(turns, 4)[1].message.content == ""
    again = as_prefix(cut(turns, 5))
    assert [turn.num_prefix for turn in again] == [3, 2] and all(len(turn.tokens) == 0 for turn in again)


async def _turns(*completions: str) -> tuple[object, ...]:
    from tests.building import turn

    return tuple(
        replace(
            turn(len(text)),
            tokens=np.array(ids(text)),
            message=Message("assistant", text.removesuffix("|")),
        )
        for text in completions
    )


def test_another_context_reads_its_own_messages_with_a_key_of_its_own(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "3|", "4|"]))
    dialogue = policy.dialogue(TASK, START, keys=(keys := []))
    run(dialogue.completion())
    dialogue.restart([Message("user", "in short: 2")], policy_name="task_generator")
    run(dialogue.completion())
    dialogue.hear([Message("user", "go on")])
    run(dialogue.completion())
    assert [turn.fresh for turn in dialogue.turns] == [False, True, False]
    assert [turn.sampling.policy_name for turn in dialogue.turns] == ["", "task_generator", "task_generator"]
    assert text_of(policy, engine.prompts[1]) == "<|start|>user\nin short: 2<|end|>\n<|start|>assistant\n"
    assert text_of(policy, engine.prompts[2]).startswith("<|start|>user\nin short: 2")
    assert engine.keys[0] == 7 and engine.keys[1] == engine.keys[2] == keys[0] != 7


def test_an_aside_is_a_conversation_beside_this_one(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), engine := Recording(["2|", "9|", "4|"]))
    dialogue = policy.dialogue(TASK, START)
    run(dialogue.completion())
    helper = dialogue.aside([Message("user", "what is 3*3?")], policy_name="helper")
    run(helper.completion())
    dialogue.hear([Message("user", "9")])
    run(dialogue.completion())
    assert [turn.message.content for turn in dialogue.turns] == ["9", "2", "4"], "the last word is the main one's"
    assert [turn.fresh for turn in dialogue.turns] == [True, True, False]
    assert len(set(engine.keys)) == 2 and engine.keys[0] == engine.keys[2]
    assert "3*3" not in text_of(policy, engine.prompts[2])


def test_a_context_that_is_full_before_its_first_word_is_cut(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["2|"]), context=90)
    dialogue = policy.dialogue(TASK, START)
    run(dialogue.completion())
    long = [Message("user", "9" * 90)]
    assert dialogue.aside(long, policy_name="helper").is_cut and not dialogue.is_cut
    dialogue.restart(long, policy_name="task_generator")
    assert dialogue.is_cut and [turn.message.content for turn in dialogue.turns] == ["2"]


def test_what_the_engine_noted_stays_with_its_tokens(tmp_path: Path) -> None:
    class Noting(Recording):
        async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
            found = await super().sample(prompt, sampling, key)
            return replace(found, aux={"entropy": np.arange(1.0, 1 + len(found.tokens))})

    policy = policy_of(save_folder(tmp_path), Noting(["12", "3|"]), max_tokens=2)
    first = policy.dialogue(TASK, START)
    run(first.completion())
    size = len(first.turns[0].prompt)
    assert first.turns[0].aux["entropy"].tolist() == [0.0] * size + [1.0, 2.0]
    onward = policy.dialogue(TASK, replace(START, turns=as_prefix(first.turns)))
    run(onward.completion(Sampling(max_tokens=9)))
    assert onward.turns[0].aux["entropy"].tolist() == [0.0] * size + [1.0, 2.0, 1.0, 2.0]
    told = policy.retold(onward.turns, [Message("user", "?")], TASK)
    assert told[0].aux["entropy"].tolist()[-4:] == [1.0, 2.0, 1.0, 2.0]
    assert len(told[0].aux["entropy"]) == len(told[0].prompt) + len(told[0].tokens)


def test_retold_completions_stand_behind_other_messages(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["4|"]))
    hinted = policy.dialogue(TASK, replace(START, messages=(Message("user", "2+2=? It is even."),)))
    run(hinted.completion())
    (turn,) = policy.retold(hinted.turns, TASK.messages, TASK)
    assert "even" in text_of(policy, hinted.turns[0].prompt) and "even" not in text_of(policy, turn.prompt)
    assert turn.prompt.tolist() == policy.template.opening(TASK.messages).tolist()
    assert turn.tokens is hinted.turns[0].tokens and turn.logprobs is hinted.turns[0].logprobs
