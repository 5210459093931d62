"""Child process that renders untrusted chat templates and is killed if they exceed time or memory.

A template is a program. The kernel limits it: processor time by a timer whose signal ends this process, memory by a
limit on its data segment. The text comes back as one message of limited size.
"""

from __future__ import annotations

import json
import resource
import signal
from typing import Any

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

from strop.workers.frames import Frames

MEMORY, LONGEST = 1 << 30, 15 << 20  # bytes: of data, and of a text as JSON


def serve(frames: Frames) -> None:
    """Render one conversation after the other."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    while True:
        question = frames.take()
        signal.setitimer(signal.ITIMER_PROF, question.head["seconds"])
        said = _rendered(question.head)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        frames.send(said)
        frames.flush()


def _rendered(asked: dict[str, Any]) -> dict[str, str]:
    try:
        (text,), _ = render_jinja_template(
            conversations=[asked["messages"]],
            tools=asked["tools"],
            chat_template=asked["template"],
            add_generation_prompt=asked["cue"],
            **asked["special"],
        )
        size = len(json.dumps(text))
    except jinja2.TemplateError as error:
        return {"refused": str(error)[:1000]}
    except Exception as error:  # a template may raise whatever its expressions do
        return {"failed": f"{type(error).__name__}: {error}"[:1000]}
    return {"text": text} if size <= LONGEST else {"failed": f"it wrote {len(text)} characters"}
