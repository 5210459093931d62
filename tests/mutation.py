"""Would a test notice? Changes one thing at a time in a copy of the project and runs the tests that are about it.

    python -m tests.mutation --room losses --seed 0 --number 60          one room
    python -m tests.mutation --room all --number 40 --jobs 2 --json      40 mutants of every room, as one JSON object
    python -m tests.mutation --file strop/recipes/objective/nft.py            every mutant of one file
    python -m tests.mutation --key pcl --key v0.5 --number 12               of papers' mechanisms and recipes
    python -m tests.mutation --key control --number 12                      of each key about control (or: generate)

Which mutants are taken depends on the seed and on the mutants themselves, so that a change in one file does not choose
others elsewhere. A mutant is killed if a test fails or the tests hang. Those that change nothing anybody could observe
are listed with the reason in `tests/equivalent_mutants.json` and are not counted. The exit status is 1 below 95 %.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from strop.catalogue.papers import find_papers
from tests.mutations import changes, with_change

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.json"
ROOMS = {
    "losses": "strop/training/losses",
    "corrections": "strop/training/corrections",
    "reductions": "strop/training/reductions",
    "advantages": "strop/training/advantages",
    "values": "strop/training/values",
    "arithmetic": "strop/training/arithmetic",
    "gates": "strop/filter/gates",
    "recipes": "strop/recipes",
}
# papers about what is tried next, how much is spent on it and when it ends
CONTROL = (
    *("pcl", "dps", "vade", "dots-rr", "cures", "odf", "gain-rl", "sec", "dump", "adcl-egsr", "qwenlong-l1"),
    *("acereason-nemotron", "curr-reft", "dereason", "modomodo", "rag-rl", "drive", "1-shot-rlvr", "gdro", "clpo"),
    *("sws", "eva", "socratic-zero", "serl", "teams-rl", "webrl", "xrpo", "dars", "brorl", "v0", "v0.5", "arrol"),
    *("esrl", "s-grpo", "v-star", "bavt", "gvl", "dead-end"),
)
# papers about which rollouts are made, and what of them is kept and shown again
GENERATE = (
    *("arpo-agentic", "cosmos", "cpl", "cure", "deepsearch", "dr-po", "echo-ec", "ettrl", "latr"),
    *("parallel-r1", "r3", "r3l", "rex-rag", "rlgf", "satori", "scope", "semi-offline", "ead", "nudgerl"),
    *("agent-rlvr", "amft", "ampo", "ghpo", "guide", "pta-grpo", "relift", "ruscarl", "seele", "thinktuning"),
    *("arpo-gui", "contextevolve", "core", "evolving-rl", "hir", "lightsearcher", "recap", "remix", "rlep"),
    *("rtv-pdr", "sage-abstraction", "sage-skills", "slea-rl", "spear", "xskill", "behavior-injection"),
    *("hawkeye", "octothinker", "synergy-dilemma", "teacher-hacking", "ton"),
)
# what is asked of each recipe alone, by its name
OF_A_RECIPE = (
    "tests/recipes/test_parts.py::test_every_recipe_is_made_of_its_parts",
    "tests/recipes/test_devices.py::test_every_part_computes_where_the_setting_says",
)
LEAST = 0.95  # of the mutants must be killed
# imported once before forking: it takes longer than most tests
WARM = (
    "torch",
    "transformers",
    "transformers.models.llama.modeling_llama",
    "hypothesis",
    "pytest",
    "safetensors.torch",
)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `what` names it, whatever line it stands on; `index` is its number in the file."""

    path: str
    what: str
    index: int
    line: int


