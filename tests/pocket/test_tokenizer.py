"""The pocket model's language, read by `AutoTokenizer` alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.pocket.tokenizer import CHARACTERS, TOKEN_IDS, VOCABULARY, build_tokenizer, save_tokenizer

TALK = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "sum red"},
    {"role": "assistant", "content": "<call>get red</call>"},
    {"role": "tool", "content": "7"},
    {"role": "assistant", "content": "<think>7</think>7"},
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("model")
    save_tokenizer(folder, 512)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return AutoTokenizer.from_pretrained(folder)


def test_one_token_per_character_and_none_without_a_place(tokenizer: Any) -> None:
    assert len(tokenizer) == len(VOCABULARY) == len(set(VOCABULARY)) == 107
    assert [tokenizer.decode([number]) for number in range(len(tokenizer))] == list(VOCABULARY)
    assert len(tokenizer.encode(CHARACTERS)) == len(CHARACTERS) == 96


def test_end_pad_and_unknown(tokenizer: Any) -> None:
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token) == ("<|end|>", "<|pad|>", "<unk>")
    assert tokenizer.encode("é日") == [TOKEN_IDS["<unk>"]] * 2
    assert tokenizer.model_max_length == 512


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(VOCABULARY)))
def test_decoding_gives_back_the_text(pieces: list[str]) -> None:
    tokenizer, text = build_tokenizer(), "".join(pieces)
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_envs_still_see_their_tags_where_special_tokens_are_skipped(tokenizer: Any) -> None:
    tokens = tokenizer.encode("<think>1</think><call>get red</call>2<|end|>")
    assert tokenizer.decode(tokens, skip_special_tokens=True) == "<think>1</think><call>get red</call>2"


def test_chat_template_is_stable_turn_by_turn(tokenizer: Any) -> None:
    def render(messages: list[dict[str, str]], cue: bool) -> str:
        text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=cue)
        return text

    whole = render(TALK, False)
    assert whole == (
        "<|system|>be brief<|end|><|user|>sum red<|end|><|assistant|><call>get red</call><|end|>"
        "<|tool|>7<|end|><|assistant|><think>7</think>7<|end|>"
    )
    for count in range(1, len(TALK)):
        assert whole.startswith(render(TALK[:count], False))
        if TALK[count]["role"] == "assistant":
            assert whole.startswith(render(TALK[:count], True))


def test_tool_calls_are_written_as_the_model_writes_them(tokenizer: Any) -> None:
    for arguments, shown in (("red", "red"), ({"key": "red"}, '{"key": "red"}')):
        call = {"type": "function", "function": {"name": "get", "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        text = tokenizer.apply_chat_template([message], tokenize=False)
        assert text == f"<|assistant|><call>get {shown}</call><|end|>"


def test_an_unknown_role_is_refused(tokenizer: Any) -> None:
    with pytest.raises(Exception, match="role must be system, user, assistant or tool, got judge"):
        tokenizer.apply_chat_template([{"role": "judge", "content": "hm"}], tokenize=False)
