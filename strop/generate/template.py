"""The chat template as pieces: how a conversation opens, and what stands between two replies, each tokenized once.

What follows a reply is found by rendering the template over a stand-in reply and taking the text after it. A template
may therefore strip thinking from earlier replies or put separators around them: tokens already written never change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from tokenizers.decoders import DecodeStream
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from strop.errors import ModelError
from strop.models.folder import check_model_folder, read_config, read_json
from strop.types import IntArray, Message, Tool

_STAND_IN = "stand0in0reply"
_REMEMBERED = 1024  # openings: asked for when a task is admitted, and again by each of its attempts


@dataclass(frozen=True)
class Template:
    """A tokenizer and its chat template."""

    tokenizer: Any
    end: int  # the token that closes a reply
    closing: int  # how many tokens of the template's own closing a reply that wrote `end` needs no more
    ends: frozenset[int]  # every token at which a reply may stop
    _openings: dict[Any, IntArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _backend(self) -> Any:
        """What encodes and decodes within the tokenizer, where it adds nothing: asked directly, it is much quicker."""
        kind, plain = type(self.tokenizer), PreTrainedTokenizerFast
        is_plain = all(getattr(kind, name, None) is getattr(plain, name) for name in ("_decode", "_encode_plus"))
        return self.tokenizer.backend_tokenizer if is_plain else None

    @classmethod
    def load(cls, folder: Path) -> Template:
        """Read tokenizer, template and end tokens from a Hugging Face folder; no code of the folder is run."""
        check_model_folder(folder)
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"the tokenizer in {folder} cannot be loaded: {error}") from error
        closing = tokenizer(_after_reply(tokenizer, (), cue=False), add_special_tokens=False)["input_ids"]
        end = _end_token(tokenizer, closing, folder)
        num_closing = closing.index(end) + 1 if end in closing else 0
        return cls(tokenizer, end, num_closing, frozenset({end, *_stop_tokens(tokenizer, end, folder)}))

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> IntArray:
        """The whole first prompt, up to where the policy begins to write: [P]."""
        key = (tuple(messages), tuple(tools))
        if key not in self._openings:
            if len(self._openings) >= _REMEMBERED:
                self._openings.clear()
            self._openings[key] = self.encode(_render(self.tokenizer, messages, tools=tools))
        return self._openings[key]

    def shown(self, messages: Sequence[Message]) -> str:
        """A whole conversation as the template writes it."""
        return _render(self.tokenizer, messages, cue=False)

    def between(self, last_token: int, messages: Sequence[Message]) -> IntArray:
        """What is read after a reply that ended with `last_token`: its closing if need be, `messages`, a cue: [P]."""
        following = self.encode(_after_reply(self.tokenizer, messages, cue=True))
        return following[self.closing :] if last_token == self.end else following

    def encode(self, text: str) -> IntArray:
        """Tokens of text, without any that the tokenizer would add by itself: [P]."""
        if self._backend is not None:
            return np.array(self._backend.encode(text, add_special_tokens=False).ids, dtype=np.int64)
        return np.array(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"], dtype=np.int64)

    def decode(self, tokens: IntArray) -> str:
        """Text of tokens, special ones included: worlds see everything the policy wrote."""
        if self._backend is not None:
            return self._backend.decode(tokens.tolist(), skip_special_tokens=False)  # type: ignore[no-any-return]
        text: str = self.tokenizer.decode(
            tokens.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def places(self, reply: IntArray) -> IntArray:
        """How many characters of the text stand before the end of each token: [N]; a split character counts at last."""
        stream, total = DecodeStream(skip_special_tokens=False), 0
        found = []
        for token in reply.tolist():
            total += len(stream.step(self.tokenizer.backend_tokenizer, token) or "")
            found.append(total)
        return np.array(found, dtype=np.int64)

    def text(self, reply: IntArray) -> str:
        """A reply as text, without the token that ended it, or several where a model pads with it."""
        size = len(reply)
        while size and int(reply[size - 1]) in self.ends:
            size -= 1
        return self.decode(reply[:size])


def _render(tokenizer: Any, messages: Sequence[Message], cue: bool = True, tools: Sequence[Tool] = ()) -> str:
    try:
        text: str = tokenizer.apply_chat_template(
            [_as_dict(message) for message in messages],
            tools=[_offered(tool) for tool in tools] or None,
            tokenize=False,
            add_generation_prompt=cue,
        )
    except jinja2.TemplateError as error:
        roles = ", ".join(message.role for message in messages)
        raise ModelError(f"the chat template refuses messages of roles {roles}: {error}") from error
    return text


def _after_reply(tokenizer: Any, messages: Sequence[Message], cue: bool) -> str:
    """The text a template puts after a reply: its closing, then `messages`, then the cue to write."""
    talk = (Message("user", "?"), Message("assistant", _STAND_IN), *messages)
    _, found, after = _render(tokenizer, talk, cue).partition(_STAND_IN)
    if not found:
        raise ModelError("the chat template does not show assistant messages, so replies cannot be continued")
    return after


def _offered(tool: Tool) -> dict[str, Any]:
    """A tool in the form that chat templates know."""
    about = {"name": tool.name, "description": tool.description, "parameters": _arguments(tool.parameters)}
    return {"type": "function", "function": about}


def _as_dict(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in message.tool_calls
        ]
    return shown


def _arguments(text: str) -> Any:
    """Templates want arguments as an object; text that is no JSON is shown as it was written."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _end_token(tokenizer: Any, closing: list[int], folder: Path) -> int:
    """The first special token a template writes after a reply, or else the end-of-text token."""
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    end = next((token for token in closing if token in special), tokenizer.eos_token_id)
    if end is None:
        raise ModelError(f"the tokenizer in {folder} has no eos_token and its chat template closes no reply")
    return int(end)


def _stop_tokens(tokenizer: Any, end: int, folder: Path) -> set[int]:
    """The end-of-text tokens of generation_config.json and config.json, at which engines stop."""
    config = read_config(folder)
    found = [config.eos_token_id, getattr(config.get_text_config(), "eos_token_id", None)]
    found.append(read_json(folder / "generation_config.json").get("eos_token_id"))
    named = {token for ids in found for token in (ids if isinstance(ids, list) else [ids]) if token is not None}
    if end not in named:
        raise ModelError(
            f"the chat template in {folder} ends replies with {end} ({tokenizer.decode([end])!r}), but eos_token_id"
            f" of generation_config.json and config.json is {sorted(named) or 'unset'}: no engine would stop; add {end}"
        )
    return named
