from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from strop.environments.bundled.countdown import Countdown
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.recipes.select.serl import SelfInstruct
from strop.run_state import Flow
from strop.text.overlap import rouge_l
from strop.types import Message, Task
from tests.control.asking import Told, a_flow, group_of, written

SEED = Task((Message("user", "make 23 from 2 3 7"),), "3*7+2", "countdown", 3)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with a_flow(tmp_path_factory.mktemp("flow"), envs=(Countdown(3),)) as flow:
        yield flow


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("make 23 from 2 3 7", "make 24 from 2 3 8", 8 / 12),  # make from 2 3
        ("make 23 from 2 3 7", "make 23 from 2 3 7", 1.0),
        ("a b c d", "d c b a", 2 / 8),
        ("a b c", "a x b y c z", 6 / 9),
        ("A, b!", "a b", 1.0),
        ("", "a", 0.0),
        ("?", "?", 0.0),
    ],
)
def test_rouge_l_by_hand(one: str, other: str, expected: float) -> None:
    assert rouge_l(one, other) == pytest.approx(expected) == rouge_l(other, one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("make 23 from 2 3 7", True),
        ("47+12=?", False),
        ("one two three", False),
        ("one two three four", True),
        ("1 two three four", False),
        ("draw a small graph now", False),
        ("explain graphs, in four words", False),
        ("a paragraph of four words", True),
        ("w " * 150, True),
        ("w " * 151, False),
    ],
)
def test_the_filters_of_a_task(text: str, expected: bool) -> None:
    assert SelfInstruct().is_fit(text.strip()) == expected


def test_near_copies_of_a_known_task_are_refused(flow: Flow) -> None:
    texts = ["make 24 from 2 3 7", "make 24 from 2 3 8", "make 24 from 2 3 8", "make 99 from 9 11 10"]
    llm_client = Told({"similar": [f"[task]\n{text}\n[answer]\nwrong" for text in texts]})
    task_generator = SelfInstruct(llm_client)
    made = [written(flow, task_generator, group_of(SEED, [0.0], number)) for number in range(4)]
    assert [[prompt_of(task) for task in tasks] for tasks in made] == [[], [texts[1]], [], [texts[3]]], "10/12, 8/12, 1"
    assert [task.answer for tasks in made for task in tasks] == ["", ""], "no answer is known"
    assert task_generator.learn([]) == {"alike_share": 0.5}


def test_others_are_shown_and_their_number_is_bounded(flow: Flow) -> None:
    llm_client = Told({"similar": ["[task]\nno"]})
    task_generator = SelfInstruct(llm_client)
    for index in range(600):
        task_generator.observe(group_of(Task((Message("user", f"task {index}"),), "", "countdown", 3), [0.0]))
    written(flow, task_generator, group_of(SEED, [0.0]))
    shown = llm_client.asked[0]["other"].split("\n")
    assert llm_client.asked[0]["task"] == prompt_of(SEED) and len(set(shown)) == 3
    assert all(int(text.split()[1]) >= 88 for text in shown) and len(task_generator.state()["texts"]) == 512


def test_restored_it_shows_and_refuses_the_same(flow: Flow) -> None:
    answers = [f"[task]\nmake {n} from 1 {n} {n + 1} {n * 7}" for n in range(20)]
    task_generator, other = (SelfInstruct(Told({"similar": list(answers)})) for _ in range(2))
    for number in range(5):
        written(flow, task_generator, group_of(SEED, [0.0], number))
    other.restore(json.loads(json.dumps(task_generator.state())))
    other.llm_client.answers["similar"] = answers[5:]  # type: ignore[union-attr]
    for number in range(5, 12):
        group = group_of(SEED, [0.0], number)
        assert written(flow, task_generator, group) == written(flow, other, group)
    assert task_generator.state() == other.state()
    assert task_generator.llm_client.asked[5:] == other.llm_client.asked  # type: ignore[union-attr]


def test_bounds_are_checked() -> None:
    for fields in ({"fewest": 0}, {"fewest": 151}, {"overlap": 1.5}):
        with pytest.raises(ConfigurationError, match="SelfInstruct needs 0 < fewest <= 150 and 0 <= overlap <= 1"):
            SelfInstruct(**fields)  # type: ignore[arg-type]
