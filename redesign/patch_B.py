"""What stage B needs beside the merge: recipes in folders, parts that are found in papers, tests that walk rooms."""
import sys
from pathlib import Path
ROOT = Path(sys.argv[1])
def sub(name, *pairs):
    path = ROOT / name
    if not path.is_file():
        print("PATCH: no file", name); return
    text = path.read_text()
    for old, new in pairs:
        if old in text: text = text.replace(old, new)
        elif new not in text: print("PATCH: not found in", name, ":", old[:70].replace("\n", "\\n"))
    path.write_text(text)

sub("strop/catalogue/record.py",
    ('''    """The file of every recipe by name."""
    files = sorted((package / "recipes").glob("*/*.py"), key=lambda path: path.stem)
    return {path.stem: path for path in files if not path.stem.startswith("_")}
''', '''    """The file of every recipe by name; that of a paper in a folder of its own is the folder's `__init__.py`."""
    rooms = package / "recipes"
    files = [*rooms.glob("*/[!_]*.py"), *rooms.glob("*/*/__init__.py")]
    return {_home(path).stem: path for path in sorted(files, key=lambda path: _home(path).stem)}


def _home(path: Path) -> Path:
    """What bears the recipe's name: its file, or its folder."""
    return path.parent if path.stem == "__init__" else path
'''),
    ("    text = docstring_of(path)\n    said = labelled(text)\n    return Record(\n        name=path.stem,\n        group=path.parent.name,\n",
     "    text, home = docstring_of(path), _home(path)\n    said = labelled(text)\n    return Record(\n        name=home.stem,\n        group=home.parent.name,\n"),
    ('said.get("Key", path.stem.replace("_", "-"))', 'said.get("Key", home.stem.replace("_", "-"))'),
)
sub("strop/recipes/__init__.py",
    ('    module = importlib.import_module(f"{__name__}.{path.parent.name}.{name}")\n',
     '    group = (path.parent if path.stem == "__init__" else path).parent.name\n    module = importlib.import_module(f"{__name__}.{group}.{name}")\n'))
sub("strop/catalogue/fields.py", ("for field in parameters(path, path.stem)", 'for field in parameters(path, path.parent.name if path.stem == "__init__" else path.stem)'))
sub("tests/test_defaults.py", ('*("generate.strategies", "generate.guidances"),', '"generate.strategies",'), ("strop.generate.strategies, strop.generate.guidances,\n", "strop.generate.strategies,\n"), ('    "control",\n)', '    "control",\n    "recipes",\n)'),
    ("strop.control.samplers\nand strop.control.task_generators ;", "strop.control.samplers,\nstrop.control.task_generators and strop.recipes ;"))
(ROOT / "tests/rooms.py").write_text('''"""Modules in which mechanisms of a room stand: its own, and the recipes of papers that alone use one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import strop.recipes


def modules_of(room: ModuleType) -> Iterator[ModuleType]:
    for package in (room, strop.recipes):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".support." not in found.name:
                yield importlib.import_module(found.name)


def kinds_of(room: ModuleType, role: type[Any]) -> list[type]:
    """Every class of this role, where it is made."""
    return [
        kind
        for module in modules_of(room)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and role in kind.__mro__
    ]
''')
sub("tests/training/advantages/test_every_advantage.py",
    ('''    found = []
    for module in pkgutil.iter_modules(room.__path__):
        members = vars(importlib.import_module(f"{room.__name__}.{module.name}"))
        found += [kind for kind in members.values() if _is_advantage(kind) and kind.__module__.endswith(module.name)]
    return found
''', '''    return [kind for kind in kinds_of(room, Advantage) if _is_advantage(kind)]
'''), ("import importlib\nimport pkgutil\n", ""), ("from tests.building import make_group\n", "from tests.building import make_group\nfrom tests.rooms import kinds_of\n"))
sub("tests/filter/gates/test_every_gate.py",
    ('''    found = []
    for module in pkgutil.iter_modules(room.__path__):
        members = vars(importlib.import_module(f"{room.__name__}.{module.name}"))
        found += [kind for kind in members.values() if is_dataclass(kind) and kind.__module__.endswith(module.name)]
    return [kind for kind in found if isinstance(kind, type) and "__call__" in vars(kind)]
''', '''    return [kind for kind in kinds_of(room, Gate) if is_dataclass(kind) and "__call__" in vars(kind)]
'''), ("import importlib\nimport pkgutil\n", ""), ("from tests.building import make_group\n", "from tests.building import make_group\nfrom tests.rooms import kinds_of\n"))
sub("tests/training/losses/test_robust.py",
    ('''    for module in pkgutil.walk_packages(strop.training.losses.__path__, f"{strop.training.losses.__name__}."):
        found = importlib.import_module(module.name)
''', '''    for found in modules_of(strop.training.losses):
'''), ("import importlib\n", ""), ("import pkgutil\n", ""),
    ("from tests.building import Said, make_batch\n", "from tests.building import Said, make_batch\nfrom tests.rooms import modules_of\n"))
