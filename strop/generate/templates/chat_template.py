"""Incremental tokenization with a chat template: each piece of a conversation is rendered and tokenized once.

The text after a completion is found by rendering the template over a placeholder completion and taking what follows it.
A template may therefore strip thinking from earlier completions or put separators around them: sampled tokens never
change. Only the template writes control tokens. Control tokens spelled out in other text are encoded as ordinary text
and counted; templates cannot search for such markers in it either.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.decoders import DecodeStream
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from strop.errors import ModelError
from strop.generate.templates.picture_prompts import PictureReader, has_places, parts_of
from strop.generate.templates.render import TemplateError, rendered
from strop.generate.templates.template_form import is_apart, sought
from strop.models.loading.check_folder import check_model_folder, read_config, read_json
from strop.models.tokens.control_tokens import UNHEARD, ControlTokens, template_text
from strop.models.tokens.picture_words import MARKER
from strop.models.tokens.private_use_characters import Twins
from strop.storage.picture_store import PictureStore
from strop.types import IntArray, Message, Tool, ToolCall

_STAND_IN = "stand0in0completion"
_THOUGHT = ("<think>", "</think>")
_REMEMBERED = 1024  # openings: asked for when a task is admitted, and again by each of its rollouts


@dataclass(frozen=True)
class Template:
    """Tokenizer and its chat template."""

    tokenizer: Any
    end: int  # the token that closes a completion
    closing: int  # how many tokens of the template's own closing a completion that wrote `end` needs no more
    ends: frozenset[int]  # every token at which a completion may stop
    folder: Path | None = None  # of the model
    store: PictureStore = field(default_factory=PictureStore, repr=False, compare=False)
    _openings: dict[Any, IntArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _backend(self) -> Any:
        """What decodes within the tokenizer, where it adds nothing: asked directly, it is much quicker."""
        is_plain = type(self.tokenizer)._decode is PreTrainedTokenizerFast._decode
        return self.tokenizer.backend_tokenizer if is_plain else None

    @cached_property
    def control(self) -> ControlTokens:
        """The tokens that only this template may write."""
        return ControlTokens.of(self.tokenizer)

    @cached_property
    def pictures(self) -> PictureReader:
        """How pictures stand in prompts; refused where the model reads none."""
        if self.folder is None:
            raise ModelError("pictures need a model folder: load the template from one")
        return PictureReader.of(self.folder, self.tokenizer, self.store)

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Control tokens that stand within completions: around thoughts, and around calls as the template shows
        them.
        """
        names = {number: text for text, number in self.control.ids.items()}
        asked, call = Message("user", "?"), Message("assistant", "", (ToolCall("name", '{"key": "value"}'),))
        try:
            called = self.control.encode(_render(self.tokenizer, (asked, call), cue=False))
        except ModelError:
            called = []  # its template shows none
        said = self.control.encode(_render(self.tokenizer, (asked, Message("assistant", "!")), cue=False))
        within = {*called} - {*said} - self.ends
        return tuple(text for number, text in names.items() if number in within or text in _THOUGHT)

    @classmethod
    def load(cls, folder: Path, store: PictureStore | None = None) -> Template:
        """Read tokenizer, template and end tokens from a Hugging Face folder; no code of the folder is run.

        What its image processor makes of pictures goes to the store.
        """
        check_model_folder(folder)
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"the tokenizer in {folder} cannot be loaded: {error}") from error
        closing = tokenizer(_after_completion(tokenizer, (), cue=False), add_special_tokens=False)["input_ids"]
        end = _end_token(tokenizer, closing, folder)
        num_closing = closing.index(end) + 1 if end in closing else 0
        ends = frozenset({end, *_stop_tokens(tokenizer, end, folder)})
        template = cls(tokenizer, end, num_closing, ends, folder, store or PictureStore())
        if template.ends & {*template.control.encode_content(UNHEARD)}:
            raise ModelError(
                f"the tokenizer in {folder} makes the end of a completion of characters that it does not know"
            )
        return template

    @cached_property
    def _sought(self) -> tuple[list[str], list[str]]:
        """What the template looks for in messages, control tokens apart: it may see the first list, not the second."""
        texts = sorted(sought(template_text(self.tokenizer)) - self.control.ids.keys())
        risky = [text for text in texts if self.control.twins.is_risky(text)]
        apart = [text for text in risky if is_apart(text, self.control.ids)]
        return apart, [text for text in risky if text not in apart]

    @property
    def hidden_markers(self) -> Sequence[str]:
        """Markers that the template looks for in vain: in content they could be parts of control tokens."""
        return self._sought[1]

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> IntArray:
        """The whole first prompt, up to where the policy begins to write: [P]."""
        key = (tuple(messages), tuple(tools))
        if key not in self._openings:
            if len(self._openings) >= _REMEMBERED:
                self._openings.clear()
            offered = [_covered_tool(tool, self.control.twins) for tool in tools]
            self._openings[key] = self._tokens(
                _render(self.tokenizer, self._covered(messages), tools=offered), messages
            )
        return self._openings[key]

    def spelled(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[str]:
        """The control tokens that these spell, as often as they do; all are read as text."""
        texts = [text for tool in tools for text in (tool.name, tool.description, tool.parameters)]
        for each in messages:
            content = each.content.replace(MARKER, " ") if has_places(each) else each.content
            texts += [self._without_markers(content) if each.is_completion else content]
            texts += [text for call in each.tool_calls for text in (call.name, call.arguments)]
        return [token for text in texts for token in self.control.spelled(text)]

    def shown(self, messages: Sequence[Message]) -> str:
        """A whole conversation as the template writes it."""
        return _render(self.tokenizer, messages, cue=False)

    def between(self, last_token: int, messages: Sequence[Message]) -> IntArray:
        """What is read after a completion that ended with `last_token`: its closing if need be, `messages`, a cue:
        [P].
        """
        following = self._tokens(_after_completion(self.tokenizer, self._covered(messages), cue=True), messages)
        return following[self.closing :] if last_token == self.end else following

    def encode(self, text: str) -> IntArray:
        """Tokens of content, without any that the tokenizer would add by itself: [P]. None is a control token."""
        return np.array(self.control.encode_content(text), dtype=np.int64)

    def encode_completion(self, text: str) -> IntArray:
        """Tokens of text in the place of a completion, where markers of thoughts and calls are tokens: [P]."""
        return np.array(self.control.encode_content(text, self.markers), dtype=np.int64)

    def _tokens(self, rendered: str, messages: Sequence[Message]) -> IntArray:
        pictures = [each for message in messages for each in message.images]
        if not pictures:
            return np.array(self.control.encode(rendered), dtype=np.int64)
        if lacking := {self.pictures.placeholder, self.pictures.shown_by} - self.control.ids.keys():
            raise ModelError(f"{self.folder}: {min(lacking)} is no special token, so text could spell it")
        ids = self.control.encode(self.pictures.expanded(rendered, pictures))
        return self.pictures.with_words(np.array(ids, dtype=np.int64), pictures)

    def _without_markers(self, text: str) -> str:
        for marker in self.markers:
            text = text.replace(marker, " ")
        return text

    def _covered(self, messages: Sequence[Message]) -> list[Message]:
        """Messages in which nothing spells a control token, but markers of thoughts and calls in completions."""
        _ = any(message.images for message in messages) and self.pictures  # which a text model refuses
        twins, seen = self.control.twins, self._sought[0]
        return [_covered(each, twins, [*seen, *self.markers] if each.is_completion else seen) for each in messages]

    def decode(self, tokens: IntArray) -> str:
        """Text of tokens, special ones included: environments see everything the policy wrote."""
        if len(tokens) and tokens.min() < 0:
            tokens = self.pictures.shown_as(tokens)
        if self._backend is not None:
            return self._backend.decode(tokens.tolist(), skip_special_tokens=False)  # type: ignore[no-any-return]
        text: str = self.tokenizer.decode(
            tokens.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def places(self, completion: IntArray) -> IntArray:
        """How many characters of the text stand before the end of each token: [N]; a split character counts at last."""
        stream, total = DecodeStream(skip_special_tokens=False), 0
        found = []
        for token in completion.tolist():
            total += len(stream.step(self.tokenizer.backend_tokenizer, token) or "")
            found.append(total)
        return np.array(found, dtype=np.int64)

    def text(self, completion: IntArray) -> str:
        """A completion as text, without the token that ended it, or several where a model pads with it."""
        size = len(completion)
        while size and int(completion[size - 1]) in self.ends:
            size -= 1
        return self.decode(completion[:size])


def _render(tokenizer: Any, messages: Sequence[Message], cue: bool = True, tools: Sequence[Tool] = ()) -> str:
    is_parted = _wants_parts(tokenizer)
    try:
        told = [_as_dict(each, is_parted) for each in messages]
        return rendered(tokenizer, told, [_offered(each) for each in tools], cue)
    except TemplateError as error:
        roles = ", ".join(message.role for message in messages)
        raise ModelError(f"the chat template refuses messages of roles {roles}: {error}") from error


def _after_completion(tokenizer: Any, messages: Sequence[Message], cue: bool) -> str:
    """The text a template puts after a completion: its closing, then `messages`, then the cue to write."""
    talk = (Message("user", "?"), Message("assistant", _STAND_IN), *messages)
    _, found, after = _render(tokenizer, talk, cue).partition(_STAND_IN)
    if not found:
        raise ModelError("the chat template does not show assistant messages, so completions cannot be continued")
    return after


def _covered(message: Message, twins: Twins, allowed: Sequence[str]) -> Message:
    calls = [
        ToolCall(twins.cover_name(call.name), twins.cover_json(call.arguments, has_names=True))
        for call in message.tool_calls
    ]
    content = twins.cover(message.content)
    for marker in (*allowed, MARKER) if has_places(message) else allowed:
        content = content.replace(twins.cover(marker), marker)
    return Message(twins.cover(message.role), content, tuple(calls), images=message.images)


def _covered_tool(tool: Tool, twins: Twins) -> Tool:
    return Tool(twins.cover_name(tool.name), twins.cover(tool.description), twins.cover_json(tool.parameters))


def _offered(tool: Tool) -> dict[str, Any]:
    """A tool in the form that chat templates know."""
    about = {"name": tool.name, "description": tool.description, "parameters": _arguments(tool.parameters)}
    return {"type": "function", "function": about}


@lru_cache(maxsize=16)
def _wants_parts(tokenizer: Any) -> bool:
    """Whether a template shows nothing of content that is plain text, as those of SmolVLM."""
    if "type" not in template_text(tokenizer):
        return False
    try:
        plain, parted = (
            rendered(tokenizer, [_as_dict(Message("user", _STAND_IN), is_parted)], [], False)
            for is_parted in (False, True)
        )
    except TemplateError:
        return False
    return _STAND_IN not in plain and _STAND_IN in parted


def _as_dict(message: Message, is_parted: bool) -> dict[str, Any]:
    content = parts_of(message) if is_parted or message.images else message.content
    shown: dict[str, Any] = {"role": message.role, "content": content}
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
    except (ValueError, RecursionError):
        return text


def _end_token(tokenizer: Any, closing: list[int], folder: Path) -> int:
    """The first special token a template writes after a completion, or else the end-of-text token."""
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    end = next((token for token in closing if token in special), tokenizer.eos_token_id)
    if end is None:
        raise ModelError(f"the tokenizer in {folder} has no eos_token and its chat template closes no completion")
    return int(end)


def _stop_tokens(tokenizer: Any, end: int, folder: Path) -> set[int]:
    """The end-of-text tokens of generation_config.json and config.json, at which engines stop."""
    config = read_config(folder)
    found = [getattr(config, "eos_token_id", None), getattr(config.get_text_config(), "eos_token_id", None)]
    found.append(read_json(folder / "generation_config.json").get("eos_token_id"))
    named = {token for ids in found for token in (ids if isinstance(ids, list) else [ids]) if token is not None}
    if end not in named:
        raise ModelError(
            f"the chat template in {folder} ends completions with {end} ({tokenizer.decode([end])!r}), but eos_token_id"
            f" of generation_config.json and config.json is {sorted(named) or 'unset'}: no engine would stop; add {end}"
        )
    return named
