"""Conversion of a table row to a task: prompt column, answer column, chat messages; other columns go to rewards."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from strop.environments.format.demonstrations import demonstration
from strop.errors import nearest
from strop.models.tokens.picture_words import MARKER
from strop.storage.picture_store import picture_of
from strop.types import Message, Picture, Task, Tool, ToolCall

PROMPTS = ("prompt", "messages", "question", "problem", "question_content")
ANSWERS = ("answer", "solution", "ground_truth", "reward_model")  # the last holds `ground_truth` within
COMPLETION, CHOSEN, REJECTED = "completion", "chosen", "rejected"  # completions that a table brings
SOLUTION, HINT, PLAN = "solution", "hint", "plan"
TOOLS, IMAGES = "tools", "images"
RANKING = "ranking"  # completions, the best first
_ROLES = ("system", "user", "assistant", "tool")
_LONGEST = 200  # letters of a row in an error


def task_of(
    row: Any,
    source: str,
    prompt: str = "",
    answer: str = "",
    answers: Sequence[str] = ANSWERS,
    folder: Path | None = None,
) -> Task:
    """ValueError says what is wrong with the row; `prompt` and `answer` name columns, empty: the usual ones.

    Pictures of the column `images` are read beside the table, in `folder`.

    A row without an answer is answered by the completion that it brings, and else by nothing: then `answer` is empty.
    """
    if not isinstance(row, Mapping):
        raise ValueError(f'need an object like {{"prompt": "2+2=?", "answer": "4"}}, got {type(row).__name__}')
    if not prompt and "prompt" in row and "messages" in row:
        raise ValueError("need either `prompt` or `messages`, not both")
    row = _parted(row)
    asked, answered = _column(row, prompt, PROMPTS), _answer_column(row, answer, answers)
    row, pictures = _pictures_of(row, folder)
    messages, given = _messages(row[asked] if pictures else _without_pictures(row[asked], asked), asked)
    messages = _seeing(messages, pictures)
    completions: dict[str, Any] = given | {
        name: _completion(row[name], name) for name in (COMPLETION, CHOSEN, REJECTED) if name in row
    }
    if RANKING in row:
        completions[RANKING] = _ranking(row[RANKING])
    says = _answer(row[answered], answered) if answered else _said(completions)
    level = row.get("level", 0)
    is_level = isinstance(level, int) and not isinstance(level, bool)  # else a column of somebody's own
    others = {name: value for name, value in row.items() if name != asked} | completions
    # one message of a user looks like plain text: rewards are told which it was
    is_chat = len(messages) == 1 and not isinstance(row[asked], str)
    columns = _columns(others | ({"prompt": row[asked]} if is_chat else {}))
    return Task(messages, says, source, level if is_level else 0, tools=tools_of(row.get(TOOLS)), columns=columns)


def _pictures_of(row: Mapping[str, Any], folder: Path | None) -> tuple[Mapping[str, Any], list[Picture]]:
    """A row without its pictures, and these: of `images`, or of `image` where that is no column of somebody's own."""
    found = row.get(IMAGES)
    if found is None and isinstance(row.get("image"), bytes | Mapping):
        found = [row["image"]]
    listed = found if isinstance(found, list | tuple) else [] if found is None else [found]
    names = [name for name in (IMAGES, "image") if listed and name in row]
    return {name: value for name, value in row.items() if name not in names}, [picture_of(x, folder) for x in listed]


def _seeing(messages: tuple[Message, ...], pictures: Sequence[Picture]) -> tuple[Message, ...]:
    """Messages with their pictures: in the places of markers, or before what the user says first."""
    if not pictures:
        return messages
    counts = [each.content.count(MARKER) if each.role != "assistant" else 0 for each in messages]
    if not sum(counts) and any(each.role == "user" for each in messages):
        counts[next(place for place, each in enumerate(messages) if each.role == "user")] = len(pictures)
    if sum(counts) != len(pictures):
        raise ValueError(
            f"`{IMAGES}` holds {len(pictures)} pictures, and the messages have {sum(counts)} places {MARKER}"
        )
    ends = [0, *itertools.accumulate(counts)]
    return tuple(
        replace(each, images=tuple(pictures[low:high]))
        for each, (low, high) in zip(messages, itertools.pairwise(ends), strict=True)
    )


def _said(completions: Mapping[str, Any]) -> str:
    """The completion that stands for an answer."""
    ranked = completions.get(RANKING) or [""]
    return str(completions.get(COMPLETION, completions.get(CHOSEN, ranked[0])))