sub("tests/filter/rewards/test_inner_marks.py",
    ('''    for found in pkgutil.iter_modules(strop.filter.rewards.__path__):
        module = importlib.import_module(f"strop.filter.rewards.{found.name}")
        for kind in (each for each in vars(module).values() if isinstance(each, type) and is_dataclass(each)):
            if any(field.name in ("inner", "judge") and field.type == "Reward" for field in fields(kind)):
                asking.append(kind)
''', '''    for kind in (each for each in kinds_of(strop.filter.rewards, Reward) if is_dataclass(each)):
        if any(field.name in ("inner", "judge") and field.type == "Reward" for field in fields(kind)):
            asking.append(kind)
'''), ("import importlib\n", ""), ("import pkgutil\n", ""),
    ("from tests.building import make_group\n", "from tests.building import make_group\nfrom tests.rooms import kinds_of\n"))
sub("tests/control/test_stopped_with_many_tasks.py",
    ('''def mechanisms(room: str) -> Iterator[Any]:
    package = importlib.import_module(f"strop.control.{room}")
    for each in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{each.name}")
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
            if is_own and {Sampler, Budget, Belief} & set(kind.__mro__):
                yield kind
''', '''def mechanisms(room: ModuleType, role: type[Any]) -> list[Any]:
    return [kind for kind in kinds_of(room, role) if is_dataclass(kind)]
'''),
    ('mechanisms("budgets")', 'mechanisms(budgets, Budget)'), ('mechanisms("estimators")', 'mechanisms(estimators, Belief)'), ('mechanisms("samplers")', 'mechanisms(samplers, Sampler)'),
    ("import importlib\nimport json\nimport pkgutil\n", "import json\n"), ("from collections.abc import Callable, Iterator\n", "from collections.abc import Callable\n"),
    ("from pathlib import Path\nfrom typing import Any\n", "from pathlib import Path\nfrom types import ModuleType\nfrom typing import Any\n"),
    ("from strop.control.estimators.pass_rate_counts import Counts\n", "from strop.control import budgets, estimators, samplers\nfrom strop.control.estimators.pass_rate_counts import Counts\n"),
    ("from tests.building import turn\n", "from tests.building import turn\nfrom tests.rooms import kinds_of\n"))

sub("strop/catalogue/fields.py",
    ('"""A recipe\'s own parameters; one without a comment has that of the field of the same name in a part it imports."""\n    inside = {field.name: field.comment for field in imported_fields(path) if field.comment}\n',
     '"""A recipe\'s own parameters; one without a comment has that of the field of the same name in a part of it."""\n    fields = [*imported_fields(path), *own_fields(path)]\n    inside = {field.name: field.comment for field in fields if field.comment}\n'),
    ('def imported_fields(path: Path,', '''def own_fields(path: Path) -> list[WrittenField]:
    """The fields of every class of a file, and of the other files of a paper's folder."""
    files = sorted(path.parent.glob("*.py")) if path.stem == "__init__" else [path]
    kinds = [(each, node.name) for each in files for node in ast.parse(each.read_text()).body if isinstance(node, ast.ClassDef)]
    return [field for each, name in kinds for field in class_fields(each, name)]


def imported_fields(path: Path,'''),
)
sub("strop/catalogue/pages.py",
    ("    for module in paper.mechanisms:\n        lines += _mechanism(module, package, root) if module not in paper.recipes else []\n",
     "    for module in paper.mechanisms:\n        lines += _mechanism(module, package, root) if module not in paper.recipes else _own(module, package, root)\n"),
    ("def _table(title: str,", '''def _own(module: str, package: Path, root: str) -> list[str]:
    """The mechanisms that stand in a recipe's own file or folder."""
    home = _file(module, package)
    lines: list[str] = []
    for path in sorted(home.parent.glob("*.py")) if home.stem == "__init__" else [home]:
        name = str(path.relative_to(package.parent))
        for kind in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
            if _is_dataclass(kind) and not kind.name.startswith("_"):
                said = (ast.get_docstring(kind) or "").replace("\\n\\n", " ").replace("\\n", " ")
                lines += [f"## [{name}]({root}{name}): {kind.name}", said, "", *_table("", class_fields(path, kind.name))]
    return lines


def _table(title: str,'''),
)
sub("tests/catalogue/test_pages.py", ('"losses/nft.py"', '"objective/nft.py"'))
sub("tests/training/advantages/test_every_advantage.py",
    ("    return [kind for kind in kinds_of(room, Advantage) if _is_advantage(kind)]\n",
     "    return [kind for kind in kinds_of(room, Advantage) if _is_advantage(kind) and kind.__name__ not in BY_TURN]\n"),
    ("REQUIRED: dict", 'BY_TURN = {"AlsoBest", "ExponentialWeights", "HardFiltered", "JudgedAndHinted", "StepAndEpisode"}  # these need pay for turns\nREQUIRED: dict'))

sub("strop/observe/health/optimization.py", ('    files = sorted((PACKAGE / "training").rglob("*.py"))\n', '    files = sorted(path for room in ("training", "recipes") for path in (PACKAGE / room).rglob("*.py"))\n'))
