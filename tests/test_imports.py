"""Imports point one way: types <- roles <- mechanisms <- pipeline <- run <- recipes <- command."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "strop"

# a module may import from its own layer's support and from any layer above it in this list, never from one below
LAYERS = [
    ["errors", "types", "catalogue", "concurrency", "text"],
    ["stats"],
    ["success"],
    ["backends"],
    ["roles"],
    ["capabilities"],
    ["workers"],
    ["sandbox"],
    ["kernels"],
    ["models"],
    ["weights"],
    ["storage"],
    ["generate", "environments", "filter", "control", "replay", "training", "observe", "placement", "standins"],
    ["evaluation"],
    ["run_state"],
    ["pipeline"],
    ["run"],
    ["attack"],
    ["launch"],
    ["recipes", "pocket"],
    ["effects", "simulate"],
    ["api"],
    ["cli", "__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# rooms full of mechanisms: a file here never imports another file of any such room
ROOMS = {
    "generate/llm_clients", "generate/agents", "generate/strategies", "filter/rewards", "filter/gates",
    "control/samplers", "control/estimators", "control/budgets", "control/admission", "control/task_generators",
    "replay", "training/advantages", "training/advantages/steps", "training/corrections", "training/losses",
    "training/losses/imitation", "training/losses/outside", "training/losses/preferences", "training/reductions",
    "training/step_scales", "training/views", "weights/channels", "observe/health",
}  # fmt: skip


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Modules of strop that a file imports when it runs; imports for types alone do not count."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "strop":
            if node.module == "strop":
                yield from (f"strop.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "strop")


def layer_of(dotted: str) -> int:
    return LEVEL[dotted.split(".")[1]]


def test_every_module_has_a_layer() -> None:
    names = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in modules()} - {"__init__"}
    assert names <= set(LEVEL), f"no layer for {names - set(LEVEL)}"


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        wrong += [f"{path.relative_to(PACKAGE)} imports {i}" for i in imported(path) if layer_of(i) > LEVEL[name]]
    assert not wrong, "\n".join(wrong)


def rooms() -> dict[str, dict[str, str]]:
    """Which top-level room imports from which other one, each with a file that does."""
    found: dict[str, dict[str, str]] = {}
    for path in modules():
        inside = str(path.relative_to(PACKAGE))
        room = inside.split("/", maxsplit=1)[0].removesuffix(".py")
        for name in imported(path):
            other = name.split(".")[1]
            if other != room:
                found.setdefault(room, {})[other] = f"{inside} imports {name}"
    return found


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Nodes that lead back to the first of them, or none: what is left when whoever leads nowhere is taken away."""
    left = {node: set(others) for node, others in graph.items()}
    while ends := [node for node, others in left.items() if not others & left.keys()]:
        for node in ends:
            del left[node]
    path = list(left)[:1]
    while path and len(set(path)) == len(path):
        path.append(min(left[path[-1]] & left.keys()))
    return path[path.index(path[-1]) : -1] if path else []


def test_a_circle_is_found() -> None:
    assert circle({"a": "b", "b": "cd", "c": "d", "d": ""}) == []
    assert sorted(circle({"a": "b", "b": "cd", "c": "x", "d": "b", "x": ""})) == ["b", "d"]
    assert circle({"a": "a"}) == ["a"]


def test_no_rooms_import_each_other_in_a_circle() -> None:
    graph = rooms()
    found = circle(graph)
    steps = zip(found, [*found[1:], *found[:1]], strict=True)
    assert not found, "\n".join(graph[room][other] for room, other in steps)


def test_a_mechanism_never_imports_a_sibling() -> None:
    assert not [room for room in ROOMS if not (PACKAGE / room).is_dir()], "no longer there"
    wrong = []
    for path in modules():
        room = str(path.parent.relative_to(PACKAGE))
        if room not in ROOMS:
            continue
        for name in imported(path):
            other = name.removeprefix("strop.").rpartition(".")[0].replace(".", "/")
            if other in ROOMS:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_heavy_imports_stand_where_they_are_needed() -> None:
    """Importing the words of the house loads no torch: reward workers start with them."""
    for name in ("types", "roles/pipeline_roles", "roles/compute", "capabilities", "errors", "storage/ledger/ledger"):
        text = (PACKAGE / f"{name}.py").read_text()
        tree = ast.parse(text)
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        names = {a.name for n in top if isinstance(n, ast.Import) for a in n.names}
        names |= {str(n.module) for n in top if isinstance(n, ast.ImportFrom)}
        assert not any(n.split(".")[0] in {"torch", "transformers", "ray", "vllm"} for n in names), name
