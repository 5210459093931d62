"""Tasks from a file: endless, split by content, and every malformed line named."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import Demonstrates
from strop.environments.data.hf_dataset import dataset_rows
from strop.environments.data.lookup import env_of
from strop.environments.data.rows import columns_of
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, DataError
from strop.recipes import build, recipe_named
from strop.recipes.environments import parse_envs
from strop.types import Message, Task, Tool, ToolCall
from tests.environments.playing import demonstrated, replied


def saved(folder: Path, *lines: Any, name: str = "tasks.jsonl") -> str:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def rows(count: int) -> list[dict[str, str]]:
    return [{"prompt": f"{n}+1=?", "answer": str(n + 1)} for n in range(count)]


def test_every_task_comes_once_per_epoch_in_a_new_order(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *rows(50)), heldout_share=0.2)
    sizes = {}
    for heldout in (False, True):
        tasks = [env.task(index, heldout) for index in range(50)]
        size = sizes[heldout] = len(set(tasks))
        epochs = [[env.task(index, heldout) for index in range(k * size, (k + 1) * size)] for k in (0, 1)]
        assert set(epochs[0]) == set(epochs[1]) and (heldout or epochs[0] != epochs[1])
    assert sizes[False] + sizes[True] == 50 and 3 <= sizes[True] <= 20


def test_duplicates_never_straddle_the_split(tmp_path: Path) -> None:
    doubled = [row for row in rows(40) for _ in range(3)]
    doubled += [{"prompt": f" {row['prompt']} ", "answer": "other"} for row in rows(40)]
    env = Table(saved(tmp_path, *doubled), heldout_share=0.3)
    sides = [{env.task(i, side).messages[0].content.strip() for i in range(200)} for side in (False, True)]
    assert len(sides[0]) + len(sides[1]) == 40 and not sides[0] & sides[1]


def test_a_new_line_moves_no_old_task_to_the_other_side(tmp_path: Path) -> None:
    few, many = (Table(saved(tmp_path, *rows(n), name=f"{n}.jsonl"), heldout_share=0.3) for n in (40, 80))
    before, after = ({w.task(i, True).messages for i in range(80)} for w in (few, many))
    assert before < after


def test_two_tasks_are_enough_for_both_sides(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *rows(2)), heldout_share=0.0001)
    assert env.task(0) != env.task(0, heldout=True)


def test_messages_level_and_unicode(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "kurz"}, {"role": "user", "content": "größer?\u2028ja"}]
    line = json.dumps({"messages": messages, "answer": "ja", "level": 3}, ensure_ascii=False)
    task = Table(saved(tmp_path, line, "", name="größe.jsonl"), heldout_share=0.0).task(0)
    assert task.messages == (Message("system", "kurz"), Message("user", "größer?\u2028ja"))
    assert (task.level, task.source, task.answer) == (3, "größe", "ja")


def test_the_final_answer_is_compared_and_demonstrates_nothing(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *rows(2)), heldout_share=0.0)
    task = env.task(0)
    assert [replied(env, task, [r])[0].reward for r in (task.answer, f"<think>hm</think> {task.answer}", "7")] == [
        1,
        1,
        0,
    ]
    assert env.check(task, env.solution(task)) == 1.0
    assert not isinstance(env.episode(), Demonstrates)  # a bare answer shows nothing


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "x", "answer": "y"', "Expecting"),
        ('["x"]', "need an object like .* got list"),
        (
            '{"answer": "y"}',
            "`prompt` is missing .messages, question, problem or question_content will do.; there is 'an",
        ),
        ('{"prompt": "x", "messages": [], "answer": "y"}', "not both"),
        ('{"prompt": "x"}', "`answer` is missing"),
        ('{"prompt": "x", "answer": true}', "`answer` must be text or a number, got True"),
        ('{"prompt": "x", "answer": ["4"]}', "`answer` must be text or a number, got "),
        ('{"prompt": null, "answer": "4"}', "`prompt` must be text or a list of messages, got None"),
        ('{"promt": "x", "answer": "4"}', "`prompt` is missing .* there is 'promt', 'answer'"),
        ('{"messages": [], "answer": "y"}', "at least one"),
        ('{"prompt": [{"role": "robot", "content": "x"}], "answer": "y"}', "`role` of system, user.*robot"),
        ('{"prompt": [{"role": "user", "content": [{"type": "image"}]}], "answer": "y"}', "must be text where .*image"),
        ('{"messages": [{"role": "assistant", "content": "x"}], "answer": "y"}', "nothing that it was asked"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = saved(tmp_path, *rows(2), line, *rows(1))
    with pytest.raises(DataError, match=rf"tasks\.jsonl:3: .*{said}"):
        Table(path).task(0)


def only(folder: Path, row: Any, **fields: Any) -> Task:
    return Table(saved(folder, row), heldout_share=0.0, **fields).task(0)


def test_a_chat_in_the_prompt_is_read_as_a_chat(tmp_path: Path) -> None:
    """As TRL and verl keep it; the text of a Python list would be trained otherwise."""
    chat = [{"role": "system", "content": "short"}, {"role": "user", "content": "10+88=?"}]
    expected = (Message("system", "short"), Message("user", "10+88=?"))
    verl = {"prompt": chat, "data_source": "x", "reward_model": {"style": "rule", "ground_truth": 98}, "extra_info": {}}
    for row in ({"prompt": chat, "answer": "98"}, {"question": chat, "solution": "98"}, verl):
        task = only(tmp_path, row)
        assert (task.messages, task.answer) == (expected, "98")


def test_columns_of_somebodys_own_are_for_rewards_and_change_nothing_else(tmp_path: Path) -> None:
    plain = only(tmp_path, {"prompt": "2+2=?", "answer": "4"})
    row = {"id": 17, "source": "web", "level": "Level 5", "prompt": "2+2=?", "answer": 4, "tags": ["a"]}
    task = only(tmp_path, row)
    assert (task.messages, task.answer, task.level) == (plain.messages, plain.answer, plain.level)
    assert columns_of(plain) == {} and columns_of(task) == {k: v for k, v in row.items() if k != "prompt"}
    assert task.id != plain.id, "other columns may earn another reward"
    named = only(tmp_path, {"ask": "2+2=?", "say": 4}, prompt_column="ask", answer_column="say")
    assert (named.messages, named.answer) == (plain.messages, plain.answer)
    with pytest.raises(DataError, match="no column 'aks'; did you mean ask"):
        only(tmp_path, {"ask": "2+2=?", "say": 4}, prompt_column="aks", answer_column="say")


def test_a_completion_that_a_row_brings_is_shown_and_stands_for_an_answer(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "2+2=?"}, {"role": "assistant", "content": "2+2 is 4"}]
    rows_ = (
        {"prompt": "2+2=?", "completion": "2+2 is 4"},
        {"prompt": chat[:1], "completion": chat[1:]},
        {"messages": chat},
        {"prompt": "2+2=?", "completion": "2+2 is 4", "answer": "4"},
    )
    for row, answer in zip(rows_, ("2+2 is 4",) * 3 + ("4",), strict=True):
        env = Table(saved(tmp_path, row), heldout_share=0.0)
        task = env.task(0)
        assert task.messages == (Message("user", "2+2=?"),) and task.answer == answer
        assert demonstrated(env, task)[0][0].content == "2+2 is 4"


def test_pairs_are_read_in_all_three_forms(tmp_path: Path) -> None:
    asked = [{"role": "system", "content": "short"}, {"role": "user", "content": "2+2=?"}]
    good, bad = ({"role": "assistant", "content": text} for text in ("4", "5"))
    texts = {"prompt": asked, "chosen": "4", "rejected": "5"}
    messages = {"prompt": asked, "chosen": [good], "rejected": [bad]}
    whole = {"chosen": [*asked, good], "rejected": [*asked, bad], "prompt": "2+2=?"}
    for row in (texts, messages, whole):
        task = only(tmp_path, row)
        assert [message.content for message in task.messages] == ["short", "2+2=?"] and task.answer == "4"
        assert columns_of(task) == {"chosen": "4", "rejected": "5"}
    with pytest.raises(DataError, match="must differ in their last message alone"):
        only(tmp_path, {"chosen": [asked[1], good], "rejected": [*asked, bad]})
    with pytest.raises(DataError, match="`chosen` must be text or one message of the assistant, got 7"):
        only(tmp_path, {"prompt": "x", "chosen": 7, "rejected": "y"})


def test_tasks_without_answers_are_for_rewards_of_ones_own(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *({"prompt": f"{n}?", "hint": n} for n in range(9))))
    assert not env.is_answered and env.chosen[1].endswith(
        "tasks.jsonl:1: `answer` is missing (solution, ground_truth or reward_model will do); there is 'prompt', "
        "'hint': columns=PROMPT,ANSWER"
    )
    assert Table(env.path, "none").task(0) == env.task(0)
    with pytest.raises(DataError, match=r"has nothing to check completions by: .* `answer` is missing"):
        env.check(env.task(0), "")
    numbers = Table(env.path, "number")  # to compare completions with each other
    assert not numbers.is_answered and not numbers.pays and numbers.answer("so 7") == "7"


def test_a_mark_before_the_text_and_arrays_are_read(tmp_path: Path) -> None:
    (tmp_path / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(rows(1)[0]).encode())
    (tmp_path / "array.json").write_text(json.dumps(rows(30), indent=1))
    (tmp_path / "lines.json").write_text("\n".join(map(json.dumps, rows(30))))
    assert Table(str(tmp_path / "marked.jsonl"), heldout_share=0.0).task(0).answer == "1"
    sizes = [Table(str(tmp_path / name)).num_tasks() for name in ("array.json", "lines.json")]
    assert sizes[0] == sizes[1] > 20
    (tmp_path / "array.json").write_text(json.dumps([*rows(2), {"prompt": "x"}]))
    with pytest.raises(DataError, match=r"array\.json, row 2: `answer` is missing"):
        Table(str(tmp_path / "array.json")).task(0)


def test_gsm8k_as_it_is_can_be_solved(tmp_path: Path) -> None:
    golds = [f"He has {n} + 1 = <<{n}+1={n + 1}>>{n + 1} apples.\n#### {1000 + n:,}" for n in range(20)]
    env = Table(saved(tmp_path, *({"question": f"{n}?", "answer": gold} for n, gold in enumerate(golds))))
    assert env.chosen == ("number", "all 20 answers end in #### and a number")
    task = env.task(0)
    number = task.answer.rpartition(" ")[2]
    completions = [
        f"The answer is {number}.",
        f"**{number.replace(',', '')}**",
        f"\\boxed{{{number}}}",
        task.answer,
        "7",
    ]
    assert [replied(env, task, [completion])[0].reward for completion in completions] == [1, 1, 1, 1, 0]


def test_mathematics_is_judged_in_a_process_of_its_own(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *({"problem": f"{n}?", "answer": f"\\frac{{{n}}}{{7}}"} for n in range(1, 9))))
    assert env.chosen[0] == "math" and not env.pays
    task = env.task(0)
    assert replied(env, task, ["whatever"])[0].reward is None  # the reward `Checked` asks where it can be killed
    assert [env.check(task, completion) for completion in (f"so $${task.answer}$$", "\\boxed{5}")] == [1.0, 0.0]
    assert env.solution(task) == task.answer and env.demonstration(task) is None


def test_math_as_it_is_can_be_solved(tmp_path: Path) -> None:
    """Its columns, its worked solutions with a box at the end, its levels that are no numbers."""
    solutions = [f"We see that $x = {n}$, so the answer is $\\boxed{{\\frac{{{n}}}{{7}}}}$." for n in range(1, 9)]
    rows_ = [
        {"problem": f"{n}?", "solution": text, "level": "Level 5", "type": "Algebra"}
        for n, text in enumerate(solutions)
    ]
    env = Table(saved(tmp_path, *rows_))
    assert env.chosen[0] == "math"
    task = env.task(0)
    number = task.answer.partition("frac{")[2].partition("}")[0]
    completions = [f"It is $\\frac{{{number}}}{{7}}$.", f"\\boxed{{{number}/7}}", task.answer, "\\boxed{5}"]
    assert [env.check(task, completion) for completion in completions] == [1.0, 1.0, 1.0, 0.0]


def test_a_rule_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no rule 'nmber' .* did you mean number"):
        Table(saved(tmp_path, *rows(2)), "nmber")


def test_files_that_cannot_serve_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        Table(str(tmp_path / "none.jsonl")).task(0)
    with pytest.raises(DataError, match=r"tasks\.jsonl holds no tasks"):
        Table(saved(tmp_path, "", "  ")).task(0)
    with pytest.raises(DataError, match="leaves no held-out tasks out of 2"):
        Table(saved(tmp_path, *rows(2)), heldout_share=0.0).task(0, heldout=True)
    with pytest.raises(ConfigurationError, match=r"heldout_share must be .* got 1.5"):
        Table(saved(tmp_path, *rows(2)), heldout_share=1.5).task(0)
    (tmp_path / "latin.jsonl").write_bytes('{"prompt": "gr\xf6ße"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.jsonl:1: .*utf-8"):
        Table(str(tmp_path / "latin.jsonl")).task(0)


def test_it_is_picklable_after_use_and_its_text_makes_it_again(tmp_path: Path) -> None:
    env = Table(saved(tmp_path, *rows(2000)))
    env.task(0)
    assert len(pickle.dumps(env)) < 500 and pickle.loads(pickle.dumps(env)) == env == eval(repr(env))


def test_two_files_of_one_name_are_two_environments(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        saved(tmp_path / folder, *rows(30), name="train.jsonl")
    first, second = parse_envs(f"{tmp_path}/a/train.jsonl+{tmp_path}/b/train.jsonl")
    assert (first.name, second.name) == ("a-train", "b-train")
    task = second.task(0)
    assert task.source == "b-train" and env_of((first, second), task) is second
    assert parse_envs(f"{tmp_path}/a/train.jsonl")[0].name == "train"


def test_categories_of_a_table_are_environments_of_their_own(tmp_path: Path) -> None:
    """Arms of a bandit: each serves its own rows and has a name of its own; the split stays."""
    kinds = ("algebra", "word problem")
    rows_ = [{"prompt": f"{n}+1", "answer": n + 1, "category": kinds[n % 2]} for n in range(200)]
    path = saved(tmp_path, *rows_, name="mixed.jsonl")
    run = build(recipe_named("sec"), {"env": path})
    assert [env.name for env in run.envs] == ["mixed-algebra", "mixed-word_problem"]
    whole, (first, second) = Table(path), run.envs
    assert (first.num_tasks() or 0) + (second.num_tasks() or 0) == whole.num_tasks()
    assert {columns_of(second.task(n))["category"] for n in range(20)} == {"word problem"}
    assert [env_of(run.envs, env.task(3)) for env in run.envs] == [first, second]
    bare = saved(tmp_path, *rows(20), name="bare.jsonl")
    for recipe in ("sec", "dump", "staged", "modomodo", "mixture"):
        with pytest.raises(ConfigurationError, match=f"{recipe} chooses among .* bare is one: add a column `category`"):
            build(recipe_named(recipe), {"env": bare})


def test_chats_with_tools_are_read_with_their_calls_and_schemas(tmp_path: Path) -> None:
    schema = {"name": "weather", "description": "of a town", "parameters": {"type": "object"}}
    call = {"type": "function", "function": {"name": "weather", "arguments": {"town": "Bern"}}}
    chat = [
        {"role": "user", "content": "Is it wet in Bern?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "rain"},
        {"role": "assistant", "content": "Yes."},
    ]
    task = only(tmp_path, {"messages": chat, "tools": [{"type": "function", "function": schema}]})
    assert task.tools == (Tool("weather", "of a town", '{"type": "object"}'),)
    assert task.messages[1].tool_calls == (ToolCall("weather", '{"town": "Bern"}'),) and task.answer == "Yes."
    assert only(tmp_path, {"messages": chat, "tools": json.dumps([schema])}).tools == task.tools
    with pytest.raises(DataError, match="calls a tool: end with its result"):
        only(tmp_path, {"messages": chat[:2], "tools": [schema]})
    with pytest.raises(DataError, match="`tools` must be a list of objects with a `name`"):
        only(tmp_path, {"messages": chat, "tools": [{"kind": "x"}]})


def test_csv_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    file = tmp_path / "t.csv"
    file.write_text('question,answer,weight,unit\n"Tom, 2?",12,0.5,\n"line\nbreak",7,2,m\n')
    (first, second) = [row for _, row in dataset_rows(file, "train")]
    assert first == {"question": "Tom, 2?", "answer": 12, "weight": 0.5, "unit": None}
    assert second == {"question": "line\nbreak", "answer": 7, "weight": 2.0, "unit": "m"}
    file.write_text("question,answer\n1+1\n")
    with pytest.raises(DataError, match="row 0: it has fewer cells"):
        list(dataset_rows(file, "train"))
