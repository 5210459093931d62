"""What task generators write is checked in one place, counted, and handed over when nothing can come between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.validation import Offers, holds
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, LLMClientError
from strop.evaluation import Evaluation
from strop.generate.engines.scripted import Scripted
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.roles import Environment, Player, Sampler, TaskGenerator
from strop.run import Run
from strop.run_state import Flow
from strop.stats.task_lineage import child
from strop.types import Group, Message, Task
from tests.clock import run_virtually
from tests.test_pipeline import completion, make_run, opened


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("45+15=?", "5", False),
        ("0+5=?", "5", True),
        ("a 2.5 b", "5", False),
        ("it is 5.", "5", True),
        ("5.2 m", "5", False),
        ("1,512", "512", False),
        ("1,512", "1", False),
        ("4, 5 and 6", "5", True),
        ("10-5", "-5", False),
        ("the BLUE house", "blue", True),
        ("blueish", "blue", False),
        ("say 3*7+2 now", "3*7+2", True),
        ("13*7+2", "3*7+2", False),
        ("anything", "", False),
    ],
)
def test_answers_are_found_as_whole_words_and_numbers(text: str, answer: str, expected: bool) -> None:
    assert holds(text, answer) == expected


@pytest.fixture
def offers(model: Path, tmp_path: Path) -> Iterator[Offers]:
    envs: tuple[Environment, ...] = (Arithmetic(1), Countdown(3), KeyValue(2))
    run = make_run(envs=envs, sampler=WithWritten(Uniform(envs)))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        yield flow.offers


def on_train_side(make: Any) -> Any:
    return next(each for each in map(make, range(1, 1000)) if not is_heldout(each))


def test_what_says_its_answer_is_refused(offers: Offers) -> None:
    parent = Arithmetic(1).task(0)
    fair = on_train_side(lambda number: f"{number}0+{number}0=?")
    total = str(2 * int(fair.partition("+")[0]))
    assert offers.refusal(child(parent, fair, total)) == ""
    told = on_train_side(lambda number: f"{number}+{number}=? hint: {2 * number}")
    assert offers.refusal(child(parent, told, str(told.split()[-1]))) == "holds_answer"


def test_what_all_tasks_of_a_env_say_gives_nothing_away(offers: Offers) -> None:
    """`23 from 2 3 7` is how countdown spells the answer 3*7+2, and stands in every such question."""
    parent = Task((Message("user", "make 23 from 2 3 7"),), "3*7+2", "countdown", 3)
    other = on_train_side(lambda number: f"make {number + 21} from {number} 3 7")
    number = other.split()[3]
    assert offers.refusal(child(parent, other, f"3*7+{number}")) == ""
    said = on_train_side(lambda number: f"make {number + 21} from {number} 3 7, that is 3*7+{number}")
    assert offers.refusal(child(parent, said, f"3*7+{said.rpartition('+')[2]}")) == "holds_answer"


def test_the_text_decides_the_side_in_envs_without_an_end(offers: Offers) -> None:
    parent, kept = Arithmetic(1).task(0), Arithmetic(3).task(0, heldout=True)
    assert offers.refusal(child(parent, prompt_of(kept), kept.answer)) == "held_out"
    assert offers.refusal(child(parent, f" {prompt_of(kept)}\n", kept.answer)) == "held_out"


def test_what_no_env_can_judge_fits_no_context_or_says_nothing_is_refused(offers: Offers) -> None:
    parent, store = Arithmetic(1).task(0), KeyValue(2).task(0)
    asked = on_train_side(lambda number: f"sum red blue {'teal ' * number}")
    assert offers.refusal(child(store, asked, "12")) == "unreadable"
    assert offers.refusal(child(store, asked, json.dumps({"store": {}, "total": 3}))) == ""
    assert offers.refusal(child(parent, on_train_side(lambda n: "1+" * (100 + n) + "1=?"), "7")) == "too_long"
    assert offers.refusal(child(parent, "  ", "7")) == "empty"


@dataclass(frozen=True)
class Counting(Table):
    """A file whose rows are counted when they are read."""

    def task(self, index: int, heldout: bool = False) -> Task:
        self.asked.append(index)
        return super().task(index, heldout)

    @property
    def asked(self) -> list[int]:
        return vars(self).setdefault("_asked", [])


def test_held_out_rows_of_files_are_looked_up_once_and_no_other_text_is_kept_back(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"{n}+{n}", "answer": str(2 * n)}) + "\n" for n in range(200)))
    env, unseen = Counting(str(path)), Table(str(path), heldout_share=0.9)
    run = make_run(envs=(env,), sampler=WithWritten(Uniform((env,))))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        parent = env.task(0)
        env.asked.clear()
        kept = [env._tasks.task(place, True) for place in range(env.num_tasks(heldout=True))]
        assert len(kept) > 5
        for task in kept * 3:
            assert flow.offers.refusal(child(parent, prompt_of(task), "x")) == "held_out"
        assert len(env.asked) == len(kept), "each row once, and not for every written task"
        texts = [f"{n}+1" for n in range(300, 400)]
        assert {flow.offers.refusal(child(parent, text, "x")) for text in texts} == {""}, "no hash decides here"
        run.evaluation = Evaluation(every=0, unseen=(unseen,))
        other = Offers(run, flow.policy, flow.progress.tally)
        measured = unseen.task(0, heldout=True)
        assert other.refusal(child(parent, prompt_of(measured), "x")) == "held_out", "what is only measured on"


@dataclass
class Doubling(TaskGenerator):
    """Writes `n+n=?` for group n, a leak for every fourth and nothing where the LLM client fails; takes its time."""

    seconds: float = 0.0
    fails: int = 7
    seen: list[int] = field(default_factory=list)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        await asyncio.sleep(self.seconds * (1 + group.number % 3))
        if group.number == self.fails:
            raise LLMClientError("nobody there")
        n = group.number
        return [child(group.task, f"{n}+{n}=?" if n % 4 else f"{n}+0=?", str(2 * n if n % 4 else n))]

    def observe(self, group: Group) -> None:
        self.seen.append(group.number)


@dataclass
class Listening(Sampler):
    """Takes offers and notes in which order it hears of what."""

    inner: Uniform
    heard: list[str] = field(default_factory=list)

    def next(self, step: int, estimator: Any) -> Task:
        return self.inner.next(step, estimator)

    def observe(self, group: Group) -> None:
        self.heard.append(f"group {group.number}")

    def offer(self, task: Task) -> None:
        self.heard.append(f"task {prompt_of(task)}")


def writing(lag: int = 0, **parts: Any) -> Run:
    envs = (Arithmetic(1),)
    return make_run(
        steps=3,
        admission=BoundedLag(lag),
        engine=Scripted(completion, seconds_per_token=1.0),
        envs=envs,
        task_generator=Doubling(seconds=5.0),
        **{"sampler": Listening(Uniform(envs))} | parts,
    )


def test_without_lag_tasks_are_offered_in_the_order_of_their_groups(model: Path, tmp_path: Path) -> None:
    run = writing()
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
    taken = {n: f"task {n}+{n}=?" for n in range(12) if n % 4 and n != 7 and not is_heldout(f"{n}+{n}=?")}
    expected = [line for n in range(12) for line in ([f"group {n}", taken[n]] if n in taken else [f"group {n}"])]
    assert run.sampler.heard == expected  # type: ignore[attr-defined]
    assert run.task_generator.seen == list(range(12)), "a task generator is shown every group, as all that learn are"  # type: ignore
    rows = recorder.rows
    assert sum(row["written"] for row in rows) == len(taken)
    assert sum(row["refused"] for row in rows) == 12 - len(taken)
    assert sum(row.get("refused/holds_answer", 0) for row in rows) >= 2
    assert sum(row.get("refused/llm_client_failed", 0) for row in rows) == 1
    assert all(row["written_share"] == 0 for row in rows), "nobody drew them"


def test_a_group_is_learned_from_when_it_is_finished_and_not_before(model: Path, tmp_path: Path) -> None:
    """With lag, a step may be saved while a task generator waits: such a group is made again, and must not be known
    twice.
    """
    run = writing(lag=2)
    found: list[tuple[int, int]] = []

    def save(step: int) -> None:
        heard = sum(line.startswith("group") for line in run.sampler.heard)  # type: ignore[attr-defined]
        (running,) = flow.ledger._rows("SELECT COUNT(*) FROM groups WHERE fate='running'")[0]
        (made,) = flow.ledger._rows("SELECT COUNT(*) FROM groups")[0]
        found.append((heard, made - running))
        assert len(run.task_generator.seen) == heard  # type: ignore[union-attr]

    run.checkpoint_every = 1
    with opened(run, model, tmp_path / "ledger.db") as (opened_flow, _):
        flow: Flow = replace(opened_flow, checkpoint=save)
        run_virtually(train(flow))
    assert found and all(heard == finished for heard, finished in found)


def test_a_task_generator_whose_tasks_nobody_takes_is_refused() -> None:
    run = writing(sampler=Uniform((Arithmetic(1),)))
    with pytest.raises(ConfigurationError, match=r"Doubling writes tasks, and Uniform takes none: use sampler=With"):
        check(run)
