"""How calls are written is found in the chat template, and read back by tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

from strop.generate.templates.chat_template import Template
from strop.generate.templates.tool_call_format import CallFormat
from strop.pocket.tokenizer import TOKEN_IDS
from strop.types import IntArray, Tool, ToolCall
from tests.generate.talking import CHATML, save_folder
from tests.tiny_models import save_pocket_like

GET = Tool("get", "", '{"properties": {"key": {"type": "string"}}}')
SET = Tool("set", "", '{"properties": {"key": {}, "value": {}}}')
CALLS = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
BARE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    '{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}{% endfor %}<|end|>\n'
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def marked(folder: Path, template: str, marks: tuple[str, ...]) -> Template:
    """A folder whose tokenizer has these marks as tokens."""
    save_folder(folder, template)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in marks])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", clean_up_tokenization_spaces=False)
    fast.chat_template = template
    fast.save_pretrained(folder)
    return Template.load(folder)


@pytest.fixture(scope="module")
def pocket(tmp_path_factory: pytest.TempPathFactory) -> CallFormat:
    found = CallFormat.of(Template.load(save_pocket_like(tmp_path_factory.mktemp("pocket"))))
    assert found is not None
    return found


def letters(text: str) -> IntArray:
    return np.array([TOKEN_IDS[letter] for letter in text])


def test_words_behind_a_name_are_its_parameters(pocket: CallFormat) -> None:
    assert (pocket.opens, pocket.closes, pocket.is_json) == ("<call>", "</call>", False)
    parts = pocket.read(
        pocket.template.encode_completion("<think>1+2=3</think>now <call>set gold 3</call><call>get red</call>"),
        (GET, SET),
    )
    assert parts.thought == "1+2=3" and parts.text == "now"
    assert parts.calls == (ToolCall("set", '{"key": "gold", "value": "3"}'), ToolCall("get", '{"key": "red"}'))


@pytest.mark.parametrize("text", ["<call>put red</call>", "<call>set red</call>", "<call>get</call>", "<call></call>"])
def test_a_call_that_cannot_be_read_stays_text_and_is_flagged(pocket: CallFormat, text: str) -> None:
    parts = pocket.read(pocket.template.encode_completion(text), (GET, SET))
    assert parts.is_ill_formed and not parts.calls and parts.text == text


def test_a_mark_that_is_spelled_is_text(pocket: CallFormat) -> None:
    parts = pocket.read(letters("<call>get red</call>"), (GET, SET))
    assert not parts.calls and parts.text == "<call>get red</call>" and not parts.is_ill_formed


def test_without_tools_nothing_is_a_call(pocket: CallFormat) -> None:
    assert pocket.read(pocket.template.encode_completion("<call>get red</call>"), ()).text == "<call>get red</call>"


def test_a_call_under_way_is_told_apart_from_the_text_before_it(pocket: CallFormat) -> None:
    parts = pocket.read(pocket.template.encode_completion("so <call>get r"), (GET, SET))
    assert parts.text == "so " and parts.unclosed == "<call>get r" and not parts.calls


def test_json_between_marks(tmp_path: Path) -> None:
    template = marked(tmp_path, CALLS, ("<tool_call>", "</tool_call>"))
    found = CallFormat.of(template)
    assert found is not None and (found.opens, found.closes, found.is_json) == ("<tool_call>", "</tool_call>", True)
    text = 'a<tool_call>\n{"name": "get", "arguments": {"key": "re d", "n": [1, false]}}\n</tool_call>'
    parts = found.read(template.encode_completion(text + "<tool_call>{oops}</tool_call>"), (GET,))
    assert parts.calls == (ToolCall("get", '{"key": "re d", "n": [1, false]}'),)
    assert parts.text == "a<tool_call>{oops}</tool_call>" and parts.is_ill_formed


def test_marks_that_are_no_tokens_are_found_in_the_text(tmp_path: Path) -> None:
    save_folder(tmp_path, CALLS)
    found = CallFormat.of(template := Template.load(tmp_path))
    assert found is not None
    parts = found.read(template.encode_completion('<tool_call>{"name": "get", "arguments": {}}</tool_call>'), (GET,))
    assert parts.calls == (ToolCall("get", "{}"),) and parts.text == ""


def test_a_completion_that_is_one_call_and_a_template_without_calls(tmp_path: Path) -> None:
    save_folder(tmp_path / "bare", BARE)
    found = CallFormat.of(template := Template.load(tmp_path / "bare"))
    assert found is not None and not found.opens
    assert found.read(template.encode_completion('{"name": "get", "parameters": {"key": "a"}}'), (GET,)).calls
    assert not found.read(template.encode_completion("get it"), (GET,)).calls
    save_folder(tmp_path / "none", CHATML)
    assert CallFormat.of(Template.load(tmp_path / "none")) is None
