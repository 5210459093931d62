"""Chat templates are programs: those that never end or want all memory are ended, and say so in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from strop.errors import ModelError
from strop.generate.templates import render as rendering
from strop.generate.templates.chat_template import Template
from strop.generate.templates.render import TemplateError, rendered
from strop.generate.templates.template_form import is_bounded
from strop.pocket.tokenizer import CHAT_TEMPLATE
from strop.types import Message
from tests.tiny_models import save_pocket_like

_TALK = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
_RANGES = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
# each in a template that is well-behaved until the conversation has a message that says so
_BOMBS = {
    "nested loops": (_RANGES, "1 s of the processor"),
    "recursion": ("{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "RecursionError|processor"),
    "doubling": (
        "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "MemoryError|processor",
    ),
    "product": ("{% set x = 'a' * 9999999999 %}", "MemoryError"),
    "method": ("{{ 'a'.center(9999999999) }}", "MemoryError"),
    "format": ("{{ '%9999999999d' % 1 }}", "MemoryError|OverflowError|ValueError"),
    "power": ("{{ (messages | length + 8) ** ((messages | length + 8) ** 9) }}", "processor|MemoryError|ValueError"),
    "long text": ("{% for i in range(90000) %}" + "a" * 1000 + "{% endfor %}", "it wrote 9[0-9]+ characters"),
    "type error": ("{{ 1 + 'a' }}", "TypeError"),
    "generated code": ("{{ " + "(" * 150 + "1" + ",)" * 150 + " }}", "Error"),
}
_WHOLE = {
    "chatml": (
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
        "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    "pocket": CHAT_TEMPLATE,
    "namespaces": (
        "{%- set ns = namespace(last=0) -%}{%- for m in messages[::-1] -%}{%- set ns.last = loop.index0 -%}"
        "{%- endfor -%}{{ ns.last }}{% for m in messages %}{% generation %}{{ m.content | trim }}{% endgeneration %}"
        "{% endfor %}{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}{{ eos_token }}"
    ),
}
_NOT_BOUNDED = (
    "{% for a in range(3) %}{% endfor %}",
    "{% for m in messages %}{{ messages }}{% endfor %}",
    "{% for m in messages %}{% for n in messages %}x{% endfor %}{% endfor %}",
    "{% for m in messages %}{% for c in m.tool_calls %}{{ m.content }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% set x = m %}{% for c in m.tool_calls %}{{ x }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% set m = messages %}{{ m }}{% endfor %}",
    "{% for c in messages[0].content %}x{% endfor %}",
    "{% set a = 'x' ~ 'y' %}",
    "{{ messages | tojson | tojson }}",
    "{% set n = namespace(a='') %}",
    "{{ 'a' * 9 }}",
    "{{ 'a'.center(9) }}",
    "{{ '%9d' % 3 }}",
    "{% macro f() %}{% endmacro %}",
    "{{ 'a' | indent(9) }}",
    "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Any:
    return AutoTokenizer.from_pretrained(save_pocket_like(tmp_path / "model"))


@pytest.mark.parametrize("name", list(_BOMBS))
def test_a_template_that_takes_too_much_is_named_and_the_next_one_is_rendered(
    tokenizer: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the text is that sets it off: nothing that was rendered before proves anything."""
    monkeypatch.setattr(rendering, "SECONDS", 1.0)
    bomb, said = _BOMBS[name]
    tokenizer.chat_template = _TALK + "{% if messages[-1].content == 'now' %}" + bomb + "{% endif %}"
    calm = [{"role": "user", "content": "hello"}]
    assert not is_bounded(tokenizer.chat_template)
    if name != "generated code":  # which no interpreter takes, whatever is said
        assert rendered(tokenizer, calm, (), cue=False) == "user:hello\n"
    began = time.monotonic()
    with pytest.raises(ModelError, match=rf"chat template of .*model cannot be used: (.|\n)*({said})"):
        rendered(tokenizer, [{"role": "user", "content": "now"}], (), cue=False)
    assert time.monotonic() - began < 60
    tokenizer.chat_template = "{% set n = namespace(a=1) %}{{ n.a }}"
    assert rendered(tokenizer, calm, (), cue=False) == "1"


@pytest.mark.parametrize("name", list(_WHOLE))
def test_in_its_process_a_template_writes_what_transformers_does(
    tokenizer: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "is_bounded", lambda template: False)  # all of them in the process
    tokenizer.chat_template = _WHOLE[name]
    arguments = {"a": [1, None], "ü": "</call>"}
    calls = [{"type": "function", "function": {"name": "add", "arguments": arguments}}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": " 1 + 1?\n"},
        {"role": "assistant", "content": "é \u2028 2", "tool_calls": calls},
        {"role": "tool", "content": "\ud800 half a pair"},
    ]
    tools = [{"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}]
    for cue in (False, True):
        expected = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=cue)
        assert rendered(tokenizer, messages, tools, cue) == expected


def test_templates_of_plain_form_are_bounded_and_others_are_not(tokenizer: Any) -> None:
    assert is_bounded(CHAT_TEMPLATE) and is_bounded(_WHOLE["chatml"]) and is_bounded(_TALK)
    assert [each for each in _NOT_BOUNDED if is_bounded(each)] == []
    assert not is_bounded(_TALK + " " * 5000)


def test_a_refusal_is_told_with_the_words_of_the_template(tokenizer: Any) -> None:
    for text in (
        "{{ raise_exception('no ' + messages[0].role) }}",
        "{{ raise_exception('no ' ~ 'u'.join(['', 'ser'])) }}",
    ):
        tokenizer.chat_template = text
        with pytest.raises(TemplateError, match="no user"):
            rendered(tokenizer, [{"role": "user", "content": ""}], (), cue=True)


def test_a_folder_with_such_a_template_is_refused_by_the_command_line(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": _TALK + _RANGES}))
    asked = [sys.executable, "-m", "strop", "eval", str(folder), "--tasks", "1", "--env", "arithmetic:1", "--k", "1"]
    said = subprocess.run(asked, capture_output=True, text=True, env={**os.environ, "STROP_TEST": str(tmp_path)})
    assert said.returncode == 2 and "5 s of the processor" in said.stderr and "Traceback" not in said.stderr
    mark = f"STROP_TEST={tmp_path}".encode()
    episodes = [_episode(path) for path in Path("/proc").glob("[0-9]*")]
    assert not any(mark in each for each in episodes)  # nothing is left behind


def _episode(path: Path) -> list[bytes]:
    try:
        return (path / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def test_all_that_a_template_shows_goes_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 1.0)
    folder = save_pocket_like(tmp_path)
    path = folder / "tokenizer_config.json"
    harmless = CHAT_TEMPLATE + "{% if messages | length > 2 %}" + _RANGES + "{% endif %}"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": harmless}))
    template = Template.load(folder)
    assert len(template.opening([Message("user", "1+1?")]))
    for render in (
        lambda: template.between(0, [Message("tool", "2")]),
        lambda: template.shown([Message("user", "?")] * 3),
    ):
        with pytest.raises(ModelError, match="of the processor"):
            render()
