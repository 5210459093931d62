from __future__ import annotations

from itertools import permutations

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.recipes.select.adcl_egsr import Resorted, inversion_rate
from tests.control.samplers.trying import Told, draws, prompt, restored

ENVS = (Countdown(3), Arithmetic(3), Arithmetic(1))
POOL = [prompt(env.task(index)) for env in ENVS for index in range(4)]


def sampler() -> Resorted:
    return Resorted(ENVS, size=4, batches=3, seed=1)


def test_without_estimates_levels_are_the_order_and_ties_are_random() -> None:
    tasks = draws(sampler(), 12, estimator=Told({}))
    assert [task.level for task in tasks] == [1] * 4 + [3] * 8 and len(set(tasks)) == 12
    assert [task.source for task in tasks[4:]] not in (["arithmetic"] * 4 + ["countdown"] * 4,), "mixed"
    assert tasks == draws(sampler(), 12, estimator=Told({}))
    assert tasks != draws(Resorted(ENVS, 4, 3, seed=2), 12, estimator=Told({}))


def test_easy_ones_come_first_where_something_is_known() -> None:
    means = {name: place / 20 for place, name in enumerate(POOL)}
    assert [prompt(task) for task in draws(sampler(), 12, estimator=Told(means))] == POOL[::-1]


def test_an_estimator_that_does_not_change_keeps_the_order() -> None:
    estimator, used = Told({name: (7 * place % 12) / 20 for place, name in enumerate(POOL)}), sampler()
    order = [prompt(task) for task in draws(used, 12, estimator=estimator)]
    assert order == sorted(POOL, key=lambda name: -estimator.means[name])
    assert used.learn([]) == {"inversion_rate": 0.0}


def test_a_batch_is_resorted_when_it_comes_and_no_task_leaves_it() -> None:
    estimator, used = Told({name: 1 - place / 20 for place, name in enumerate(POOL)}), sampler()
    first = [prompt(task) for task in draws(used, 4, estimator=estimator)]
    assert first == POOL[:4] and used.learn([])["inversion_rate"] == 0.0
    estimator.means |= {POOL[4]: 0.1, POOL[5]: 0.4, POOL[6]: 0.3, POOL[7]: 0.2, POOL[8]: 0.99}
    second = [prompt(task) for task in draws(used, 4, estimator=estimator)]
    assert second == [POOL[5], POOL[6], POOL[7], POOL[4]], "the easiest of the third batch stays there"
    assert used.learn([])["inversion_rate"] == 0.5, "3 of 6 pairs"
    assert [prompt(task) for task in draws(used, 4, estimator=estimator)] == POOL[8:]
    again = [prompt(task) for task in draws(used, 12, estimator=estimator)]
    assert again == sorted(POOL, key=lambda name: -estimator.means[name]), "after the last batch all are sorted"


def test_state_is_restored() -> None:
    estimator, first = Told({name: 1 - place / 20 for place, name in enumerate(POOL)}), sampler()
    draws(first, 5, estimator=estimator)
    again = restored(sampler(), first)
    estimator.means |= {POOL[9]: 0.9, POOL[6]: 0.99}
    assert draws(again, 30, estimator=estimator) == draws(first, 30, estimator=estimator)
    assert again.learn([]) == first.learn([])


def test_inversions_by_counting() -> None:
    for order in permutations(range(4)):
        flipped = sum(order[i] > order[j] for i in range(4) for j in range(i + 1, 4))
        assert inversion_rate(order) == pytest.approx(flipped / 6)
    assert inversion_rate([0]) == 0.0


def test_batches_of_uneven_sizes() -> None:
    """12 tasks in 5 batches: cut at 2, 4, 7 and 9."""
    estimator, used = Told({name: 1 - place / 20 for place, name in enumerate(POOL)}), Resorted(ENVS, 4, 5)
    assert (Resorted(ENVS).size, Resorted(ENVS).batches) == (64, 8)
    draws(used, 3, estimator=estimator)
    estimator.means = {name: place / 20 for place, name in enumerate(POOL)}
    rest = [POOL.index(prompt(task)) for task in draws(used, 9, estimator=estimator)]
    assert rest == [3, 6, 5, 4, 8, 7, 11, 10, 9], "a batch in progress keeps its order"


@pytest.mark.parametrize("batches", [0, 13])
def test_refuses_batches_that_cannot_be(batches: int) -> None:
    with pytest.raises(ConfigurationError, match=f"got {batches} and 12 tasks"):
        Resorted(ENVS, 4, batches)
