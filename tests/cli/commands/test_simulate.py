"""`strop simulate`: samplers and recipes by name, in environments of their own, beside bounds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from strop.cli.commands.simulate import maker_of, scenarios_of, simulate
from strop.control.estimators.pass_rate_counts import Counts, TaskCounts
from strop.control.samplers.few import Few
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.simulate.learner import Learner
from strop.simulate.population import populate
from strop.simulate.scenarios import SCENARIOS

SHORT = replace(SCENARIOS["haystack"], steps=3)


def test_a_sampler_by_its_file_or_its_class() -> None:
    learner = Learner(populate(SHORT, 0))
    for word in ("few", "Few"):
        make, said = maker_of(word, {"count": "3"})
        sampler = make(learner, 0).sampler
        assert isinstance(sampler, Few) and sampler.count == 3 and not said
        assert sampler.envs == learner.population.envs


def test_a_recipe_brings_its_own_parts_into_the_simulated_envs() -> None:
    learner = Learner(populate(SHORT, 0))
    make, _ = maker_of("dapo", {})
    control = make(learner, 5)
    assert isinstance(control.sampler, Uniform) and control.sampler.envs == learner.population.envs
    assert any(isinstance(gate, ZeroVariance) for gate in control.gates)
    assert control.budget.size == 8
    assert make(learner, 5).sampler is not control.sampler


def test_another_estimator_in_place_of_the_recipes() -> None:
    """One that reads a model has none here; the plainest one stands for it, and that is said."""
    learner = Learner(populate(SHORT, 0))
    make, said = maker_of("pcl", {})
    assert isinstance(make(learner, 0).estimator, Counts) and "PromptValue needs a model" in said[0]
    for word in ("pcl", "nearest"):
        make, said = maker_of(word, {}, "TaskCounts")
        assert isinstance(make(learner, 0).estimator, TaskCounts) and not said
    with pytest.raises(ConfigurationError, match="PromptValue needs a model"):
        maker_of("pcl", {}, "prompt_value")
    with pytest.raises(ConfigurationError, match="no pass-rate estimator 'cuonts': did you mean counts"):
        maker_of("pcl", {}, "cuonts")


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(ConfigurationError, match="no sampler and no recipe 'unifrom': did you mean uniform"):
        maker_of("unifrom", {})
    with pytest.raises(ConfigurationError, match="Few has no field 'cuont': did you mean count"):
        maker_of("few", {"cuont": "3"})
    with pytest.raises(ConfigurationError, match="there is no scenario 'haystak': did you mean haystack"):
        scenarios_of("haystak", 0, 0.0, False)


def test_scenarios_are_made_harder() -> None:
    (one,) = scenarios_of("ladder", 4, 2.0, True)
    assert (one.name, one.lag, one.bias, one.lies) == ("ladder", 4, 2.0, True)
    assert [each.name for each in scenarios_of("all", 0, 0.0, False)] == list(SCENARIOS)


def test_table_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    simulate(["few", "count=2"], [SHORT], 2, as_json=True)
    found = json.loads(capsys.readouterr().out)["scenarios"]["haystack"]
    assert list(found) == [
        *("uniform", "few", "few, permuted", "uniform, refilled", "random weights", "oracle p(1-p)"),
        "oracle per token",
    ]
    assert found["uniform"]["mean"] == 1.0 and found["oracle p(1-p)"]["mean"] < 0.5
    simulate(["few", "count=2"], [SHORT], 2, as_json=False)
    shown = capsys.readouterr().out
    assert f"{found['few']['mean']:.2f}" in shown and "oracle per token" in shown