@dataclass(frozen=True)
class MutantResult:
    """What became of a mutant; `by` is the test that failed, or "" where none did."""

    mutant: Mutant
    by: str
    seconds: float


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a file; the same change in several places is told apart by a number."""
    seen: Counter[str] = Counter()
    found = []
    for index, change in enumerate(changes(ast.parse((ROOT / path).read_text()))):
        seen[change.what] += 1
        what = change.what if seen[change.what] == 1 else f"{change.what} #{seen[change.what]}"
        found.append(Mutant(str(path), what, index, change.line))
    return found


def files_of(room: str) -> list[Path]:
    found = sorted((ROOT / ROOMS[room]).rglob("*.py"))
    return [path.relative_to(ROOT) for path in found if path.name != "__init__.py"]


def files_of_keys(keys: Sequence[str]) -> dict[str, list[Path]]:
    """By paper: the files of its mechanisms and its recipes; "control" and "generate" stand for all that are."""
    many = {"control": CONTROL, "generate": GENERATE}
    wanted = [each for key in keys for each in many.get(key, (key,))]
    papers = {paper.key: paper for paper in find_papers()}
    if unknown := sorted(set(wanted) - papers.keys()):
        raise SystemExit(f"no paper is called {', '.join(unknown)}: see `strop papers`")
    modules = {key: dict.fromkeys((*papers[key].mechanisms, *papers[key].recipes)) for key in wanted}
    return {key: [path for each in found for path in _files_of_module(each)] for key, found in modules.items()}


def _files_of_module(name: str) -> list[Path]:
    """The file of a module, or all of a package."""
    place = Path(name.replace(".", "/"))
    return sorted(place.glob("*.py")) if (ROOT / place).is_dir() else [place.with_suffix(".py")]


def chosen(files: Sequence[Path], seed: int, number: int) -> list[Mutant]:
    """The first `number` mutants of these files in an order that only the seed and each mutant itself decide."""
    known = equivalents()
    everything = [m for path in files for m in mutants_of(path) if m.what not in known.get(m.path, {})]
    return sorted(everything, key=lambda m: hashlib.sha256(f"{seed} {m.path} {m.what}".encode()).digest())[:number]


def equivalents() -> dict[str, dict[str, str]]:
    """By file: mutants nobody could tell from the original, with the reason."""
    found: dict[str, dict[str, str]] = json.loads(EQUIVALENT.read_text())
    return found


@cache
def texts_of_tests() -> dict[Path, str]:
    """All of them with their texts, read once: to read them for each module would take longer than its mutants."""
    return {test: test.read_text() for test in sorted((ROOT / "tests").rglob("test_*.py"))}


def about(path: str) -> list[str]:
    """Test files about a module: those of its room that name it or what it defines, and any that walk the room.

    A test walks a room if it names the package and nothing of it. A test elsewhere counts if it bears the module's
    name, or if no test of the room names it; those that only use a mechanism say little about it and take long. A
    recipe is its parts, and what is said of it by name.
    """
    if Path(path).parts[:2] == ("strop", "recipes") and len(Path(path).parts) == 4:
        return about_recipe(Path(path).stem)
    module, stem = path.removesuffix(".py").replace("/", "."), Path(path).stem
    room = next((folder for folder in ROOMS.values() if path.startswith(folder)), str(Path(path).parent))
    body = ast.parse((ROOT / path).read_text()).body
    names = [node.name for node in body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    names_it = re.compile(rf"\b({'|'.join(map(re.escape, [module, *names]))})\b")
    walks = re.compile(rf"(?<!from )\b{re.escape(room.replace('/', '.'))}(?![\w.])")
    home = ROOT / room.replace("strop", "tests", 1)
    texts = texts_of_tests()
    naming = {test for test, text in texts.items() if names_it.search(text)}
    found = {test for test in naming if home in test.parents or stem in test.stem} or naming
    found |= {test for test, text in texts.items() if walks.search(text)}
    return [str(test.relative_to(ROOT)) for test in sorted(found)]


def about_recipe(name: str) -> list[str]:
    """What is asked of each recipe, of this one alone; and test files that build it, by name or imported."""
    home, imports = ROOT / "tests" / "recipes", re.compile(rf"from strop\.recipes\.\w+\.{name} import")
    texts = texts_of_tests()
    naming = [
        test
        for test, text in texts.items()
        if imports.search(text) or (test.parent == home and f'recipe_named("{name}")' in text)
    ]
    return [*(f"{test}[{name}]" for test in OF_A_RECIPE), *(str(test.relative_to(ROOT)) for test in naming)]


class FirstFailure:
    """Remembers which test failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (import)"


def run_tests(tests: Sequence[str], seconds: float, project: Path) -> str:
    """The name of the first test that fails, in a process forked from this one; "" if all pass."""
    told = project / "first_failure"
    told.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _be_tested(tests, project, told)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            passed = os.waitstatus_to_exitcode(status) == 0
            return "" if passed else (told.read_text() if told.exists() else "the process died")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"hangs ({seconds:.0f} s)"


