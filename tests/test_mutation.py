"""The changes that mutation testing tries, and what it takes for a module's tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation import (
    CONTROL,
    GENERATE,
    ROOMS,
    ROOT,
    about,
    chosen,
    equivalents,
    files_of,
    files_of_keys,
    mutants_of,
)
from tests.mutations import changes, with_change


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("y = a - b", ["y = a + b", "y = a"]),
        ("y = a * b", ["y = a / b", "y = a"]),
        ("y = -a", ["y = a"]),
        ("y = a < b", ["y = a >= b"]),
        ("y = a.detach()", ["y = a"]),
        ("y = f(a, b)", ["y = f(b, a)"]),
        ("y = f(a, k=b)", ["y = f(a)"]),
        ("y = torch.where(a, b, c)", ["y = torch.where(a, c, b)"]),
        ("y = torch.minimum(a, b)", ["y = torch.maximum(a, b)"]),
        ("y = 2", ["y = 3"]),
        ("y = 0.2", ["y = 0.34"]),
        ("y = True", ["y = False"]),
        ("y = (f(), a)", ["y = (a,)", "y = (f(),)"]),
        ("y = a and b", ["y = a or b"]),
        ("y = a if b else c", ["y = c if b else a"]),
        ("if a:\n    b()", ["if not a:\n    b()"]),
        ("y = a.softmax(-1)", []),
        ("y = np.clip(a, b, c)", []),
        ("if TYPE_CHECKING:\n    import a", []),
        ("y: int = a", []),
        ("raise E(f'{a - 1} of 2')", []),
    ],
)
def test_what_is_changed(source: str, expected: list[str]) -> None:
    count = len(changes(ast.parse(source)))
    assert [with_change(source, index) for index in range(count)] == expected


def test_every_mutant_of_a_file_differs_from_it_and_has_a_name_of_its_own() -> None:
    path = Path("strop/training/losses/clip.py")
    source = (ROOT / path).read_text()
    found = mutants_of(path)
    assert len({mutant.what for mutant in found}) == len(found) > 10
    assert all(with_change(source, mutant.index) != ast.unparse(ast.parse(source)) for mutant in found)


def test_the_seed_and_the_mutants_themselves_decide_which_are_taken() -> None:
    files = files_of("corrections")
    first, again, other = (chosen(files, seed, 20) for seed in (0, 0, 1))
    assert first == again != other
    without = [mutant for mutant in first if mutant.path != str(files[0])]
    assert chosen(files[1:], 0, len(without)) == without  # another file's mutants do not matter


def test_a_papers_files_are_its_mechanisms_and_its_recipe() -> None:
    found = files_of_keys(["control"])
    assert set(found) == set(CONTROL) and all((ROOT / path).is_file() for files in found.values() for path in files)
    assert set(files_of_keys(["generate", "pcl"])) == {*GENERATE, "pcl"}
    estimator, sampler = (
        Path("strop/control/estimators/prompt_value_head.py"),
        Path("strop/control/samplers/nearest_to_target.py"),
    )
    assert found["pcl"] == [estimator, sampler, Path("strop/recipes/select/pcl.py")]
    with pytest.raises(SystemExit, match="no paper is called pcx"):
        files_of_keys(["pcl", "pcx"])


def test_a_modules_tests_name_it_or_walk_its_room() -> None:
    found = about("strop/recipes/objective/nft.py")
    assert {"tests/recipes/objective/test_nft.py", "tests/training/losses/test_robust.py"} <= set(found)
    assert "tests/training/losses/test_gspo.py" not in found
    parts, devices, *others = about("strop/recipes/rollout/brorl.py")
    assert parts.endswith("[brorl]") and devices.endswith("[brorl]") and "tests/recipes/rollout/test_brorl.py" in others
    assert "tests/filter/rewards/test_flawed.py" in about("strop/recipes/reward/fapo/recipe.py"), "who imports it"


def test_every_room_is_there_and_every_equivalent_mutant_still_exists_and_has_a_reason() -> None:
    assert all(files_of(room) for room in ROOMS)
    for path, reasons in equivalents().items():
        names = {mutant.what for mutant in mutants_of(Path(path))}
        assert not set(reasons) - names, f"{path} has no such mutants any more"
        assert all(len(reason) > 20 for reason in reasons.values())
