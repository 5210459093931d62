"""mgpo: a box in the view, the crop of the original, and pay for the answer alone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from strop.environments.bundled.crop import INVALID, Crop, box_in, cut_out, in_original, is_valid
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import CarriedOut
from strop.types import Group, Message, Outcome, Rollout, Task
from tests.building import turn
from tests.environments.playing import demonstrated, replied

VIEW = ["a.b", ".c.", "..d"]
ORIGINAL = ["1...2.", "......", "..3...", "......", "......", ".....4"]
SECRET = {"letter": "c", "digit": "3", "view": VIEW, "original": ORIGINAL}
TASK = Task((Message("user", "\n".join(["digit at c?", *VIEW])),), json.dumps(SECRET), "crop", 1)


def test_the_cards_numbers() -> None:
    """Resized 1000 x 500 of 4000 x 2000; a side of 28 is too small, one of 29 is not."""
    assert in_original((100, 50, 300, 150), (1000, 500), (4000, 2000)) == (400, 200, 1200, 600)
    assert not is_valid((0, 0, 28, 40), 1000, 500, least=28) and is_valid((0, 0, 29, 40), 1000, 500, least=28)
    # the fraction of a pixel is dropped: 1 * 5 / 3 = 1.67 and 2 * 5 / 3 = 3.33
    assert in_original((1, 0, 2, 1), (3, 3), (5, 5)) == (1, 0, 3, 1)


@pytest.mark.parametrize(
    ("box", "valid"),
    [
        ((0, 0, 3, 3), True),
        ((2, 2, 3, 3), True),
        ((1, 1, 1, 2), False),
        ((2, 0, 1, 1), False),
        ((0, 2, 1, 1), False),
        ((0, 0, 4, 1), False),
        ((0, 0, 1, 4), False),
    ],
)
def test_a_box_lies_within_the_view(box: tuple[int, int, int, int], valid: bool) -> None:
    assert is_valid(box, 3, 3) == valid


def test_a_box_is_less_than_a_hundred_times_as_long_as_wide() -> None:
    assert is_valid((0, 0, 99, 1), 200, 200) and not is_valid((0, 0, 100, 1), 200, 200)
    assert not is_valid((0, 0, 1, 100), 200, 200) and is_valid((0, 0, 2, 199), 200, 200)


def test_boxes_are_read() -> None:
    assert box_in("<think>x</think>[1,2,3,4] and [0,0,1,1]") == (1, 2, 3, 4)
    assert [box_in(text) for text in ("", "[1,2,3]", "[1,2,3,-4]", "[1,2,3,99999]", "1,2,3,4]")] == [None] * 5
    assert cut_out(["abc", "def", "ghi"], (1, 0, 3, 2)) == "bc\nef"


@pytest.mark.parametrize(
    ("completion", "seen"),
    [
        ("[1,1,2,2]", "3.\n.."),
        ("[0,0,1,1]", "1.\n.."),
        ("[1,1,3,2]", "3...\n...."),
        ("[1,1,3,3]", "c.\n.d"),  # 16 characters are more than a view has: shown as coarsely
        ("[1,1,1,2]", "\n".join([INVALID, *VIEW])),
        ("3", "\n".join([INVALID, *VIEW])),
    ],
)
def test_two_turns_whatever_the_box_was(completion: str, seen: str) -> None:
    first, second = replied(Crop(1), TASK, [completion, "3"])
    assert [message.content for message in first.messages] == [seen] and not first.done and first.reward == 0.0
    assert second.done and second.reward == 1.0, "a right answer is paid after an invalid box too"
    assert replied(Crop(1), TASK, [completion, "4"])[1].reward == 0.0


@pytest.mark.parametrize("level", [1, 2])
def test_the_envs_own_look_finds_the_digit(level: int) -> None:
    env = Crop(level)
    for index in range(40):
        task = env.task(index, heldout=index % 2 == 1)
        said, paid = demonstrated(env, task)
        assert paid == [0.0, 1.0] and said[-1].content in said[1].content and env.answer(said[-1].content)
        assert len(said[1].content.replace("\n", "")) == (level + 1) ** 2
        assert task == env.task(index, heldout=index % 2 == 1) and env.check(task, said[-1].content) == 1.0
        assert not any(letter.isdigit() for letter in task.messages[0].content), "the view names no digit"


@pytest.mark.parametrize("level", [0, 3])
def test_other_levels_are_refused(level: int) -> None:
    with pytest.raises(ConfigurationError, match="crop has levels 1 to 2"):
        Crop(level)


def test_what_an_episode_knows_is_shown_nowhere() -> None:
    """Its task holds the answer."""
    episode = Crop(1).episode()
    asyncio.run(episode.reset(TASK))
    assert repr(episode) == "CropEpisode()" and episode == Crop(1).episode()


def test_a_look_that_the_env_took_is_counted() -> None:
    looked = replace(turn(1), told=(Message("tool", "3."),))
    lost = replace(turn(1), told=(Message("tool", INVALID),))
    rollouts = [Rollout(str(i), TASK, (turn(9), each), Outcome.FINISHED) for i, each in enumerate((looked, lost))]
    assert CarriedOut(bonus=1.0, weight=0.0)(Group(0, TASK, rollouts)) == [1.0, 0.0]
