"""ThinkTuning's feedback: how many get it and until when, what is said and what is sampled, and who is left alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import inside
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.thinktuning import FEEDBACK, WithFeedback
from strop.standins.feedback import slip
from strop.text.llm_prompt import question
from strop.training.losses.among import Among
from strop.types import Group, Origin, Outcome
from tests.building import make_group
from tests.clock import run_virtually
from tests.recipes.guide.test_ghpo import terms
from tests.recipes.guide.test_guide_hinted_when_lost import Reading
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(3)
RULE = Procedural(slip)


def test_the_card_s_schedule() -> None:
    """T = 300: 0.1 - 0.09 * 45 / 100 = 0.0595 is the first share that is not above 0.06."""
    strategy = WithFeedback(RULE, 300)
    assert strategy.share(0) == 0.1 and strategy.share(44) == pytest.approx(0.0604)
    assert all(strategy.share(version) == 0.0 for version in range(45, 301))
    ends = WithFeedback(RULE, 300, least=0.0)
    assert ends.share(100) == pytest.approx(0.01) == ends.share(299) and ends.share(50) == pytest.approx(0.055)


@dataclass
class Long(Reading):
    """Notes the longest completion that it was asked for."""

    limits: dict[str, int] = field(default_factory=dict)

    async def sample(self, prompt: Any, sampling: Any, key: int) -> Any:
        self.limits[self._tokenizer.decode(prompt.tolist())] = sampling.max_tokens
        return await super().sample(prompt, sampling, key)


def completion(prompt: str, key: int) -> str:
    """A slip at first, put right behind feedback; where the first term is odd, no end within the limit."""
    begun = prompt.rpartition("<|assistant|>")[2]
    first, second = terms(prompt.partition("<|assistant|>")[0])
    if begun:
        return f"<think>{first}+{second}={first + second}</think>{first + second}"
    return f"<think>{first}+{second}=1</think>1" + ("9" * 50 if first % 2 else "")


def played(folder: Path, teacher: Any = RULE, **fields: Any) -> tuple[list[Group], Long, list[dict[str, float]]]:
    engine, strategy = Long(completion), WithFeedback(teacher, 6, 0.7, **fields)
    run = make_run(steps=3, envs=(ENV,), sampler=Uniform((ENV,)), engine=engine, budget=Fixed(4), strategy=strategy)
    run.sampling = type(run.sampling)(max_tokens=24)
    with opened(run, save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, recorder):
        strategy.meet(flow.policy)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2, 3) for group in flow.ledger.trained_groups(step)]
    return groups, engine, recorder.rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Group], Long, list[dict[str, float]]]:
    return played(tmp_path_factory.mktemp("feedback"))


def test_the_policy_goes_on_behind_what_nobody_sampled(
    made: tuple[list[Group], Long, list[dict[str, float]]],
) -> None:
    groups, engine, rows = made
    rollouts = [each for group in groups for each in group.rollouts]
    extended = [each for each in rollouts if FEEDBACK in each.facts]
    assert 0 < len(extended) < len(rollouts)
    for each in extended:
        first, second = terms(each.task.messages[0].content)
        own, said = f"<think>{first}+{second}=1</think>1", f"\n\nwrong: {first}+{second}=1\n\n"
        rest = f"<think>{first}+{second}={first + second}</think>{first + second}"
        (turn,) = each.turns
        assert turn.message.content == own + said + rest and each.reward == 1.0, "the last answer counts"
        assert each.origin is Origin.GUIDED and first % 2 == 0
        places = [place for place, version in enumerate(turn.versions.tolist()) if version < 0]
        assert engine._tokenizer.decode(turn.tokens[places].tolist()) == said and places[0] > 0
        assert len(places) == each.facts[FEEDBACK] == len(said)
        read = next(text for text in engine.limits if text.endswith(f"<|assistant|>{own}{said}"))
        assert engine.limits[read] == 2 * 24 + len(said) - (len(turn.tokens) - _count(engine, rest) - 1), "room again"
    taken = sum(each.num_sampled for each in rollouts)
    assert rows[-1]["tokens_generated"] == taken


def _count(engine: Long, text: str) -> int:
    return len(engine._tokenizer(text, add_special_tokens=False)["input_ids"])


def test_who_is_cut_off_and_who_is_not_chosen_stays_as_it_is(
    made: tuple[list[Group], Long, list[dict[str, float]]],
) -> None:
    groups, _, rows = made
    for step in (0, 1, 2):
        rollouts = [each for group in groups[4 * step : 4 * step + 4] for each in group.rollouts]
        told = [FEEDBACK in each.facts for each in rollouts]
        assert rows[step]["feedback_share"] == pytest.approx(sum(told) / len(told))
        for each in rollouts:
            if FEEDBACK not in each.facts:
                assert each.origin is Origin.POLICY and each.reward == 0.0 and (each.turns[0].versions >= 0).all()
            assert (each.outcome is Outcome.TRUNCATED) <= (FEEDBACK not in each.facts)
    assert rows[0]["feedback_share"] > 0 == rows[2]["feedback_share"], "0.7, 0.355, 0.01: the teacher has left"


def test_a_silent_teacher_changes_nothing(tmp_path: Path) -> None:
    groups, _, rows = played(tmp_path, Canned())
    assert all(each.origin is Origin.POLICY for group in groups for each in group.rollouts)
    assert [row["feedback_share"] for row in rows] == [0.0] * 3


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("<think>47+12=59 59+30=88</think>88", "wrong: 59+30=88"),
        ("<think>47+12=59 59+30=89</think>89", "each step again"),
        ("89", "each step again"),
    ],
)
def test_the_rule_names_the_slip_and_not_the_answer(said: str, told: str) -> None:
    assert slip(question("?", task="47+12+30=?", completion=said)) == told


def test_what_is_shaped() -> None:
    apart, whole = (build(recipe_named("thinktuning"), {"whole": whole}).losses for whole in (False, True))
    assert all(isinstance(loss, Among) for loss in (*apart, *whole))
    assert [loss.sampled for loss in apart if isinstance(loss, Among)] == [True, False]
    asked = [(loss.origins, loss.sampled) for loss in whole if isinstance(loss, Among)]
    assert asked == [((Origin.POLICY,), None), ((Origin.GUIDED,), None)]
    strategy = build(recipe_named("thinktuning"), {"teacher": "http://localhost:1/v1#a", "steps": 7}).strategy
    assert isinstance(strategy, WithFeedback) and inside(strategy.teacher, Endpoint) and strategy.steps == 7


def test_refuses_what_cannot_work() -> None:
    for wrong in ({"first": 1.1}, {"first": 0.1, "last": 0.2}, {"last": -0.1}):
        with pytest.raises(ConfigurationError, match="WithFeedback needs 0 <= last <= first <= 1"):
            WithFeedback(RULE, 3, **wrong)
    with pytest.raises(ConfigurationError, match=r"and steps >= 1, got .* and 0"):
        WithFeedback(RULE, 0)
    with pytest.raises(ConfigurationError, match="call meet"):
        WithFeedback(RULE, 3)._ended_itself(make_group([0.0], lengths=[2]).rollouts[0])
