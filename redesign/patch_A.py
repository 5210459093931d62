"""What stage A needs beside moves: said once, applied by replacement, and reported where the text is no longer there."""
import re, sys
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

# imports and layers
sub("tests/test_imports.py",
    ('    ["errors", "types", "catalogue"],\n    ["machines"],\n    ["roles"],\n    ["abilities"],\n    ["processes"],\n',
     '    ["errors", "types", "catalogue", "concurrency", "text"],\n    ["stats"],\n    ["success"],\n    ["backends"],\n    ["roles"],\n    ["capabilities"],\n    ["workers"],\n    ["sandbox"],\n'),
    ('    ["disk"],\n', '    ["storage"],\n'),
    ('"observe", "placement"],\n', '"observe", "placement", "standins"],\n'),
    ('    ["progress"],\n', '    ["run_state"],\n'), ('    ["start"],\n', '    ["launch"],\n'), ('    ["face"],\n', '    ["api"],\n'),
    ('"roles", "abilities", "errors"', '"roles", "capabilities", "errors"'),
)
sub("strop/recipes/environments.py",
    ("from strop import environments\nfrom strop.environments import bundled\n", "from strop.environments import bundled\n"),
    ("_PLACES = (environments, bundled)\n", ""),
    ('sorted(each.name for place in _PLACES for each in pkgutil.iter_modules(place.__path__))', 'sorted(each.name for each in pkgutil.iter_modules(bundled.__path__))'),
    ('    paths = (f"{place.__name__}.{name}" for place in _PLACES if name.isidentifier())\n    found = next((path for path in paths if find_spec(path)), None)\n    if found is None:\n        return None\n    module = importlib.import_module(found)\n',
     '    if not name.isidentifier() or not find_spec(path := f"{bundled.__name__}.{name}"):\n        return None\n    module = importlib.import_module(path)\n'),
)
sub("pyproject.toml", ('"programs/*.py"', '"example_clients/*.py"'))
sub("strop/generate/agents/external_program.py", ('"serve" / "programs")', '"serve" / "example_clients")'))
sub("strop/cli/__init__.py",
    ("from strop.cli import experiments as trials  # noqa: E402\nfrom strop.cli import run_outputs as outputs  # noqa: E402 (help",
     "from strop.cli import experiments, run_outputs  # noqa: E402, F401 (help"),
    ("from strop.cli import experiments as trials, run_outputs as outputs  # noqa: E402, F401 (help",
     "from strop.cli import experiments, run_outputs  # noqa: E402, F401 (help"))
sub("tests/catalogue/test_fields.py",
    ('"from strop.environments.wrappers.wrong_controls import Miskeyed\\nclass Thing(Miskeyed):\\n    tasks: int = 3  # fewer\\n"',
     '"from strop.environments.wrappers.wrong_controls import Miskeyed\\n"\n        "class Thing(Miskeyed):\\n    tasks: int = 3  # fewer\\n"'))

sub("strop/roles.py", ("Those that do not leak (`control/task_generators/support/validation.py`)\n    go to the sampler.\n    \"\"\"", "Those that do not leak go to the sampler.\"\"\""))
sub("strop/types.py", ("    ratios: FloatArray | None = (\n        None  # [train] [N], policy / sampler before a step, where `training/verify_logprobs.py` looked\n    )\n",
    "    ratios: FloatArray | None = None  # [train] [N], policy / sampler before a step, see `training/verify_logprobs.py`\n"))
sub("tests/test_shape.py", ('len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES', 'len(list(PACKAGE.glob("[!_]*.py"))) <= MOST_MODULES'))

sub("tests/control/test_stopped_with_many_tasks.py", ('mechanisms("beliefs")', 'mechanisms("estimators")'))
sub("strop/cli/fields/named_parts.py",
    ('''def modules(room: ModuleType) -> list[str]:
    """The names of its files, those of rooms within it too."""
    return list(_files(room))


def _files(room: ModuleType) -> dict[str, str]:
    found = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    return {each.name.rpartition(".")[2]: each.name for each in found if not each.ispkg}
''', '''def modules(room: ModuleType, role: type[Any]) -> list[str]:
    """The names of its files and classes, those of rooms within it too, and of the parts that stand in a recipe."""
    return list(_by_class(room, role) | _files(room))


def _files(room: ModuleType) -> dict[str, str]:
    found = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    return {each.name.rpartition(".")[2]: each.name for each in found if not each.ispkg}


def _by_class(room: ModuleType, role: type[Any]) -> dict[str, str]:
    """Classes of this role in the room and in recipes, which are read and not imported, with their modules."""
    made = re.compile(rf"^class ([A-Z]\\w*)\\(.*\\b{role.__name__}\\b.*\\):$", re.MULTILINE)
    root, folders = PACKAGE.parent, (PACKAGE / "recipes", *map(Path, room.__path__))
    return {
        _snake(name): ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for name in made.findall(path.read_text())
    }


def _snake(word: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")
'''),
    ('''    file = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")
    if file not in (files := _files(room)):
        return None
    module = importlib.import_module(files[file])
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    return next(cast("type[Kind]", kind) for kind in kinds if role in kind.__mro__)
''', '''    file, classes = _snake(word), _by_class(room, role)
    if file not in (files := _files(room) | classes):
        return None
    module = importlib.import_module(files[file])
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    chosen = [kind for kind in kinds if role in kind.__mro__ and (file not in classes or _snake(kind.__name__) == file)]
    return cast("type[Kind]", chosen[0])
'''),
    ("from dataclasses import fields\nfrom types import ModuleType\n", "from dataclasses import fields\nfrom pathlib import Path\nfrom types import ModuleType\n"),
    ("import pkgutil\nimport typing\n", "import pkgutil\nimport re\nimport typing\n"),
    ("from strop.cli.fields.overrides import convert\n", "from strop.catalogue.record import PACKAGE\nfrom strop.cli.fields.overrides import convert\n"),
)
sub("strop/cli/commands/simulate.py", ("modules(samplers)", "modules(samplers, Sampler)"), ("modules(estimators)", "modules(estimators, Belief)"))
sub("strop/cli/commands/attack.py", ("modules(room)", "modules(room, Reward)"))

sub("tests/observe/test_verdicts.py", ('"observe" / "verdicts"', '"observe" / "health"'))