def _be_tested(tests: Sequence[str], project: Path, told: Path) -> None:
    """Run pytest in the copy and end this process; nothing of the original may be imported."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(project)
    for name in [name for name in sys.modules if name.split(".")[0] in ("strop", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, str(project))
    import pytest

    failure = FirstFailure()
    options = ["-x", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    status = int(pytest.main([*options, *tests], plugins=[failure]))
    if status:
        told.write_text(failure.name or f"pytest ended with {status}")
    os._exit(min(status, 1))


class Workplace:
    """One process's own copy of the project."""

    project: Path

    @classmethod
    def open(cls, scratch: str) -> None:
        cls.project = Path(tempfile.mkdtemp(dir=scratch))
        left_out = shutil.ignore_patterns(".git", ".venv*", "runs", "*.egg-info", "__pycache__", "results")
        shutil.copytree(ROOT, cls.project, ignore=left_out, dirs_exist_ok=True)
        os.environ["PYTHONPATH"] = str(cls.project)
        for name in WARM:
            importlib.import_module(name)


def untouched(test: str, seconds: float) -> tuple[str, str, float]:
    """How a test file fares without any change, and how long it takes; compiles what it imports on the way."""
    begun = time.monotonic()
    failure = run_tests([test], seconds, Workplace.project)
    return test, failure, time.monotonic() - begun


def judged(mutant: Mutant, tests: Sequence[str], seconds: float) -> MutantResult:
    """Write a mutant into the copy, run its tests and put the file back."""
    place = Workplace.project / mutant.path
    source = place.read_text()
    before = place.stat()
    begun = time.monotonic()
    sys.dont_write_bytecode = True  # or the original's compiled file would be replaced by the mutant's
    place.write_text(with_change(source, mutant.index))
    try:
        return MutantResult(mutant, run_tests(tests, seconds, Workplace.project), time.monotonic() - begun)
    finally:
        place.write_text(source)
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def judge_all(mutants: Sequence[Mutant], jobs: int, slow: float) -> Iterator[MutantResult]:
    """Every mutant's verdict as it comes; test files that fail or are slow without a change are left out and named."""
    tests = {path: about(path) for path in sorted({mutant.path for mutant in mutants})}
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as scratch,
        ProcessPoolExecutor(jobs, context, Workplace.open, (scratch,)) as pool,
    ):
        files = sorted({test for each in tests.values() for test in each})
        fared = {test: (failure, took) for test, failure, took in pool.map(untouched, files, [slow] * len(files))}
        for test, (failure, _) in fared.items():
            if failure:
                print(f"left out {test}: {failure} without any change", file=sys.stderr, flush=True)
        plans = []
        for mutant in mutants:
            plan = [test for test in tests[mutant.path] if not fared[test][0]]
            plan.sort(key=lambda test: fared[test][1])
            plans.append((mutant, plan, 20 + 4 * sum(fared[test][1] for test in plan)))
        yield from pool.map(judged, *zip(*plans, strict=True))


def report(verdicts: Sequence[MutantResult], as_json: bool) -> float:
    survivors = [verdict.mutant for verdict in verdicts if not verdict.by]
    ratio = 1 - len(survivors) / max(len(verdicts), 1)
    if as_json:
        killed = [asdict(verdict) for verdict in verdicts if verdict.by]
        metrics = {"ratio": ratio, "mutants": len(verdicts), "killed": len(killed), "by": killed}
        print(json.dumps(metrics | {"survivors": [asdict(mutant) for mutant in survivors]}, indent=1))
    else:
        for mutant in survivors:
            print(f"SURVIVED {mutant.path}:{mutant.line}  {mutant.what}")
        print(f"{len(verdicts) - len(survivors)} of {len(verdicts)} mutants killed ({ratio:.1%})")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", default=[], choices=[*ROOMS, "all"])
    parser.add_argument("--file", action="append", default=[], type=Path, help="every mutant of this file")
    parser.add_argument(
        "--key", action="append", default=[], help="of this paper's mechanisms and recipes; or: control, generate"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=60, help="mutants of each room or key")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--slow", type=float, default=60, help="seconds after which a test file is left out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    told = parser.parse_args()
    rooms = list(ROOMS) if "all" in told.room or not (told.room or told.file or told.key) else told.room
    mutants = [mutant for room in rooms for mutant in chosen(files_of(room), told.seed, told.number)]
    mutants += chosen(told.file, told.seed, sys.maxsize)
    for files in files_of_keys(told.key).values():
        mutants += chosen(files, told.seed, told.number)
    verdicts = []
    for verdict in judge_all(list(dict.fromkeys(mutants)), told.jobs, told.slow):
        verdicts.append(verdict)
        mutant = verdict.mutant
        line = f"{mutant.path}:{mutant.line}  {mutant.what}"
        print(f"{verdict.seconds:5.1f} s  {line}  {verdict.by or 'SURVIVED'}", file=sys.stderr, flush=True)
    return int(report(verdicts, told.json) < LEAST)


if __name__ == "__main__":
    sys.exit(main())
