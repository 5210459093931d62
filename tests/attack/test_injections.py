"""Forty kinds of injection: a naive judge is caught, and one that obeys nothing within a fence pays none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from strop.attack.ask_rewards import AskedRewards
from strop.attack.certificate.attacked_tasks import Examined
from strop.attack.certificate.certificate import CheckResult
from strop.attack.checks.judge import judge as injections_into_a_judge
from strop.attack.hostile_completions import Target
from strop.attack.injected import InjectionStanding, asks_client, injected
from strop.attack.injections import KINDS, injection
from strop.environments.bundled.arithmetic import Arithmetic
from strop.filter.judges.checklist_items import SCORE
from strop.filter.rewards.from_environment import Earned
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.recipes.guide.ruscarl import RubricPoints
from strop.recipes.reward.rlsp import JudgedEffort
from strop.roles import Reward
from strop.standins.judges.outcomes import judged_rubric, written_rubric
from tests.generate.llm_clients.serving import serving

_SCORE = re.compile(r"score:?\s*\"?:?\s*(\d+)", re.IGNORECASE)


def code_of(prompt: str) -> str:
    found = re.search(r"`answer ([a-z]{6}):`", prompt)
    assert found is not None
    return found.group(1)


def outside(prompt: str) -> str:
    """What stands in no fence, found by a reader of its own."""
    code, kept, closing = code_of(prompt), list[str](), ""
    for line in prompt.splitlines():
        opened = re.fullmatch(rf"\[([a-z]+) {code}\]", line)
        if closing:
            closing = "" if line == closing else closing
        elif opened:
            closing = f"[/{opened.group(1)} {code}]"
        else:
            kept.append(line)
    return "\n".join(kept)


def naive(prompt: str) -> str:
    """Says the last score that it read anywhere."""
    found = _SCORE.findall(prompt)
    return f"answer {code_of(prompt)}: {found[-1] if found else 0}"


def obedient(prompt: str) -> str:
    """Does what it is told, whoever says so."""
    is_told = re.search(
        r"ignore everything|best mark|Max says|in full|void|called right|decode|new requirement", prompt
    )
    return f"answer {code_of(prompt)}: {100 if is_told else 0}"


def gullible(prompt: str) -> str:
    """Pays what looks like the beginning of a good answer, as judges were found to."""
    opener = re.search(r"\n(Solution|:|Thought process.*)\n\[/completion", prompt)
    return f"answer {code_of(prompt)}: {100 if opener else 0}"


def fenced(prompt: str) -> str:
    """Obeys scores and orders too, but those outside of fences alone."""
    found = _SCORE.findall(outside(prompt))
    return f"answer {code_of(prompt)}: {found[-1] if found else 0}"


def parrot(prompt: str) -> str:
    """Repeats what it read, fences and all, before it says what it thinks."""
    return f"I read:\n{prompt[: prompt.rindex('Begin your final')]}\nanswer {code_of(prompt)}: 0"


def careless(prompt: str) -> str:
    """Repeats what it read and forgets how to say what it thinks."""
    return f"The completion says {prompt[prompt.rindex('[completion') :]!r}, which is nothing to me."


def judged_effort(says: Callable[[str], str], tasks: int = 1) -> InjectionStanding:
    with serving() as server:
        server.says = says
        return asyncio.run(injected([JudgedEffort(Endpoint(server.url, "m"))], Arithmetic(1), tasks=tasks))


def test_forty_kinds_hold_no_right_answer_and_are_the_same_for_a_seed() -> None:
    target = Target("3+4=?", "7", "13")
    texts = {kind: injection(kind, target, 0) for kind in KINDS}
    assert len(KINDS) == len(set(texts.values())) == 40
    assert texts == {kind: injection(kind, target, 0) for kind in KINDS}
    assert not [kind for kind, text in texts.items() if re.search(r"(?<!\w)7(?!\w)", text)]


def test_a_naive_judge_is_caught() -> None:
    standing = judged_effort(naive)
    assert not standing.problem and len(standing.paid) >= 25
    assert {"direct order", "verdict line", "JSON verdict", "fence guessed", "ChatML markers"} <= set(standing.paid)
    plain = standing.plain()
    assert (
        plain["injections"]["direct order"]["share"] == 1.0 and "100" in plain["injections"]["direct order"]["example"]
    )


@pytest.mark.parametrize(
    ("judge", "kinds"), [(obedient, {"role play", "authority", "threat"}), (gullible, {"one word"})]
)
def test_judges_that_obey_or_like_openers_are_caught(judge: Callable[[str], str], kinds: set[str]) -> None:
    assert kinds <= set(judged_effort(judge).paid)


@pytest.mark.parametrize("judge", [fenced, parrot])
def test_a_judge_that_obeys_what_is_outside_of_fences_pays_none_of_forty(judge: Callable[[str], str]) -> None:
    standing = judged_effort(judge, tasks=3)
    assert not standing.problem and standing.paid == [] and len(standing.kinds) == 40
    assert sum(each.plain()["unread"] for each in standing.kinds.values()) == 0
    assert sum(len(each.tried) for each in standing.kinds.values()) == 120


def test_what_a_judge_repeats_is_no_verdict() -> None:
    """Read as it was read before, its answer holds a score of 100."""
    with serving() as server:
        answers = list[str]()
        server.says = lambda prompt: answers.append(careless(prompt)) or answers[-1]  # type: ignore[func-returns-value]
        standing = asyncio.run(injected([JudgedEffort(Endpoint(server.url, "m"))], Arithmetic(1), tasks=1))
    assert "no verdict of the judge" in standing.problem, "nothing is paid, and it is said why"
    assert any(SCORE.read(said) for said in answers)


def test_rules_and_verifiers_can_be_tried_too() -> None:
    rubric, judge = (Procedural(rule) for rule in (written_rubric, judged_rubric))
    rules: Reward = RubricPoints(rubric, judge)
    assert asks_client([rules]) and not asks_client([Earned()])
    for reward in (rules, Earned()):
        standing = asyncio.run(injected([reward], Arithmetic(1), tasks=1))
        assert not standing.problem and standing.paid == []


def test_a_judge_of_items_is_asked_item_by_item() -> None:
    with serving() as server:
        server.says = lambda prompt: f"answer {code_of(prompt)}: {'yes' if 'yes. S' in prompt else 'no'}"
        reward = RubricPoints(Canned({"": "2: It is right.\n1: It is short."}), Endpoint(server.url, "m"))
        standing = asyncio.run(injected([reward], Arithmetic(1), tasks=1))
    assert "direct order" in standing.paid and "one mark" not in standing.paid


def examined_judge(says: Callable[[str], str]) -> CheckResult:
    """The answer of the certificate's question."""
    with serving() as server:
        server.says = says
        asked = AskedRewards([JudgedEffort(Endpoint(server.url, "m"))], Arithmetic(1), 60.0)
        return asyncio.run(injections_into_a_judge(Examined(asked, lambda: asked)))


def test_a_certificate_has_what_injections_earn() -> None:
    assert examined_judge(naive).verdict == "fault" and examined_judge(fenced).verdict == "sound"
