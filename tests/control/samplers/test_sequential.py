from __future__ import annotations

import pytest

from strop.capabilities import learners_in
from strop.control.samplers.fixed_mixture import Mixture
from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.storage.checkpoint import parts
from strop.training.learners import teach
from tests.control.samplers.trying import draws, group_of

STAGES = (Uniform((Arithmetic(1),)), Uniform((Arithmetic(2), Arithmetic(3))), Uniform((Arithmetic(4),)))


def test_the_stage_is_the_weights_version_and_no_draw_is_lost() -> None:
    staged = Staged(tuple(Uniform(stage.envs) for stage in STAGES), (2, 3))
    levels = [[task.level for task in draws(staged, 2, step)] for step in range(7)]
    assert levels == [[1, 1], [1, 1], [2, 3], [2, 3], [2, 3], [4, 4], [4, 4]]
    assert staged.next(0, None) == Arithmetic(1).task(4), "each stage goes on where it was"  # type: ignore[arg-type]


def test_stages_are_remembered_by_themselves() -> None:
    names = [path for path, part in parts(Staged(STAGES, (2, 3))) if isinstance(part, Uniform)]
    assert names == ["stages.0", "stages.1", "stages.2"], "a checkpoint finds them"


def test_it_says_the_stage_of_groups_by_their_version_and_lets_stages_learn() -> None:
    mixed = Mixture((Arithmetic(1), Arithmetic(2)), (1.0, 1.0))
    staged = Staged((mixed, STAGES[2]), (5,))
    groups = [group_of(Arithmetic(1).task(number), [1.0], version) for number, version in enumerate((4, 5, 9, 0))]
    told = teach(learners_in(staged), groups)
    assert told["stage"] == 0.5 and told["drawn/arithmetic-1"] == 1.0 and told["uneven"] == 0.5


@pytest.mark.parametrize(("count", "steps"), [(0, ()), (3, (2,)), (3, (2, 3, 4)), (2, (0,)), (3, (5, 0))])
def test_refuses_stages_that_do_not_fit_their_steps(count: int, steps: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="steps >= 1 for all but the last"):
        Staged(STAGES[:count], steps)
