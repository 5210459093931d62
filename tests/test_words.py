"""Words of the design before this one, which the field does not use: none is left in strop/, help, messages and docs.

`python -m tests.test_words` prints each use that no row explains, and how many there are of each word. Words that
are everyday English too are looked for where they had a meaning of their own.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TEXTS = (".py", ".md", ".c", ".h", ".js", ".css")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_CORE = r"strop/(types|pipeline|run|run_state|roles/|filter/gates|control/|replay/|evaluation|observe/health)"


class Old(NamedTuple):
    """Word that was replaced, where it had that meaning, and what else it may mean there: patterns of lines."""

    new: str
    where: str = ""
    other: str = r"$^"


OLD = {
    "attempt": Old("rollout"),
    "trajectory": Old(
        "rollout",
        other=r"[Tt]rajectory ?[Bb]alance|[Uu]nmasking traj|trajectory-level|(recorded|earlier|reads) trajectories"
        r"|\"trajectory\"",  # a field of verifiers
    ),
    "reply": Old("completion"),
    "world": Old(
        "environment", other=r"[Ww]orld.?[Mm]odel|[A-Z]\w*World|RLVR|rlvr|realworld|world_size|world\|env|real world"
    ),
    "credit": Old("advantage"),
    "chance": Old(
        "probability",
        other=r"by.chance|beyond.chance|not chance|to chance|is chance|out chance|chance has no part",
    ),
    "figure": Old("metric", r"strop/(?!observe/report)|docs/", other=r"<figure|figure p?\{"),
    "mark": Old(
        "score",
        r"strop/(?!observe/|attack/|models/|kernels/)|docs/",
        other=r"[Mm]arked [A-Za-z]|marks (it|that)|fanotify|byte order|of direction|not mark|quotation",
    ),
    "belief": Old("pass-rate estimator"),
    "foresee": Old("predict"),
    "foresight": Old("prediction"),
    "foretell": Old("predict"),
    "writer": Old("task generator", other=r"(Stream|Summary|Parquet|GGUF)Writer|_writer\b"),
    "pace": Old("admission"),
    "adviser": Old("LLM client"),
    "advice": Old("answer of an LLM client", other=r"_ADVICE|MADV"),
    "voice": Old("policy"),
    "family": Old("comparison group", _CORE),
    "note": Old("policy statistic", r"strop/(types|roles/|run_state|training/|generate/engines/d|generate/group)"),
    "quick": Old("fast", r"strop/(training/machine/(f|l)|generate/engines/cpu/(b|c|f)|models/|launch/)"),
    "product": Old("matmul precision", other=r"^(?!.*\bproducts=)"),
    "box": Old("sandbox", r"strop/(sandbox|environments/code|environments/tools|workers|serve|attack/c)"),
    "wall": Old("sandbox, isolation", other=r"wall.clock|wall.time"),
    "verdict": Old("gate result, health finding", _CORE, other=r"strop/control/task_generators"),
    "doubt": Old("warning"),
    "ability": Old("capability"),
    "lent": Old("writable, shared"),
    "stranger": Old("unused user, unknown client"),
    "shelf": Old("category, arm, index of runs"),
    "saying": Old("forced completion", r"strop/generate/"),
}
_FORMS = {"trajectories": "trajectory", "replies": "reply", "families": "family", "abilities": "ability"}
_FORMS |= {"shelves": "shelf", "boxes": "box", "foresees": "foresee", "foreseen": "foresee", "foretold": "foretell"}
_FORMS |= {"marked": "mark", "credited": "credit"}
_TITLES = re.compile(r"^Title: |^\*.*arXiv|^\| \[|\(\d{4}\.\d{5}")  # of papers, whose words are theirs


class Use(NamedTuple):
    """Where an old word stands."""

    word: str
    file: str
    number: int
    line: str


def uses(root: Path = ROOT) -> Iterator[Use]:
    """All uses that mean what they meant."""
    files = [*(root / "strop").rglob("*"), *(root / "docs").rglob("*"), root / "README.md", root / "CONTRIBUTING.md"]
    for path in sorted(path for path in files if path.suffix in TEXTS):
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word in sorted(old_words(line)):
                if (
                    re.match(OLD[word].where, name)
                    and not _TITLES.search(line)
                    and not re.search(OLD[word].other, line)
                ):
                    yield Use(word, name, number, line.strip())


def old_words(line: str) -> set[str]:
    """Words of the table, as words and as parts of identifiers, in singular or plural."""
    parts = {part.lower() for part in _PART.findall(line)}
    return {word for part in parts for word in (_FORMS.get(part, part), part.removesuffix("s")) if word in OLD}


def test_no_old_word_is_left() -> None:
    left = [f"{use.file}:{use.number}: {use.word} -> {OLD[use.word].new}: {use.line}" for use in uses()]
    assert not left, "\n".join(left[:20])


def test_an_old_word_is_found_in_names_and_in_prose(tmp_path: Path) -> None:
    assert old_words("def best_attempts(replies: Replies) -> CreditBook:") == {"attempt", "reply", "credit"}
    assert old_words("The sandboxed noteworthy worlds") == {"world"}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("Two worlds.\nWorld models.\n")
    for name in ("README.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("`products=fp8` by an adviser\n")
    assert [use.word for use in uses(tmp_path)] == ["adviser", "product", "adviser", "product", "world"]


if __name__ == "__main__":
    found = list(uses())
    for each in found:
        print(f"{each.file}:{each.number}: {each.word}: {each.line[:100]}")
    print(Counter(use.word for use in found), file=sys.stderr)
