"""Task-generation prompts for an LLM client or the policy, and parsing of the answer into a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.filter.judges.batch_ask import unread
from strop.roles import Agent, Episode, LLMClient
from strop.stats.task_lineage import child
from strop.text.llm_prompt import question, told
from strop.types import Message, Sampling, Task

if TYPE_CHECKING:
    from strop.roles import Dialogue, Player

_FORM = " Write [task], then the new problem, then [answer], then its answer, and nothing else."
_KEPT = " Write [task], then the new problem, and nothing else; never say the answer."
REQUESTS: Mapping[str, str] = {
    "simpler": "Rewrite the problem so that it is easier to solve and has the same answer." + _KEPT,
    "reworded": "Say the same problem in another way, as hard as it is, with the same answer." + _KEPT,
    "similar": "Write another problem of the same kind, as hard as this one." + _FORM,
    "easier": "Write a problem of the same kind that needs fewer steps." + _FORM,
    "harder": "Write a problem of the same kind that needs one more step." + _FORM,
    "concepts": "Name the concepts that one needs to solve the problem, one per line and nothing else.",
    "about": "Write a problem of the same kind that needs all of these ideas." + _FORM,
    "solved": "Solve the problem. Write [answer], then the answer and nothing else.",
    "breadth": "Write a new problem from the same field that is rarer." + _FORM,
    "constraints": "Add one more condition to the problem." + _FORM,
    "deepen": "Ask about the same thing in more depth." + _FORM,
    "concretise": "Replace what is general in the problem by something concrete." + _FORM,
    "reasoning": "Rewrite the problem so that it needs several more steps." + _FORM,
    "complicate": "Give the problem data that are harder to read." + _FORM,
    "compared": "Are the two problems equivalent? Write Equal or Not Equal and nothing else.",
    "mended": "The completion is wrong. Write a new problem that trains what it got wrong." + _FORM,
}
_ADVISED = Sampling(max_tokens=512)
NO_PROMPTS: Mapping[str, str] = {}


def requests(*names: str) -> dict[str, str]:
    """The usual wording of these requests, for a field of whoever asks."""
    return {name: REQUESTS[name] for name in names}


@dataclass(frozen=True)
class _Once(Agent):
    """Single-completion agent with a replaced prompt; the environment is not used."""

    text: str

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        dialogue.restart([Message("user", self.text)])
        if not dialogue.is_cut:
            await dialogue.completion()
        return ()


async def asked(llm_client: LLMClient | None, text: str, play: Player) -> str:
    """What an LLM client says; without one, what the policy itself says, whose tokens count and are never trained
    on.
    """
    start = play.another()
    if llm_client is not None:
        return await llm_client.ask([Message("user", text)], _ADVISED, start.key)
    return final_answer((await play(start, _Once(text))).completion)


async def asked_for(
    llm_client: LLMClient | None, wanted: str, play: Player, prompts: Mapping[str, str] = NO_PROMPTS, **parts: str
) -> str:
    """The answer to one of the requests, in the wording of `prompts` where they have it."""
    return await asked(llm_client, question({**REQUESTS, **prompts}[wanted], wanted=wanted, **parts), play)


async def ask_llm(
    llm_client: LLMClient | None,
    wanted: str,
    play: Player,
    names: Sequence[str] = ("task",),
    prompts: Mapping[str, str] = NO_PROMPTS,
    **parts: str,
) -> dict[str, str]:
    """The same in parts, all of `names` among them."""
    return readable(llm_client, wanted, await asked_for(llm_client, wanted, play, prompts, **parts), names)


async def rewritten(
    llm_client: LLMClient | None,
    wanted: str,
    parent: Task,
    play: Player,
    prompts: Mapping[str, str] = NO_PROMPTS,
    **parts: str,
) -> Task:
    """The task that the answer holds, with its own answer."""
    said = await asked_for(llm_client, wanted, play, prompts, task=prompt_of(parent), answer=parent.answer, **parts)
    read = readable(llm_client, wanted, said, ("task", "answer"))
    return child(parent, read["task"], read["answer"])


def readable(llm_client: LLMClient | None, wanted: str, said: str, names: Sequence[str]) -> dict[str, str]:
    """The parts of an answer, all of which must be there."""
    read = told(said)
    if missing := " and no ".join(name for name in names if not read.get(name)):
        raise unread(llm_client, said, f"asked for {wanted}, there is no {missing} in the answer")
    return read


async def try_request(
    llm_client: LLMClient | None,
    wanted: str,
    task: Task,
    names: Sequence[str] = ("task",),
    prompts: Mapping[str, str] = NO_PROMPTS,
) -> None:
    """Put a request about a task to an LLM client before the run; the policy itself answers only within one."""
    if llm_client is not None:
        text = question({**REQUESTS, **prompts}[wanted], wanted=wanted, task=prompt_of(task), answer=task.answer)
        readable(llm_client, wanted, await llm_client.ask([Message("user", text)], _ADVISED, 0), names)
