"""Rollouts of 30 turns in the style of mini-swe-agent: each is one context, of the very tokens that were sampled.

`STROP_LONG_ROLLOUTS=64` tries as many.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strop.backends import Completion, Stop
from strop.generate.policy import Policy
from strop.generate.serve.dialects.chat_completions import ChatCompletions
from strop.generate.serve.serve_session import Visit
from strop.generate.templates.chat_template import Template
from strop.generate.templates.tool_call_format import CallFormat
from strop.roles import Engine
from strop.types import IntArray, Message, Sampling, Start, Task
from tests.generate.serve.test_call_format import CALLS, marked

ROLLOUTS, TURNS = int(os.environ.get("STROP_LONG_ROLLOUTS", "8")), 30
BASH = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Execute a bash command", "parameters": BASH}}
COMMANDS = (
    r'"command" :"grep -n \"def f\" a.py"',
    r'"command":  "sed -i '
    "'s/a/b/'"
    r' a.py && cat <<EOF > b\nx = {\"k\": [1]}\nEOF", "timeout": 1.0, "login": false',
    r'"login":true,"command":"echo \u00e9 | wc -c"',
)


@dataclass
class Coder(Engine):
    """One of a few commands, spelled as no client would; keeps what it read and wrote last."""

    template: Template
    stream: random.Random
    known: list[int] = field(default_factory=list)  # all tokens of the rollout so far
    breaks: int = 0

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.breaks += prompt[: len(self.known)].tolist() != self.known
        words = self.stream.choice(COMMANDS)
        text = f'I look.\n\n<tool_call>\n{{"name": "bash", "arguments":{{{words}}}}}\n</tool_call>'
        tokens = np.append(self.template.encode_completion(text), self.template.end)
        self.known = [*prompt.tolist(), *tokens.tolist()]
        return Completion(tokens, np.zeros(len(tokens), np.float32), np.zeros(len(tokens), np.int64), Stop.STOP)


def dumped(answer: dict[str, Any], stream: random.Random) -> dict[str, Any]:
    """A message as litellm writes it out: other white space, fields of its own, no thought."""
    message = json.loads(json.dumps(answer["choices"][0]["message"]))
    for call in message["tool_calls"]:
        given = json.loads(call["function"]["arguments"])
        call["function"]["arguments"] = json.dumps(given, separators=stream.choice([None, (",", ":")]))
    return {**message, "function_call": None, "provider_specific_fields": {"refusal": None}}


async def check(template: Template, number: int) -> None:
    stream = random.Random(number)
    coder = Coder(template, stream)
    task = Task((Message("user", "fix it"),), "", "test")
    talk = Policy(template, coder, Sampling(max_tokens=512), 1 << 16).dialogue(task, Start(str(number), number))
    visit, dialect = Visit(talk, CallFormat.of(template)), ChatCompletions()
    said: list[Any] = [{"role": "system", "content": "You have a shell."}, {"role": "user", "content": "fix it"}]
    for turn in range(TURNS):
        ask = dialect.parse({"model": "policy", "messages": said, "tools": [TOOL]})
        answer = dialect.answer(await visit.answer(ask, visit.another_name()), ask)
        message = dumped(answer, stream)
        told = f"<returncode>{turn % 2}</returncode>\n<output>\n{stream.random()}\n</output>"
        said += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": told}]
    assert coder.breaks == 0 and visit.served.contexts == 1 and visit.served.branches == 0
    assert visit.served.turns == len(talk.turns) == TURNS and visit.served.ill_formed == 0
    whole = [token for turn in talk.turns for part in (turn.prompt, turn.tokens) for token in part.tolist()]
    assert whole == coder.known, "what is trained is what was read and written"


def test_none_of_them_breaks(tmp_path: Path) -> None:
    template = marked(tmp_path, CALLS, ("<tool_call>", "</tool_call>"))
    for number in range(ROLLOUTS):
        asyncio.run(check(template, number))
