"""The house stays readable: sizes of files, functions and folders, names, and parts asked by their protocols."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from strop.catalogue.record import records
from tests.catalogue.test_one_place import CLASSICS, why
from tests.import_graph import importers, modules, owners

PACKAGE = Path(__file__).parent.parent / "strop"
READ_FIRST = ("types.py", "pipeline.py", *(f"roles/{name}.py" for name in ("pipeline_roles", "compute", "extensions")))
MOST_TO_READ_FIRST, MOST_LINES, MOST_OF_A_FUNCTION, MOST_PARAMETERS = 950, 300, 46, 6
MOST_FILES, MOST_LOOSE, MOST_MODULES = 64, 12, 1000
SMALL, MOST_SMALL = 40, 0.2  # lines of a small file, and the share of them
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "handler", "factory"}

# options of commands and recipes apart: constructors, the fields of a row, and what transformers hands over
MANY = {"__init__", "rollout_of", "attend", "_attention", "grades"}

# Files that ask foreign objects by name, which have no protocol of ours; no part of a run is ever asked so.
FOREIGN = {
    "cli/fields/text_to_values.py": "types of the language",
    "storage/checkpoint.py": "exceptions of the language and of safetensors",
    "storage/named_files.py": "modules of the language",
    "environments/external/gymnasium.py": "numbers of numpy, or not",
    "filter/reward_values.py": "whatever a reward returned",
    "generate/engines/cpu/compiled_llama.py": "models of transformers",
    "generate/engines/paged/paged_llama.py": "models of transformers",
    "generate/engines/stops.py": "models of transformers",
    "generate/engines/vllm/vllm_request.py": "outputs of vLLM",
    "generate/templates/chat_template.py": "tokenizers and configurations of transformers",
    "models/layers/attention.py": "models of transformers",
    "models/layers/block.py": "models of transformers",
    "models/layers/mixers.py": "models of transformers",
    "models/layers/routers.py": "models of transformers",
    "models/loading/check_folder.py": "configurations of transformers",
    "models/model.py": "models of transformers",
    "observe/run_files/run_info.py": "syntax trees",
    "observe/live/stack_dump.py": "coroutines",
    "placement/place.py": "the operating system",
    "placement/process_engine.py": "weights in shared memory, or not",
    "placement/ray_engine.py": "exceptions of Ray",
    "workers/untrusted_answers.py": "types of the language",
    "launch/experiments/side_by_side.py": "the operating system",
    "training/batch.py": "fields that are tensors, without importing torch",
    "training/machine/memory.py": "configurations of transformers",
    "weights/mapped_memory.py": "the operating system",
}

# Modules that no other one imports, by the beginning of their name: where each comes from.
UNIMPORTED = {
    "strop.api": "names of the package itself, imported when they are asked for",
    "strop.__main__": "`python -m strop`",
    "strop.catalogue.__main__": "`python -m strop.catalogue`",
    "strop.pocket.make": "`python -m strop.pocket.make`",
    "strop.observe.health.": "rules of health, all of a folder",
    "strop.environments.bundled.": "environments, all of a folder: `env=`",
    "strop.effects.": "experiments, imported by those of effects/",
    "strop.workers.entry": "first module of every child process",
    "strop.environments.isolation.worker": "child process of an environment",
    "strop.filter.worker": "child process of rewards",
    "strop.generate.templates.template_process": "child process of chat templates",
    "strop.placement.engine_host": "child process of an engine",
    "strop.training.machine.rank": "child process of a trainer",
    "strop.generate.serve.sandbox_proxy": "program inside a sandbox",
    "strop.generate.serve.example_clients.": "programs that users copy",
    "strop.generate.engines.vllm.": "modules that vLLM imports in processes of its own",
    "strop.generate.engines.scripted": "engine of tests and benchmarks",
    "strop.generate.agents.wrong_demonstration_control": "control of effects",
    "strop.generate.strategies.random_pruning_control": "control of effects",
    "strop.generate.strategies.random_fork_control": "control of effects",
    "strop.generate.strategies.best_of_n": "classic, for evaluations",
    "strop.control.admission.exact_lag": "classic, for experiments on staleness",
    "strop.filter.rewards.math_verify": "reward that users choose",
    "strop.environments.tools.mcp": "tools that users choose",
    "strop.environments.tools.files": "tools that users choose",
}
NO_ROOMS = {"use", "docs", "gpu"}  # folders of tests about no one folder of the package


Trees = dict[Path, ast.Module]


@pytest.fixture(scope="module")
def everything() -> Trees:
    return {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


@pytest.fixture(scope="module")
def sources(everything: Trees) -> Trees:
    """Kernels left out."""
    return {path: tree for path, tree in everything.items() if path.parts[0] != "kernels"}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_what_is_read_first_is_short() -> None:
    lines = {name: (PACKAGE / name).read_text().count("\n") for name in READ_FIRST}
    assert sum(lines.values()) <= MOST_TO_READ_FIRST, lines


def test_few_files_few_loose_ones_few_small_ones(everything: Trees) -> None:
    found = [path for path in everything if not path.stem.startswith("__")]
    assert len(found) <= MOST_MODULES
    loose = Counter(str(path.parent) for path in found if len(path.parts) <= 2)
    assert not {stage: count for stage, count in loose.items() if count > MOST_LOOSE}
    small = [path for path in found if (PACKAGE / path).read_text().count("\n") < SMALL]
    assert len(small) <= MOST_SMALL * len(found), len(small)


def test_no_two_modules_of_a_stage_have_one_name(everything: Trees) -> None:
    """Kernels apart, where each name stands for one operation in torch, C and Triton; recipes in folders, too."""
    places: dict[tuple[str, str], list[Path]] = {}
    for path in everything:
        if path.parts[0] not in ("kernels", "recipes") and not path.stem.startswith("__"):
            places.setdefault((path.parts[0], path.stem), []).append(path)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_a_module_has_an_importer_or_a_reason() -> None:
    """What nothing imports is reached by a string, or not at all: no IDE and no type checker sees it."""
    packages = {name.rpartition(".")[0] for name in modules()}
    alone = [
        name
        for name, users in importers().items()
        if not users and name not in packages and not name.startswith("strop.recipes.")
    ]
    assert not [name for name in alone if not name.startswith(tuple(UNIMPORTED))]
    assert not [each for each in UNIMPORTED if not any(name.startswith(each) for name in alone)], "no longer needed"


def test_what_stands_in_a_room_has_two_users_or_is_a_classic() -> None:
    """What one paper alone uses stands in that paper's file or folder."""
    group = {record.key: record.group for record in records().values()}
    alone = {name: key for name, key in owners().items() if not name.startswith("strop.recipes.")}
    assert not {name: key for name, key in alone.items() if group[key] not in CLASSICS and not why(name)}


