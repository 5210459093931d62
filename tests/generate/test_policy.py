"""Tokens are only ever appended, whatever the template does, and limits end a rollout where they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strop.backends import Stop
from strop.errors import ConfigurationError, ModelError
from strop.generate.policy import Policy, check_model_folder, rollout_key
from strop.types import Message, Sampling, Start, Task, Turn
from tests.generate.talking import BRACKETS, CHATML, END, FORGETFUL, TASK, Recording, ids, policy_of, run, save_folder

START = Start("a", 7)


async def talk(policy: Policy, heard: list[str], start: Start = START) -> tuple[Turn, ...]:
    """One completion, then one more after each thing that is heard."""
    dialogue = policy.dialogue(TASK, start)
    await dialogue.completion()
    for text in heard:
        dialogue.hear([Message("user", text)])
        await dialogue.completion()
    return dialogue.turns


@pytest.mark.parametrize("template", [CHATML, FORGETFUL, BRACKETS])
@pytest.mark.parametrize("completions", [["x|", "y|", "z|"], ["x", "yy", "z|"], ["<think>no</think>x|", "ab|", " y |"]])
def test_what_is_sent_begins_with_all_that_was_sent_and_sampled(
    tmp_path: Path, template: str, completions: list[str]
) -> None:
    engine = Recording(completions)
    policy = policy_of(save_folder(tmp_path, template), engine)
    turns = run(talk(policy, ["no", "try ab"]))
    for earlier, later, turn, after in zip(engine.prompts, engine.prompts[1:], turns, turns[1:], strict=False):
        assert later.tolist() == [*earlier.tolist(), *turn.tokens.tolist(), *after.prompt.tolist()]
    assert [turn.tokens.tolist() for turn in turns] == [ids(completion) for completion in completions]
    assert np.concatenate([piece for t in turns for piece in (t.prompt, t.tokens)])[:-1].tolist() == [
        *engine.prompts[-1].tolist(),
        *turns[-1].tokens[:-1].tolist(),
    ]


def test_the_conversation_reads_as_the_template_would_write_it(tmp_path: Path) -> None:
    engine = Recording(["four|", "4|"])
    policy = policy_of(save_folder(tmp_path), engine)
    run(talk(policy, ["digits"]))
    said = [*TASK.messages, Message("assistant", "four"), Message("user", "digits")]
    whole = policy.template.opening(said)
    assert engine.prompts[1].tolist() == whole.tolist()


def test_a_completion_cut_by_length_is_closed_before_the_env_speaks(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["four", "4|"]))
    turns = run(talk(policy, ["digits"]))
    assert policy.template.decode(turns[1].prompt) == "<|end|>\n<|start|>user\ndigits<|end|>\n<|start|>assistant\n"
    policy = policy_of(save_folder(tmp_path), Recording(["four|", "4|"]))
    turns = run(talk(policy, ["digits"]))
    assert policy.template.decode(turns[1].prompt) == "\n<|start|>user\ndigits<|end|>\n<|start|>assistant\n"


def test_a_template_that_closes_with_a_space_is_not_closed_twice(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path, BRACKETS), Recording(["four|", "4|"]))
    assert policy.template.decode(run(talk(policy, ["digits"]))[1].prompt) == "[digits]"
    policy = policy_of(save_folder(tmp_path, BRACKETS), Recording(["four", "4|"]))
    assert policy.template.decode(run(talk(policy, ["digits"]))[1].prompt) == " <|end|>[digits]"


def test_what_is_heard_in_two_pieces_is_one_prompt(tmp_path: Path) -> None:
    async def hear(pieces: list[list[str]]) -> list[int]:
        dialogue = policy_of(save_folder(tmp_path), engine := Recording(["x|", "y|"])).dialogue(TASK, START)
        await dialogue.completion()
        for piece in pieces:
            dialogue.hear([Message("tool", text) for text in piece])
        await dialogue.completion()
        return engine.prompts[1].tolist()

    assert run(hear([["1"], ["2"]])) == run(hear([["1", "2"]]))


def test_message_keeps_special_tokens_but_the_last_end(tmp_path: Path) -> None:
    engine = Recording(["a|b|", "left"])
    turns = run(talk(policy_of(save_folder(tmp_path), engine), ["on"]))
    assert [turn.message.content for turn in turns] == ["a<|end|>b", "left"]
    assert [turn.versions.tolist() for turn in turns] == [[1, 1, 1, 1], [2, 2, 2, 2]]
    assert engine.keys == [7, 7]


def test_a_stop_string_stays_and_the_turn_is_closed_after_it(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["f()</x>", "y|"]), stop=("</x>",))
    turns = run(talk(policy, ["1"]))
    assert turns[0].message.content == "f()</x>"
    assert policy.template.decode(turns[1].prompt).startswith("<|end|>\n<|start|>user")


def test_max_tokens_is_limited_by_what_the_context_leaves(tmp_path: Path) -> None:
    engine = Recording(["abcdefghij|"])
    opening = len(policy_of(save_folder(tmp_path), engine).template.opening(TASK.messages))
    dialogue = policy_of(tmp_path, engine, max_tokens=64, context=opening + 5).dialogue(TASK, START)
    run(dialogue.completion())
    assert engine.limits == [5] and dialogue.is_cut and dialogue.stop is Stop.LENGTH
    assert dialogue.turns[0].sampling == Sampling(max_tokens=64)


def test_a_context_filled_by_the_env_is_cut_before_the_next_completion(tmp_path: Path) -> None:
    dialogue = policy_of(save_folder(tmp_path), Recording(["x|", "y|"]), context=200).dialogue(TASK, START)
    run(dialogue.completion())
    assert not dialogue.is_cut
    dialogue.hear([Message("user", "z" * 200)])
    assert dialogue.is_cut
    with pytest.raises(ValueError, match="context of 200 tokens is full"):
        run(dialogue.completion())


def test_a_prompt_longer_than_the_context_names_task_and_numbers(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording([]), context=50)
    task = Task((Message("user", "z" * 60),), "", "test")
    length = len(policy.template.opening(task.messages))
    with pytest.raises(ConfigurationError, match=rf"task {task.id}: .*{length} tokens.*context=50.*{length + 1}"):
        policy.dialogue(task, START)


def test_a_teachers_turn_is_certain_and_by_nobody(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["y|"]))
    dialogue = policy.dialogue(TASK, START)
    dialogue.say(Message("assistant", "ab"))
    dialogue.hear([Message("user", "and?")])
    run(dialogue.completion())
    taught = dialogue.turns[0]
    assert taught.tokens.tolist() == [*policy.template.encode("ab").tolist(), END] and len(taught.tokens) == 2
    assert taught.logprobs.tolist() == [0.0, 0.0] and taught.versions.tolist() == [-1, -1]
    assert policy.template.decode(dialogue.turns[1].prompt).startswith("\n<|start|>user")


def test_a_resumed_rollout_goes_on_with_the_same_tokens(tmp_path: Path) -> None:
    whole, half = Recording(["x|", "y|"]), Recording(["y|"])
    turns = run(talk(policy_of(save_folder(tmp_path), whole), ["no"]))
    dialogue = policy_of(tmp_path, half).dialogue(TASK, Start("b", 9, turns[:1]))
    dialogue.hear([Message("user", "no")])
    run(dialogue.completion())
    assert half.prompts[0].tolist() == whole.prompts[1].tolist()
    assert dialogue.turns[0] is turns[0]


def test_an_unfinished_turn_goes_on_inside_itself(tmp_path: Path) -> None:
    (begun,) = run(talk(policy_of(save_folder(tmp_path), Recording(["fo"])), []))
    engine = Recording(["ur|"])
    dialogue = policy_of(tmp_path, engine).dialogue(TASK, Start("b", 9, (begun,)))
    assert dialogue.turns == () and not dialogue.is_cut
    message = run(dialogue.completion())
    assert engine.prompts[0].tolist() == [*begun.prompt.tolist(), *begun.tokens.tolist()]
    assert message.content == "four" and dialogue.turns[0].tokens.tolist() == ids("four|")
    assert len(dialogue.turns[0].versions) == len(dialogue.turns[0].logprobs) == 5


def test_a_fresh_turn_restarts_the_context(tmp_path: Path) -> None:
    turns = run(talk(policy_of(save_folder(tmp_path), Recording(["x|", "y|"])), ["no"]))
    restarted = Turn(np.array(ids("q")), np.array(ids("r|")), *_certain(2), Message("assistant", "r"), fresh=True)
    engine = Recording(["z|"])
    dialogue = policy_of(tmp_path, engine).dialogue(TASK, Start("b", 9, (*turns, restarted)))
    dialogue.hear([Message("user", "on")])
    run(dialogue.completion())
    assert engine.prompts[0][:3].tolist() == ids("qr|")


def _certain(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(count, np.float32), np.zeros(count, np.int64)


def test_rollout_keys_are_stable_and_spread() -> None:
    assert (
        rollout_key(0, "3-1") == rollout_key(0, "3-1") == 4425057022560231185
    )  # half of the first 8 bytes of sha256("0/3-1")
    keys = {rollout_key(seed, f"{group}-{number}") for seed in range(3) for group in range(50) for number in range(8)}
    assert len(keys) == 1200 and all(0 <= key < 2**63 for key in keys)


def test_a_whole_folder_passes_and_missing_parts_are_named(tmp_path: Path) -> None:
    check_model_folder(save_folder(tmp_path / "good"))
    with pytest.raises(ModelError, match="does not exist"):
        check_model_folder(tmp_path / "nowhere")
    for file, said in {
        "config.json": "config.json",
        "tokenizer.json": "tokenizer",
        "model.safetensors": "weights",
    }.items():
        folder = save_folder(tmp_path / file)
        (folder / file).unlink()
        with pytest.raises(ModelError, match=f"has no {said}"):
            check_model_folder(folder)
    with pytest.raises(ModelError, match=r"no chat template .*instruct model"):
        Policy.load(save_folder(tmp_path / "base", template=None), Recording([]), Sampling(), 10)


def test_a_missing_shard_and_broken_json_are_named(tmp_path: Path) -> None:
    folder = save_folder(tmp_path)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00002-of-00002.safetensors"}}')
    with pytest.raises(ModelError, match="no weights"):
        check_model_folder(folder)
    (folder / "model.safetensors.index.json").write_text("{")
    with pytest.raises(ModelError, match=r"index\.json is not valid JSON"):
        check_model_folder(folder)


def test_an_end_token_no_engine_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'<\|end\|>'.*eos_token_id.*is \[2\].*add 1"):
        policy_of(save_folder(tmp_path, end=2), Recording([]))


def test_a_context_beyond_the_models_positions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"context=1024.*100 positions"):
        policy_of(save_folder(tmp_path, positions=100), Recording([]))


def test_a_template_that_refuses_a_role_says_so(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" + CHATML[27:]
    )
    policy = policy_of(save_folder(tmp_path, template), Recording(["x|"]))
    dialogue = policy.dialogue(TASK, START)
    run(dialogue.completion())
    with pytest.raises(ModelError, match=r"roles user, assistant, tool.*no tools"):
        dialogue.hear([Message("tool", "1")])
