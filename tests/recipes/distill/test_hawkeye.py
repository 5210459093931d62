"""Hawkeye: the policy's chain of thought, the small model's answer, and the length penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.llm_clients.local_model import Local
from strop.generate.llm_clients.without_model import Canned
from strop.launch.checks.preflight import check
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.distill.hawkeye import Relayed, ShortChain
from strop.roles import LLMClient
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import Message, Sampling, Start
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(1)


def test_the_small_model_answers_from_question_and_chain_of_thought(tmp_path: Path) -> None:
    task = ENV.task(0)
    question = task.messages[-1].content
    folder = save_folder(tmp_path)
    for answers, pay in (({f"{question} hint: add 9": task.answer}, 1.0), ({"hint: add 9": "no"}, 0.0)):
        dialogue = policy_of(folder, Recording(["<think>add</think>9|"])).dialogue(task, Start("0/0", 1))
        paid, _ = run_virtually(Relayed(Canned(answers)).rollout(task, dialogue, ENV.episode()))
        assert paid == (pay,) and len(dialogue.turns) == 1
        assert dialogue.turns[0].message.content == "<think>add</think>9", "only its own tokens are trained"
    for wrong in ({"asks": "hint"}, {"max_tokens": 0}):
        with pytest.raises(ConfigurationError, match="Relayed needs"):
            Relayed(Canned(), **wrong)  # type: ignore[arg-type]


@dataclass
class RecordingClient(LLMClient):
    """An LLM client that records its prompts and sampling."""

    samplings: list[Sampling] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.samplings.append(sampling)
        self.keys.append(key)
        self.texts.append(messages[-1].content)
        return "9"


def test_the_small_model_decodes_greedily_up_to_max_tokens(tmp_path: Path) -> None:
    answerer, task = RecordingClient(), ENV.task(0)
    dialogue = policy_of(save_folder(tmp_path), Recording(["<think>add </s></think>9|"])).dialogue(
        task, Start("0/0", 77)
    )
    run_virtually(Relayed(answerer, max_tokens=7).rollout(task, dialogue, ENV.episode()))
    assert answerer.texts == [f"{task.messages[-1].content} hint: add (/s) 9"], "its answer is no turn of the rollout"
    assert answerer.samplings == [Sampling(temperature=0.0, max_tokens=7)] and answerer.keys == [77]


def test_the_penalty_is_the_squared_excess_over_a_share_of_the_plain_length() -> None:
    """Of 20 tokens 6 are free; 8 cost (.4 - .3)^2, 10 four times as much."""
    group = make_group([0.0] * 5, [1, 6, 8, 10, 40])
    for rollout in group.rollouts:
        rollout.facts["plain_tokens"] = 20.0
    assert ShortChain()(group) == pytest.approx([0.0, 0.0, -0.01, -0.04, -2.89])
    for rollout in group.rollouts:
        rollout.facts["plain_tokens"] = 0.0
    assert ShortChain()(group) == [0.0] * 5, "the environment failed the plain rollout before it began: no penalty"
    with pytest.raises(ConfigurationError, match="0-0 has no plain_tokens: use the strategy MeasuredByPlain"):
        ShortChain()(make_group([0.0]))
    with pytest.raises(ConfigurationError, match=r"free >= 0, got -0\.1"):
        ShortChain(-0.1)


def test_a_model_in_a_folder_answers_in_text(tmp_path: Path) -> None:
    llm_client = Local(str(save_pocket_like(tmp_path)))
    assert llm_client.num_generated == 0
    sampling = Sampling(temperature=0.0, max_tokens=5)
    said, _ = run_virtually(llm_client.ask((Message("user", "1+1=?"),), sampling, 1))
    again, _ = run_virtually(llm_client.ask((Message("user", "1+1=?"),), sampling, 2))
    assert said == again and llm_client.num_generated == 10


def test_a_run_trains_only_the_policy_and_measures_lengths_by_plain_rollouts(tmp_path: Path) -> None:
    model, small = save_pocket_like(tmp_path / "model"), save_pocket_like(tmp_path / "small", seed=1)
    sizes = {
        "model": str(model),
        "steps": 2,
        "groups_per_step": 2,
        "group_size": 2,
        "max_tokens": 6,
        "heldout_tasks": 1,
    }
    run = build(recipe_named("hawkeye"), {**sizes, "answerer": str(small)})
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    book = Ledger(folder.ledger, read_only=True)
    assert book.violations() == []
    for group in book.history():
        plain = [each for each in group.rollouts if each.outcome.value == "pruned"]
        assert len(plain) == 1 and plain[0].turns[0].sampling.policy_name == "reference"
        assert {each.facts["plain_tokens"] for each in group.own} == {float(plain[0].num_tokens)}
    assert [len(group.rollouts) for group in book.trained_groups(1)] == [2, 2]
    book.close()
    assert read_rows(folder.metrics)[-1]["tokens_advised"] > 0
    assert all(each.is_equal for each in retrain(folder.path))
    with pytest.raises(ConfigurationError, match="nowhere does not exist"):
        check(replace(run, agent=Relayed(Local(str(tmp_path / "nowhere")))))