def missing_answer(row: Mapping[str, Any], answer: str) -> str:
    """What is said of a row that has no answer; empty where it has one, or brings a completion that stands for it."""
    asked = row.get("messages", row.get("prompt"))
    is_said = isinstance(asked, list | tuple) and asked and message_of(asked[-1]).role == "assistant"
    if is_said or answer or any(name in row for name in (*ANSWERS, COMPLETION, CHOSEN, RANKING)):
        return ""
    return f"`answer` is missing ({also(ANSWERS)} will do); there is {', '.join(map(repr, row))}: columns=PROMPT,ANSWER"


def columns_of(task: Task) -> dict[str, Any]:
    """What else the row of a task holds."""
    found: dict[str, Any] = json.loads(task.columns) if task.columns else {}
    return found


def worked_text(task: Task) -> str:
    """What a row shows of the way to its answer: a completion, or a solution; a bare answer is none."""
    columns = columns_of(task)
    if ranked := ranked_by(task):
        return ranked[0]
    for name in (COMPLETION, CHOSEN):
        if isinstance(text := columns.get(name), str) and not _is_copy(text, task.answer, columns):
            return text
    texts = (text for text in (columns.get(SOLUTION), task.answer) if isinstance(text, str))
    return next(
        (text for text in texts if demonstration(text, task.answer if text != task.answer else "").is_worked), ""
    )


def ranked_by(task: Task) -> list[str]:
    """The completions that a row compares, the best first: its ranking, or chosen and rejected; else none."""
    columns = columns_of(task)
    given = columns.get(RANKING, [columns.get(CHOSEN), columns.get(REJECTED)])
    is_ranked = isinstance(given, list) and len(given) > 1 and all(isinstance(each, str) for each in given)
    return list(given) if is_ranked else []


def _is_copy(text: str, answer: str, columns: Mapping[str, Any]) -> bool:
    """Whether a completion repeats the bare answer that stands in another column."""
    return (
        text.strip() == answer.strip()
        and any(name in columns for name in ANSWERS)
        and not demonstration(text).is_worked
    )


def text_in(task: Task, name: str) -> str:
    """A column as text; of a list, its entries as lines."""
    found = columns_of(task).get(name)
    if isinstance(found, list):
        return "\n".join(entry for entry in found if isinstance(entry, str))
    return found if isinstance(found, str) else ""


