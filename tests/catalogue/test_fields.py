"""Comments behind fields are what help says about them."""

from __future__ import annotations

from pathlib import Path

from strop.catalogue.fields import WrittenField, class_fields, common_fields, parameters, recipe_parameters
from strop.catalogue.record import PACKAGE, recipe_files


def test_comments_of_a_dataclass_and_of_parameters(tmp_path: Path) -> None:
    path = tmp_path / "thing.py"
    path.write_text(
        "class Thing:\n"
        "    size: int = 3  # in metres\n"
        "    kind: ClassVar[str] = 'a'  # no field\n"
        "    seen: int = field(default=0, init=False)  # nor this\n"
        "    share: float\n"
        "def thing(setting=1, low: int = 2): pass  # of the line, not of low\n"
        "def other(\n    setting=1,\n    high: int = 4,  # upper end\n    *,\n    end: str,\n): pass\n"
    )
    assert class_fields(path, "Thing") == (WrittenField("size", "3", "in metres"), WrittenField("share", "", ""))
    assert parameters(path, "thing") == (WrittenField("low", "2", ""),)
    assert parameters(path, "other") == (WrittenField("high", "4", "upper end"), WrittenField("end", "", ""))


def test_fields_of_a_base_come_first(tmp_path: Path) -> None:
    path = tmp_path / "thing.py"
    path.write_text(
        "from strop.environments.wrappers.wrong_controls import Miskeyed\n"
        "class Thing(Miskeyed):\n    tasks: int = 3  # fewer\n"
    )
    assert [(field.name, field.default, field.comment) for field in class_fields(path, "Thing")] == [
        ("inner", "", ""),
        ("tasks", "3", "fewer"),
        ("share", "0.5", "of tasks that cannot be solved"),
    ]

    told = class_fields(PACKAGE / "training/corrections/importance_weights.py", "Truncated")
    assert [field.name for field in told] == ["cap", "target"], "a base that is no dataclass has no fields"


def test_a_parameter_without_a_comment_has_that_of_the_part_it_sets() -> None:
    path = PACKAGE / "recipes" / "objective" / "effective_rank.py"
    said = {
        field.name: field.comment
        for field in class_fields(PACKAGE / "recipes/objective/effective_rank.py", "HiddenRank")
    }
    assert said["stride"]
    assert {field.name: field.comment for field in recipe_parameters(path)}["stride"] == said["stride"]


def test_every_field_of_every_recipe_is_described() -> None:
    silent = [name for name, field in common_fields().items() if not field.comment]
    assert not silent, f"say behind {silent} in setting.py or run.py what they are"


def test_every_parameter_of_every_recipe_is_described() -> None:
    common = common_fields()
    silent = [
        f"{name}: {field.name}"
        for name, path in recipe_files().items()
        for field in recipe_parameters(path)
        if not field.comment and field.name not in common
    ]
    assert not silent, f"write a comment behind {silent}, each on a line of its own, or behind the part's field"
