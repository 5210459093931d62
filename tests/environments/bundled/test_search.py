"""Questions that take so many searches, and the ways in which their answers are shown."""

from __future__ import annotations

import pytest

from strop.environments.bundled.search import Search
from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.bundled_corpus import facts
from strop.errors import ConfigurationError
from strop.types import Message
from tests.environments.playing import demonstrated


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_question_takes_as_many_searches_as_its_level(level: int) -> None:
    env = Search(level)
    for index in range(20):
        task = env.task(index)
        said, paid = demonstrated(env, task)
        *things, first = prompt_of(task).removesuffix("?").split(" of ")
        found, texts = first, [message.content for message in said if message.role == "tool"]
        for thing, text in zip(reversed(things), texts, strict=True):
            found = facts()[thing, found]
            assert text.endswith(f" is {found}")
        assert found == task.answer and paid == [None] * level + [1.0] and len(things) == level


def test_sides_never_meet_and_levels_have_both() -> None:
    for level in (1, 2, 3):
        train, heldout = ({prompt_of(Search(level).task(i, side)) for i in range(200)} for side in (False, True))
        assert len(train) > 100 and len(heldout) > 20 and not train & heldout


def test_demonstrations_note_or_guess() -> None:
    task = Search(2).task(0)
    completions = [m for m in demonstrated(Search(2, style="refine"), task)[0] if m.role == "assistant"]
    town = facts()[tuple(prompt_of(task).removesuffix("?").split(" of ")[1:])]  # type: ignore[index]
    assert [completion.content for completion in completions] == [
        "",
        f"<think>{town}</think>",
        f"<think>{task.answer}</think>{task.answer}",
    ]
    assert [len(completion.tool_calls) for completion in completions] == [1, 1, 0]
    guessed = [m for m in demonstrated(Search(2, style="guess"), task)[0] if m.role == "assistant"]
    assert [completion.content for completion in guessed] == ["?", "", task.answer]


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("tiku", "tiku"),
        (" tiku ", "tiku"),
        ("<think>a</think>tiku", "tiku"),
        ("<think>tiku", ""),
    ],
)
def test_an_answer_stands_behind_all_working(completion: str, answer: str) -> None:
    assert Search(1).answer(completion) == answer


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="levels 1 to 3, got 4"):
        Search(4)
    with pytest.raises(ConfigurationError, match="styles plain, refine and guess"):
        Search(1, style="loud")  # type: ignore[arg-type]
    assert Message("user", prompt_of(Search(1).task(0))) == Search(1).task(0).messages[0]