def _parted(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A preference whose completions are whole chats: what they have in common was asked."""
    pair = [row.get(CHOSEN), row.get(REJECTED)]
    if not all(isinstance(each, list | tuple) and len(each) > 1 for each in pair):
        return row
    if pair[0][:-1] != pair[1][:-1]:  # type: ignore[index]
        raise ValueError("`chosen` and `rejected` must differ in their last message alone")
    apart = {CHOSEN: pair[0][-1:], REJECTED: pair[1][-1:]}  # type: ignore[index]
    return {**{name: value for name, value in row.items() if name not in PROMPTS}, "prompt": pair[0][:-1], **apart}  # type: ignore[index]


def _columns(row: Mapping[str, Any]) -> str:
    """As JSON; empty where the answer is all there is. What JSON cannot hold, such as images, is left out."""
    kept = {name: value for name, value in row.items() if _is_plain(value)}
    is_bare = not kept or (set(kept) == {"answer"} and isinstance(kept["answer"], str))
    return "" if is_bare else json.dumps(kept, sort_keys=True)


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _answer_column(row: Mapping[str, Any], named: str, usual: Sequence[str]) -> str:
    return _column(row, named, ANSWERS) if named else next((name for name in usual if name in row), "")


def _column(row: Mapping[str, Any], named: str, usual: tuple[str, ...]) -> str:
    if named:
        if named not in row:
            raise ValueError(f"there is no column {named!r}; {nearest(named, list(row))}")
        return named
    found = [name for name in usual if name in row]
    if not found:
        there, names = ", ".join(map(repr, row)), ",".join(row) if len(row) == 2 else "PROMPT,ANSWER"
        raise ValueError(f"`{usual[0]}` is missing ({also(usual)} will do); there is {there}: set columns={names}")
    return found[0]


def also(usual: tuple[str, ...]) -> str:
    """Every name but the first, in words."""
    return ", ".join(usual[1:-1]) + f" or {usual[-1]}"


def _messages(asked: Any, column: str) -> tuple[tuple[Message, ...], dict[str, str]]:
    """A text is what the user says; a list is a chat, as TRL and verl keep it. Where the assistant has the last word
    it is the completion.
    """
    if isinstance(asked, str):
        return (Message("user", asked),), {}
    if not isinstance(asked, list | tuple):
        raise ValueError(f"`{column}` must be text or a list of messages, got {asked!r}"[:_LONGEST])
    if not asked:
        raise ValueError(f'`{column}` must be a list of {{"role": ..., "content": ...}} with at least one entry')
    messages = tuple(message_of(entry) for entry in asked)
    if messages[-1].role != "assistant":
        return messages, {}
    if len(messages) == 1:
        raise ValueError(f"`{column}` holds what the assistant said and nothing that it was asked")
    if messages[-1].tool_calls:
        raise ValueError(f"the last message of `{column}` calls a tool: end with its result, or with an answer")
    return messages[:-1], {COMPLETION: messages[-1].content}


def message_of(entry: Any) -> Message:
    """A message of a chat as chat templates and OpenAI's interface spell it."""
    if not isinstance(entry, Mapping) or entry.get("role") not in _ROLES:
        raise ValueError(f"a message needs a `role` of {', '.join(_ROLES)} and a `content`, got {entry!r}"[:_LONGEST])
    calls = tuple(map(_call, entry.get("tool_calls") or ()))
    content = "" if calls and entry.get("content") is None else _text_of(entry.get("content"))
    if not isinstance(content, str):
        raise ValueError(f"the `content` of a message must be text, got {content!r}"[:_LONGEST])
    return Message(entry["role"], content, calls, is_completion=entry["role"] == "assistant")


def _text_of(content: Any) -> Any:
    """Content of parts as one text, with a marker for each picture of the column `images`."""
    if not isinstance(content, list | tuple) or not all(isinstance(part, Mapping) for part in content):
        return content
    if any(value for part in content for name, value in part.items() if name not in ("type", "text")):
        return content  # with pictures of its own
    return "".join(MARKER if part.get("type") == "image" else str(part.get("text", "")) for part in content)


def _without_pictures(asked: Any, column: str) -> Any:
    """A prompt, refused where its parts show pictures that the row does not bring."""
    entries = asked if isinstance(asked, list | tuple) else ()
    contents = [each.get("content") for each in entries if isinstance(each, Mapping)]
    parts = [part for content in contents if isinstance(content, list | tuple) for part in content]
    if any(isinstance(part, Mapping) and part.get("type") == "image" for part in parts):
        raise ValueError(f"`{column}` must be text where the row has no `{IMAGES}`, got {asked!r}"[:_LONGEST])
    return asked


def _call(entry: Any) -> ToolCall:
    """A tool call as chat templates and OpenAI's interface spell it."""
    called = entry.get("function", entry) if isinstance(entry, Mapping) else {}
    if not isinstance(called, Mapping) or not isinstance(called.get("name"), str):
        raise ValueError(f"a tool call needs a `name` and `arguments`, got {entry!r}"[:_LONGEST])
    given = called.get("arguments", {})
    return ToolCall(called["name"], given if isinstance(given, str) else json.dumps(given))


def tools_of(offered: Any) -> tuple[Tool, ...]:
    """The column `tools`: a list of schemas, perhaps as JSON text; any other text is a column of somebody's own."""
    is_text = isinstance(offered, str)
    listed = (json.loads(offered) if offered.lstrip().startswith("[") else []) if is_text else offered or []
    entries = [entry.get("function", entry) if isinstance(entry, Mapping) else entry for entry in listed]
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise ValueError(
                f"`tools` must be a list of objects with a `name` and `parameters`, got {entry!r}"[:_LONGEST]
            )
    return tuple(
        Tool(entry["name"], str(entry.get("description", "")), json.dumps(entry.get("parameters", {})))
        for entry in entries
    )


def _completion(said: Any, column: str) -> str:
    """A completion as text, or as a chat of one message of the assistant."""
    if isinstance(said, str):
        return said
    messages = [message_of(entry) for entry in said] if isinstance(said, list | tuple) else []
    if len(messages) != 1 or messages[0].role != "assistant":
        raise ValueError(f"`{column}` must be text or one message of the assistant, got {said!r}"[:_LONGEST])
    return messages[0].content


def _ranking(given: Any) -> list[str]:
    if not isinstance(given, list) or len(given) < 2:
        raise ValueError(
            f"`{RANKING}` must be a list of at least 2 completions, the best first, got {given!r}"[:_LONGEST]
        )
    return [_completion(each, RANKING) for each in given]


def _answer(answer: Any, column: str) -> str:
    if column == "reward_model" and isinstance(answer, Mapping):  # verl's
        answer, column = answer.get("ground_truth"), "reward_model.ground_truth"
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise ValueError(f"`{column}` must be text or a number, got {answer!r}"[:_LONGEST])
    return str(answer)
