from __future__ import annotations

from collections import Counter

import pytest

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from tests.control.samplers.trying import draws, group_of, restored

ENVS = (Arithmetic(1), Arithmetic(3), Countdown(3))


def test_envs_come_in_proportion_and_each_task_once() -> None:
    tasks = draws(Mixture(ENVS, (6.0, 3.0, 1.0), seed=4), 1500)
    seen = Counter((task.source, task.level) for task in tasks)
    for kind, share in {("arithmetic", 1): 0.6, ("arithmetic", 3): 0.3, ("countdown", 3): 0.1}.items():
        assert abs(seen[kind] / 1500 - share) < 4 * (share * (1 - share) / 1500) ** 0.5
    for env in ENVS:
        own = [task for task in tasks if (task.source, task.level) == (env.name, env.level)]
        assert own == [env.task(index) for index in range(len(own))], "in the environment's order, none twice"


def test_a_env_without_weight_is_never_drawn_and_only_proportions_count() -> None:
    assert {task.level for task in draws(Mixture(ENVS, (0.0, 2.0, 0.0)), 50)} == {3}
    assert draws(Mixture(ENVS, (1.0, 2.0, 3.0), 7), 60) == draws(Mixture(ENVS, (10.0, 20.0, 30.0), 7), 60)
    assert draws(Mixture(ENVS, (1.0, 2.0, 3.0), 7), 60) != draws(Mixture(ENVS, (1.0, 2.0, 3.0), 8), 60)


def test_goes_on_where_it_was() -> None:
    first = Mixture(ENVS, (1.0, 1.0, 2.0), 5)
    draws(first, 13)
    assert draws(restored(Mixture(ENVS, (1.0, 1.0, 2.0), 5), first), 20) == draws(first, 20)


def test_it_says_what_a_draw_was_mixed_of() -> None:
    groups = [group_of(ENVS[arm].task(index), [1.0]) for index, arm in enumerate((0, 0, 2, 0))]
    told = Mixture(ENVS, (1.0, 1.0, 1.0)).learn(groups)
    assert told == pytest.approx(
        {"drawn/arithmetic-1": 0.75, "drawn/arithmetic-3": 0.0, "drawn/countdown-3": 0.25, "uneven": 0.75 - 1 / 3}
    )
    assert Mixture(ENVS, (1.0, 1.0, 1.0)).learn([])["uneven"] == 0.0


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, -1.0, 1.0), (0.0, 0.0, 0.0), (1.0, float("inf"), 1.0)])
def test_refuses_weights_that_are_none(weights: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match="weight >= 0 of each of 3 environments"):
        Mixture(ENVS, weights)


def test_refuses_no_envs_and_the_same_twice() -> None:
    for envs in ((), (Arithmetic(1), Arithmetic(1))):
        with pytest.raises(ConfigurationError, match="differ in name or level"):
            Mixture(envs, (1.0,) * len(envs))
