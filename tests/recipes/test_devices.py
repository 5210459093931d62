"""Every part that holds tensors holds them where the setting says: a critic that stays on the CPU is slow, not wrong.

It walks strop.recipes .
"""

from __future__ import annotations

import pytest

from strop.capabilities import OnDevice, inside
from strop.catalogue.record import recipe_files
from strop.recipes import build, parameters_of, recipe_named


@pytest.mark.parametrize("name", sorted(recipe_files()))
def test_every_part_computes_where_the_setting_says(name: str) -> None:
    recipe = recipe_named(name)
    required = {each.name: "FOLDER" for each in parameters_of(recipe).values() if each.is_required}
    parts = inside(build(recipe, {**required, "device": "cuda:1"}), OnDevice)
    found = {type(part).__name__: part.device for part in parts}
    assert found and set(found.values()) == {"cuda:1"}, found
