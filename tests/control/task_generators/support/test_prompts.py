"""How task generators ask: the policy itself, whose tokens are counted and never trained on, or an LLM client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.control.task_generators.support.prompts import REQUESTS, asked, rewritten
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import LLMClientError
from strop.generate.engines.scripted import Scripted
from strop.generate.llm_clients.without_model import Canned
from strop.stats.task_lineage import ancestor
from strop.text.llm_prompt import parts_of, question, told
from strop.types import Group, Outcome
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

PARENT = Arithmetic(1).task(0)


def test_parts_are_read_whatever_the_request_says_about_them() -> None:
    for wanted, text in REQUESTS.items():
        read = parts_of(question(text, wanted=wanted, task="1+1=?", answer="[task]\n7"))
        assert read == {"wanted": wanted, "task": "1+1=?", "answer": "(task)\n7"}


@pytest.mark.parametrize(
    ("completion", "parts"),
    [
        ("[task]\n1+2=?\n[answer]\n3", {"task": "1+2=?", "answer": "3"}),
        ("Sure!\n[task] 1+2=?", {"task": "1+2=?"}),
        ("Of course!\n**Task:** 1+2=?\n## Answer\n`3`", {"task": "1+2=?", "answer": "`3`"}),
        ("<think>[task] no</think>[Problem]: hm\n\nproblem: 1+2=?\nANSWER: 3", {"task": "1+2=?", "answer": "3"}),
        ('```json\n{"task": "1+2=?", "Answer": 3}\n```', {"task": "1+2=?", "answer": "3"}),
        ("Sure, I can write a problem!", {}),
        ("", {}),
        ("[task] Sure! Here is a harder problem:\n\n1+2=?\n\nLet me know if you need more!", {"task": "1+2=?"}),
        ('Of course!\n**[Task]**\n"1+2=?"\n**[Answer]**\n3\n\nI hope this helps!', {"task": "1+2=?", "answer": "3"}),
        ("[task]1+2=?[/task]\n[answer]3[/answer]\nDone.", {"task": "1+2=?", "answer": "3"}),
        ('```json\n{"task": "1+2=?", "answer": 3}\n```', {"task": "1+2=?", "answer": "3"}),
        (
            "**New problem:** One apple.\nAnd two?\n**Answer:** 3\n\nExplanation: sums.",
            {"task": "One apple.\nAnd two?", "answer": "3"},
        ),
        (
            "[task]\nFind x.\nQuestion: which {x: x > 2}?\n[answer]\n3",
            {"task": "Find x.\nQuestion: which {x: x > 2}?", "answer": "3"},
        ),
        (
            "[task] Here is a triangle with sides 3: 4 and 5. How large?",
            {"task": "Here is a triangle with sides 3: 4 and 5. How large?"},
        ),
    ],
)
def test_answers_are_read(completion: str, parts: dict[str, str]) -> None:
    assert told(completion) == parts


def test_the_policy_itself_is_asked_apart_from_the_task_and_its_tokens_count(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    run = make_run(engine=Scripted({"wanted?": "<think>hm</think>1+2=?"}))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        group = Group(0, PARENT, [])
        play = flow.player(group)
        assert asyncio.run(asked(None, "wanted?", play)) == "1+2=?"
        (made,) = play.unused([])
        assert made.outcome is Outcome.PRUNED and made.num_sampled > 5 and made.turn_rewards == ()
        long = "wanted?" + "1" * 200
        assert asyncio.run(asked(None, long, play)) == "", "what fits no context is not asked, and ends nothing"


def test_an_answer_without_a_task_or_its_answer_is_no_advice(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    with opened(make_run(), model, tmp_path / "ledger.db") as (flow, _):
        play = flow.player(Group(0, PARENT, []))
        made = asyncio.run(rewritten(Canned({"": "[task]\n1+2=?\n[answer]\n3"}), "similar", PARENT, play))
        assert (made.messages[0].content, made.answer, ancestor(made)) == ("1+2=?", "3", PARENT.id)
        for said, lacks in (("[answer]\n3", "no task"), ("1+2=?", "no answer"), ("", "no task and no answer")):
            with pytest.raises(LLMClientError, match=lacks):
                asyncio.run(rewritten(Canned({"": said}), "similar", PARENT, play))
