"""ZeroSearch: noise as in the paper's curve, a coin for each query, and what the policy sees of the simulator."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from strop.environments.bundled.search import Search
from strop.environments.data.heldout_split import prompt_of
from strop.environments.isolation.pool import Pooled
from strop.environments.isolation.subprocess import Apart
from strop.environments.tools.bundled_corpus import facts
from strop.environments.tools.calculator import Calculator
from strop.environments.tools.toolbox import Toolbox
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.llm_clients.without_model import Procedural
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.recipes.agent.zerosearch.environment import SimulatedSearch
from strop.recipes.agent.zerosearch.recipe import zerosearch
from strop.roles import Environment
from strop.standins.search_engine import found
from strop.types import Group, Rollout, Sampling, Start

RULES = Procedural(found)


def test_noise_by_hand() -> None:
    """(4^(1/2) - 1) / 3 of a half is 1/6; flat at first, and a half from the last version on."""
    env = SimulatedSearch(Search(1), RULES, total=100)
    assert [env.noise(at) for at in (0, 50, 100, 150)] == pytest.approx([0.0, 1 / 6, 0.5, 0.5])
    steps = [env.noise(at + 1) - env.noise(at) for at in range(100)]
    assert all(later > earlier > 0 for earlier, later in itertools.pairwise(steps))
    line = SimulatedSearch(Search(1), RULES, 10, start=0.2, end=0.6, base=1.0)
    assert [line.noise(at) for at in (0, 5, 10)] == pytest.approx([0.2, 0.4, 0.6])
    near = SimulatedSearch(Search(1), RULES, 10, start=0.2, end=0.6, base=1.0 + 1e-6)
    assert near.noise(5) == pytest.approx(0.4, abs=1e-5)  # base 1 is the limit
    once = SimulatedSearch(Search(1), RULES, total=1, start=1.0, end=0.0)
    assert [once.noise(at) for at in (0, 1)] == [1.0, 0.0]


def searched(model: Path, env: Environment, version: int, count: int) -> list[Rollout]:
    """Rollouts that search twice for what is asked, at this version of the weights."""
    query = prompt_of(env.task(0)).removesuffix("?")
    engine = Scripted(lambda prompt, key: f"<call>search {query}</call>" if prompt.count("<|tool|>") < 2 else "x")
    engine.open(model)
    policy = Policy.load(model, engine, Sampling(max_tokens=64), 512)

    async def rollouts() -> list[Rollout]:
        starts = [Start(f"0/{key}", key, version=version) for key in range(count)]
        talks = [policy.dialogue(env.task(0), start) for start in starts]
        return list(await asyncio.gather(*(play(Chat(), env, talk) for talk in talks)))

    return asyncio.run(rollouts())


def told(rollout: Rollout) -> list[str]:
    return [message.content for turn in rollout.turns for message in turn.told]


def test_the_share_of_noise_is_that_of_the_rollouts_version(model: Path) -> None:
    env = SimulatedSearch(Search(1), RULES, total=10)
    task = env.task(0)
    truth = f"{prompt_of(task).removesuffix('?')} is {task.answer}"
    shares = {}
    for version in (0, 5, 10):
        texts = [text for rollout in searched(model, env, version, 100) for text in told(rollout)]
        shares[version] = sum(text != truth for text in texts) / len(texts)
        assert all(task.answer not in text for text in texts if text != truth) and len(texts) == 200
    assert shares[0] == 0.0 and 0.1 < shares[5] < 0.25 and 0.4 < shares[10] < 0.6
    again = [told(rollout) for rollout in searched(model, env, 10, 20)]
    assert again == [told(rollout) for rollout in searched(model, env, 10, 20)]  # the coin is the rollout's own
    assert any(first != second for first, second in again)  # and tossed for each query
    assert env.learn([Group(0, task, [], version=3), Group(1, task, [], version=5)]) == pytest.approx(
        {"search_noise": 1 / 6}
    )


def test_rules_write_facts() -> None:
    thing, place = next(iter(facts()))
    asked = "[wanted]\n{}\n[task]\nq?\n[answer]\nx\n[completion]\n{}\n\nwrite"
    assert found(asked.format("useful", f"{thing} of {place}")) == f"{thing} of {place} is {facts()[thing, place]}"
    noise = found(asked.format("noisy", f"{thing} of {place}"))
    assert noise.startswith(f"{thing} of ") and place not in noise.split(" ")
    assert " is " in found(asked.format("useful", "what is this"))  # something is always found


@pytest.mark.parametrize(("simulator", "seconds"), [("rules", 10.0), ("itself", 600.0)])
def test_a_model_has_longer_to_answer_than_rules_and_the_rollout_waits_for_it(simulator: str, seconds: float) -> None:
    run = zerosearch(simulator=simulator)
    (env,) = run.envs
    assert isinstance(env, SimulatedSearch) and env.at(Start("", 0)).seconds == seconds <= run.env_seconds


def test_what_cannot_be_is_refused() -> None:
    for changes in ({"total": 0}, {"end": 1.5}, {"start": -0.1}, {"base": 0.0}, {"seconds": 0.0}):
        with pytest.raises(ConfigurationError, match="probabilities from 0 to 1"):
            SimulatedSearch(**{"inner": Search(1), "simulator": RULES, "total": 5} | changes)  # type: ignore[arg-type]


def test_versions_are_seen_through_envs_around_it(model: Path) -> None:
    """No noise at version 0 and nothing else from the last one on, however many environments stand around."""
    plain = SimulatedSearch(Search(1), RULES, total=4, end=1.0)
    for env in (Around(plain), Toolbox(plain, (Calculator(),)), Around(Toolbox(Around(plain), (Calculator(),)))):
        for version in (0, 4):
            found, expected = (searched(model, each, version, 6) for each in (env, plain))
            assert list(map(told, found)) == list(map(told, expected)) and any(map(told, expected))
    noisy, useful = (list(map(told, searched(model, Around(plain), version, 6))) for version in (4, 0))
    assert noisy != useful
    for holder in (Apart, Pooled):
        with pytest.raises(ConfigurationError, match=f"use it without {holder.__name__}"):
            holder(Around(plain))
