"""Agent-RLVR's second tries: who gets guidance, what it reads, what is trained, and which pairs come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from strop.capabilities import inside
from strop.control.budgets.waves import AgainWhenLost
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import LLMClientError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.agent_rlvr import GuidedRetry
from strop.roles import LLMClient
from strop.standins.feedback import put_right
from strop.storage.ledger.ledger import Ledger
from strop.text.llm_prompt import parts_of, question
from strop.types import Message, Origin, Sampling
from tests.clock import run_virtually
from tests.recipes.guide.test_ghpo import terms
from tests.recipes.guide.test_guide_hinted_when_lost import Reading
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(4)


@dataclass(frozen=True)
class Guide(LLMClient):
    """Corrects sums; of those whose last term can be divided by 5 it knows nothing."""

    asked: list[dict[str, str]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        parts = parts_of(messages[-1].content)
        self.asked.append(parts)
        if terms(parts["task"])[-1] % 5 == 0:
            raise LLMClientError("no idea")
        return put_right(messages[-1].content)


def completion(prompt: str, key: int) -> str:
    """Even first terms are solved half of the time, others only with guidance, and those of 3, 13, ... never."""
    asked = terms(prompt)
    able = asked[0] % 2 == 0 or ("hint:" in prompt and asked[0] % 10 != 3)
    return str(sum(asked)) if able and key % 2 else f"<think>{asked[0]}+{asked[1]}={1000 + key % 1000}</think>0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Reading, Guide]:
    folder, engine, guide = tmp_path_factory.mktemp("retry"), Reading(completion), Guide()
    run = make_run(
        steps=5,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=engine,
        budget=AgainWhenLost(2, 2),
        strategy=GuidedRetry(guide),
        gates=(BestAndWorst(),),
    )
    with opened(run, save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    return Ledger(folder / "ledger.db", read_only=True), engine, guide


def test_only_tasks_where_all_failed_call_the_teacher(made: tuple[Ledger, Reading, Guide]) -> None:
    ledger, _, guide = made
    rows: dict[int, list[tuple[str, float]]] = {}
    for number, origin, reward in ledger._rows("SELECT number, origin, reward FROM rollouts ORDER BY number, id"):
        rows.setdefault(number, []).append((origin, reward))
    asked = 0
    for rollouts in rows.values():
        own = [reward for origin, reward in rollouts if origin == "policy"]
        again = [reward for origin, reward in rollouts if origin == "guided"]
        assert len(own) == 2 and len(again) in ((0, 2) if not any(own) else (0,))
        asked += 2 * (not any(own))
    assert asked == len(guide.asked), "once for each rollout that failed"
    kinds = {(any(r for o, r in each if o == "policy"), len(each)) for each in rows.values()}
    assert kinds == {(True, 2), (False, 4), (False, 2)}, "solved at once, tried again, and no teacher"
    told = [ledger.rollout(name) for (name,) in ledger._rows("SELECT id FROM rollouts WHERE origin = 'policy'")]
    failed = {(each.task.messages[0].content, each.completion) for each in told if not each.reward}
    heard = {(parts["task"], parts["completion"]) for parts in guide.asked}
    assert heard <= failed and len(heard) == len(guide.asked), "each is guided by what was wrong in itself"
    for parts in guide.asked:
        assert parts["completion"].endswith("</think>0") and parts["answer"] == str(sum(terms(parts["task"])))


def test_pairs_are_of_a_guided_success_and_the_failure_before_it(made: tuple[Ledger, Reading, Guide]) -> None:
    ledger, engine, _ = made
    groups = [group for step in range(1, 6) for group in ledger.trained_groups(step)]
    guided = 0
    for group in groups:
        chosen, rejected = group.rollouts
        assert (chosen.reward, rejected.reward) == (1.0, 0.0), "no success, no pair"
        assert rejected.origin is Origin.POLICY
        guided += chosen.origin is Origin.GUIDED
        text = engine._tokenizer.decode(chosen.turns[0].prompt.tolist())
        assert text == f"<|user|>{group.task.messages[0].content}<|end|><|assistant|>", "guidance is not trained on"
    assert 0 < guided < len(groups)
    first = "<|user|>{0} hint: {1}<|end|>"
    read = [text for text in engine.prompts.values() if "hint:" in text]
    for text in read:
        asked = terms(text)
        told = f"{asked[0]}+{asked[1]}={asked[0] + asked[1]}"
        assert first.format("+".join(map(str, asked)) + "=?", told) in text, "the first step is put right"


@pytest.mark.parametrize(
    ("completion", "told"),
    [
        ("<think>47+12=58 58+30=88</think>88", "47+12=59"),
        ("<think>47+12=59 59+30=88</think>88", "47+12=59 59+30=89"),
        ("<think>47+12=59 59+30=89</think>98", "47+12=59 59+30=89"),
        ("99", "47+12=59"),
    ],
)
def test_the_rule_stops_at_the_first_slip(completion: str, told: str) -> None:
    assert put_right(question("why?", task="47+12+30=?", answer="89", completion=completion)) == told


def test_a_teacher_behind_an_address() -> None:
    strategy = build(recipe_named("agent_rlvr"), {"teacher": "http://localhost:1/v1#a"}).strategy
    assert isinstance(strategy, GuidedRetry) and inside(strategy.teacher, Endpoint)
