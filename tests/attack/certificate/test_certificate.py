"""The certificate finds what is broken on purpose, and nothing where nothing is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from strop.attack.certificate.certificate import Certificate, CheckResult
from strop.attack.certificate.certificate_page import page
from strop.attack.certificate.certify import certified
from strop.attack.spellings import executed, mutations
from strop.cli.commands.attack import certify as certify_words
from strop.cli.commands.attack import rewards_of as attacks_on
from strop.environments.bundled.programs import Programs
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.environments import bundled_envs
from strop.roles import Environment, Reward
from tests.attack.sums import Sums

PLANTED = Path(__file__).parent / "planted.py"
Subject = tuple[Environment, tuple[Reward, ...]]


def rows(folder: Path, prompts: Callable[[int], str], answers: Callable[[int], str], count: int = 120) -> Table:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": prompts(n), "answer": answers(n)}) for n in range(count)))
    return Table(str(path), "text")


def letters(folder: Path) -> Table:
    """Answers that differ in case alone are different ones."""
    words = [f"{one}{other}" for one in "abcdXYZ" for other in "mnMN"]
    return rows(folder, lambda n: f"code {n}?", lambda n: words[n % len(words)])


FUNCTIONS = (
    *("accepts_everything", "ignores_the_answer", "at_random", "now_and_then_at_random", "hangs", "reads_heldout_rows"),
    *(
        "substring",
        "folds_case",
        "first_number",
        "last_number",
        "wide_tolerance",
        "evaluates",
        "pays_length",
        "pays_nan",
    ),
    *("negative_for_right", "drops_the_sign", "by_order", "by_company", "keeps_the_first_verdict", "by_the_clock"),
    *("remembers_what_was_said", "pays_the_prompt", "any_of_several", "pays_the_form", "breaks_on_unicode"),
    *("breaks_on_long_text", "pays_blanks", "prefix", "obeys", "anything_finite"),
)
ENVS: dict[str, Callable[[Path], Environment]] = {
    "leaks_the_answer": lambda folder: Sums(leaks=True),
    "heldout_rows_are_trained_on": lambda folder: Sums(shares=True),
    "rows_repeat": lambda folder: rows(
        folder, lambda n: f"{n % 40}+ 1?" if n % 2 else f"{n % 40}+  1?", lambda n: str(n % 40 + 1)
    ),
    "one_answer_dominates": lambda folder: rows(folder, lambda n: f"is {n} odd?", lambda n: "no" if n % 30 else "yes"),
    "rows_contradict": lambda folder: rows(folder, lambda n: f"what is {n % 60}?", lambda n: str(n)),
}
BY_WARNING = ("last_number", "rows_repeat", "one_answer_dominates")


def planted(name: str, folder: Path) -> Subject:
    if name in ENVS:
        return ENVS[name](folder), (Earned(),)
    if name == "reads_heldout_rows":
        env: Environment = Sums()
        told = [env.task(n, heldout=True).messages[0].content for n in range(60)]
        copy = folder / "planted.py"
        copy.write_text(PLANTED.read_text())
        (folder / "planted_rows.jsonl").write_text("\n".join(told))
        return env, (PythonFunction(f"{copy}:{name}"),)
    env = letters(folder) if name == "folds_case" else Sums()
    return env, (PythonFunction(f"{PLANTED}:{name}"),)


def certify(env: Environment, rewards: tuple[Reward, ...], completions: int = 110, seconds: float = 2.0) -> Certificate:
    return asyncio.run(certified("test", rewards, env, completions, 0, seconds))


def told(found: Certificate) -> str:
    return "; ".join(f"{name}: {each.text}" for name, each in (*found.faults, *found.warnings))


@pytest.mark.slow
def test_of_planted_faults_nearly_all_are_found(tmp_path: Path) -> None:
    """Each is a fault of the verdict, but for three that may be meant and are warned of."""
    names, missed = (*FUNCTIONS, *ENVS), []
    for name in names:
        (folder := tmp_path / name).mkdir()
        found = certify(*planted(name, folder))
        print(f"{name}: {told(found)}")
        if not (found.warnings if name in BY_WARNING else found.faults):
            missed.append(name)
    assert len(names) >= 30 and len(missed) <= 2, missed


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(bundled_envs()))
def test_bundled_episodes_are_certified(name: str) -> None:
    env = bundled_envs()[name](2)
    found = certify(env, rewards_of(env), seconds=5.0)
    assert found.is_passed and not found.warnings, told(found)


def rewards_of(env: Environment) -> tuple[Reward, ...]:
    if isinstance(env, Programs):
        return (PassedTests(),)
    return (Earned(),) if env.pays else (Checked((env,)),)


# ---- the command, its files, and parts of it by hand


def test_the_command_writes_a_page_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify_words(["arithmetic:2"], (), (22, 0, 5.0), tmp_path) == 0
    assert "arithmetic:2: pass, 0 faults, 0 warnings" in capsys.readouterr().out
    plain = json.loads((tmp_path / "certificate-arithmetic-2.json").read_text())
    assert (plain["verdict"], plain["faults"], plain["episode"]) == ("pass", 0, "arithmetic:2")
    checks = {each["name"]: each for each in plain["checks"]}
    assert checks["constant completions"]["tried"] >= 1000 and checks["hostile programs"]["left_out"]
    assert all(each["tried"] or each["left_out"] for each in plain["checks"]), "what was not tried says why"
    page = (tmp_path / "certificate-arithmetic-2.html").read_text()
    assert "<script" not in page and all(name in page for name in checks)


def test_a_fault_is_named_and_the_exit_code_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify_words([f"{PLANTED}:substring"], ["arithmetic:3"], (22, 0, 5.0), tmp_path) == 1
    told = capsys.readouterr().out
    assert "fault, answers that are nearly right: a digit before it" in told
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["verdict"] == "fail"


def test_what_a_task_wrote_is_escaped_on_the_page() -> None:
    check = CheckResult("<b>", 1, what="<i>")
    check.fault("<script>1</script>", "<img src=x>")
    told = page(Certificate("<s>", "<w>", ("<r>",), "0", 0, 1.0, [check]))
    assert not [mark for mark in ("<script>1", "<img", "<b>&lt;", "<s>", "<w>", "<r>", "<i>") if mark in told]


@pytest.mark.parametrize("word", ["arithmetic:2", "reasoning_gym/gcd", "tasks.jsonl"])
def test_an_episode_is_judged_by_itself(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text("\n".join(f'{{"prompt": "{n}+1?", "answer": "{n + 1}"}}' for n in range(20)))
    ((env, rewards),) = attacks_on(word, {}, [])
    assert rewards == ((Earned(),) if env.pays else (Checked((env,)),))
    with pytest.raises(ConfigurationError, match="is an environment"):
        attacks_on(word, {"weight": "2"}, [])


def test_a_programs_certificate_tries_hostile_programs() -> None:
    found = certify(Programs(1), (PassedTests(),), completions=11, seconds=5.0)
    checks = {each.name: each for each in found.checks}
    assert found.is_passed, told(found)
    assert checks["hostile programs"].tried > 20 and checks["answers that are nearly right"].left_out


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ("14", "one more", "15"),
        ("-14", "sign flipped", "14"),
        ("14", "1% more", "14.14"),
        ("3.5", "last digit dropped", "3"),
        ("blue", "first half", "bl"),
    ],
)
def test_mutations_by_hand(answer: str, kind: str, text: str) -> None:
    assert dict(mutations(answer))[kind] == text


def test_what_does_not_change_a_number_is_no_mutation() -> None:
    assert "last digit dropped" not in dict(mutations("-48.00")) and "ten times" not in dict(mutations("0"))


def test_code_gives_the_answer_only_to_whoever_runs_it() -> None:
    for answer in ("14", "-3", "ab c"):
        assert answer not in executed(answer) and str(eval(executed(answer))) == answer