def test_tests_mirror_the_package() -> None:
    """A test stands in the folder of its subject, and one of a paper's parts in its class, under the recipe's name."""
    tests = Path(__file__).parent
    paths = sorted(path.relative_to(tests) for path in tests.rglob("test_*.py"))
    paths = [path for path in paths if path.parts[0] not in NO_ROOMS]
    assert not [path for path in paths if not (PACKAGE / path.parent).is_dir()], "no such folder in strop/"
    recipes = {(record.group, record.name) for record in records().values()}
    for path in (path for path in paths if path.parts[0] == "recipes" and len(path.parts) == 3):
        names = {name for group, name in recipes if group == path.parts[1]}
        assert path.stem.startswith(tuple(f"test_{name}" for name in names)), f"tests/{path}: of which recipe?"
    named = [path.relative_to(PACKAGE).with_suffix("") for path in modules().values()]
    for path in paths:
        subject = path.with_name(path.stem.removeprefix("test_"))
        if len(path.parts) > 1 and subject not in named and not (PACKAGE / subject).is_dir():
            other = [each for each in named if each.name == subject.name and each.parts[0] == path.parts[0]]
            assert not other, f"tests/{path} is about strop/{other[0]}.py: it belongs to tests/{other[0].parent}"


def test_files_are_short(sources: Trees) -> None:
    sizes = {str(path): (PACKAGE / path).read_text().count("\n") for path in sources}
    assert not {path: size for path, size in sizes.items() if size > MOST_LINES}


def test_no_file_holds_two_versions_of_itself() -> None:
    """What a merge that nobody finished leaves behind: a Makefile with it makes nothing, and no test says so."""
    root, marks = PACKAGE.parent, tuple(mark * 7 + " " for mark in "<>")
    folders = [root / name for name in ("strop", "tests", "docs", "benchmarks", "effects", ".ci")]
    found = [*root.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path for path in found if path.suffix in {"", ".py", ".md", ".toml", ".json", ".c"} and path.is_file()]
    torn = [path for path in texts if any(line.startswith(marks) for line in path.read_text().splitlines())]
    assert len(texts) > 1000 and not torn


def test_functions_are_short(sources: Trees) -> None:
    sizes = {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, tree in sources.items()
        for node in functions(tree)
    }
    assert not {name: size for name, size in sizes.items() if size > MOST_OF_A_FUNCTION}


def test_folders_are_small_and_files_have_names(everything: Trees) -> None:
    folders = [path for path in PACKAGE.rglob("*") if path.is_dir() and "__pycache__" not in path.parts]
    counts = {str(folder.relative_to(PACKAGE)): len(list(folder.glob("*.py"))) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}
    assert not [path for path in everything if path.stem in EMPTY_NAMES]


def test_parts_are_asked_by_their_protocols(sources: Trees) -> None:
    """A literal name behind getattr or hasattr hides a member from the type checker and from whoever wraps a part."""
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in sources.items()
        if str(path) not in FOREIGN
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
    ]
    assert not found, "\n".join(found)
    asked = {name for name in FOREIGN if Path(name) in sources and "attr(" in ast.unparse(sources[Path(name)])}
    assert set(FOREIGN) <= asked, f"no longer needed: {set(FOREIGN) - asked}"


def test_one_name_one_thing(everything: Trees) -> None:
    """A class name that stands for two things sends a reader to the wrong one, and imports need a second name."""
    places: dict[str, list[str]] = {}
    for path, tree in everything.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_few_parameters(sources: Trees) -> None:
    """A function that takes more does two things, or wants an object."""
    counts = {
        f"{path}:{node.lineno} {node.name}": len(node.args.args) + len(node.args.kwonlyargs) - _is_method(node)
        for path, tree in sources.items()
        for node in functions(tree)
        if path.parts[0] not in ("cli", "recipes") and node.name not in MANY
    }
    assert not {name: count for name, count in counts.items() if count > MOST_PARAMETERS}


def _is_method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return int(bool(node.args.args) and node.args.args[0].arg in ("self", "cls"))
