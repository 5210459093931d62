"""Rendering of Jinja chat templates, untrusted programs from model folders, with time and memory limits.

Templates whose form bounds their work (`template_form.py`) are rendered in process, any other in a killable process
that all templates share.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import jinja2
from transformers import PreTrainedTokenizerBase

from strop.errors import ModelError
from strop.generate.templates.template_form import is_bounded
from strop.workers.child import START_SECONDS, Child
from strop.workers.frames import Frame
from strop.workers.untrusted_answers import NoAnswer

SECONDS = 5.0  # of the processor
_SPECIAL = 4096  # characters of all special tokens
_OURS = ("signal SIGTERM", "signal SIGKILL")  # ended with the thread that had started it, and not by its template


class TemplateError(Exception):
    """Error raised by a template about a conversation, with the template's own message."""


def rendered(tokenizer: Any, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], cue: bool) -> str:
    """A conversation as the template of a tokenizer writes it."""
    text = _template_of(tokenizer, tools)
    special = dict(tokenizer.special_tokens_map)
    if text is None or (is_bounded(text) and len(str(special)) <= _SPECIAL):
        return _here(tokenizer, messages, tools, cue)
    asked: dict[str, Any] = {"template": text, "messages": messages, "tools": tools or None, "cue": cue}
    asked |= {"special": special, "seconds": SECONDS}
    answer = _process(os.getpid()).ask(asked, tokenizer.name_or_path)
    if "refused" in answer:
        raise TemplateError(answer["refused"])
    if "text" not in answer:
        raise ModelError(f"the chat template of {tokenizer.name_or_path} cannot be used: {answer.get('failed')}")
    return str(answer["text"])


def _template_of(tokenizer: Any, tools: Sequence[dict[str, Any]]) -> str | None:
    """The template's text; None where the tokenizer renders by code of transformers instead."""
    if type(tokenizer).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template:
        return None
    try:
        return str(tokenizer.get_chat_template(tools=tools or None))
    except ValueError as error:
        raise ModelError(f"{tokenizer.name_or_path} has no chat template to be used: {error}") from error


def _here(tokenizer: Any, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], cue: bool) -> str:
    try:
        text: str = tokenizer.apply_chat_template(
            list(messages), tools=list(tools) or None, tokenize=False, add_generation_prompt=cue
        )
    except jinja2.TemplateError as error:
        raise TemplateError(str(error)) from error
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        told = f"{type(error).__name__}: {error}"
        raise ModelError(f"the chat template of {tokenizer.name_or_path} cannot be used: {told}") from error
    return text


class _TemplateProcess:
    """Rendering process, started when first needed and after each template that had to be killed."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._turn = threading.Lock()

    def ask(self, asked: dict[str, Any], name: str) -> dict[str, Any]:
        """What it answers; a template that takes too much is named and its process is gone."""
        with self._turn:
            try:
                return self._answer(asked)
            except NoAnswer as first:
                if str(first) not in _OURS:
                    raise ModelError(_told(name, str(first))) from None
            try:
                return self._answer(asked)
            except NoAnswer as second:
                raise ModelError(_told(name, str(second))) from None

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._child is None or not self._child.is_alive:
            self._child = Child("strop.generate.templates.template_process")
        try:
            self._child.tell(asked)
            return _heard(self._child).head
        except NoAnswer as nothing:
            how = self._child.end(1.0)
            self._child = None
            raise NoAnswer(str(nothing) or how) from None


def _heard(child: Child) -> Frame:
    """The next message; the process itself keeps to its deadline, so that a busy machine is nobody's fault."""
    poll = select.poll()
    poll.register(child.fileno(), select.POLLIN | select.POLLHUP)
    while poll.poll(START_SECONDS * 1000):
        if frames := child.heard():
            return frames[0]
    raise NoAnswer(f"no answer within {START_SECONDS:.0f} s")


def _told(name: str, how: str) -> str:
    why = (
        f"it takes more than {SECONDS:.0f} s of the processor"
        if how == "signal SIGPROF"
        else f"its process ended: {how}"
    )
    return f"the chat template of {name} cannot be used: {why}; take a model with another template"


@cache
def _process(owner: int) -> _TemplateProcess:
    """One for each process: the pipes of a parent are not those of its forks."""
    return _TemplateProcess()
