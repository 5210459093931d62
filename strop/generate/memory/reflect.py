"""Reflection prompts about rollouts for an LLM client or the policy, and the text form of a rollout in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strop.control.task_generators.support.prompts import NO_PROMPTS, asked
from strop.environments.data.heldout_split import prompt_of
from strop.errors import LLMClientError
from strop.filter.judges.batch_ask import heard, transcript
from strop.roles import LLMClient
from strop.text.llm_prompt import question
from strop.types import Message, Rollout, Sampling, Task

if TYPE_CHECKING:
    from strop.roles import Player

_SILENT = " Never say an answer."
REFLECTIONS: Mapping[str, str] = {
    "insight": "The completion to the task failed; the other one was right, there or at a similar task. Say in one "
    "short "
    "sentence what to do differently at tasks like these." + _SILENT,
    "experience": "The completions are tries at the task; the ideas are what is known, each with its name. Say "
    "what is "
    "to be learned from them, in at most two lines: `add: ` and a short experience, or `modify NAME: ` and what shall "
    "stand in its place." + _SILENT,
    "merged": "Say the idea and the other one as one, in one short sentence.",
    "subtasks": "Name the parts of the task, one per line and nothing else.",
    "adapted": "Say the ideas as they are to be followed at this task, one per line." + _SILENT,
    "skill": "Say in a few sentences how tasks like this one are done, as the completions show it." + _SILENT,
    "skills": "The ideas are a document of skills. Write it anew with the other ones in it, and nothing twice.",
    "shortened": "Write the ideas in half as many words.",
    "memory": "The completions are tries that went badly, the other ones went well. Write the ideas anew: "
    "strategies "
    "that work, pitfalls, guidelines." + _SILENT,
    "summary": "Say in one sentence what the completion is: what it kept of the other one, where there is one, and "
    "what it "
    "changed.",
    "direction": "The ideas are candidates with their scores, the oldest first. Say in one sentence what to try next.",
    "note": "Condense the completion to a short note: what was done, in which order, and what came of it.",
    "vote": "Which is more likely right, the ideas (1) or the other (2)? Write 1 or 2 and nothing else.",
    "plan": "Say a short plan for the task from what the completion shows: steps, what depends on what, what to mind; "
    "one "
    "per line." + _SILENT,
}


def reflections(*names: str) -> dict[str, str]:
    """The usual wording of these requests, for a field of whoever asks."""
    return {name: REFLECTIONS[name] for name in names}


async def reflected(
    llm_client: LLMClient | None, wanted: str, play: Player, prompts: Mapping[str, str] = NO_PROMPTS, **parts: str
) -> str:
    """What was said; nothing where whoever was asked did not answer: a lesson is lost, and no rollout."""
    try:
        return await asked(llm_client, question({**REFLECTIONS, **prompts}[wanted], wanted=wanted, **parts), play)
    except LLMClientError:
        return ""


async def try_reflection(
    llm_client: LLMClient | None, wanted: str, task: Task, prompts: Mapping[str, str] = NO_PROMPTS
) -> None:
    """Put a request about a task to an LLM client before the run; the policy itself answers only within one."""
    if llm_client is not None:
        shown = {"task": prompt_of(task), "completion": _LOST, "other": _LOST, "ideas": _LOST}
        asked = question({**REFLECTIONS, **prompts}[wanted], wanted=wanted, **shown)
        heard(llm_client, await llm_client.ask([Message("user", asked)], Sampling(max_tokens=512), 0))


_LOST = "I looked at the question for a while. My answer is 1."


def trace(rollout: Rollout, longest: int = 0) -> str:
    """A rollout as text, in its layout; of at most `longest` characters, its end."""
    return transcript(rollout)[-longest:]
