"""Answers are found by a named rule, in completions and in gold answers alike."""

from __future__ import annotations

import pytest

from strop.environments.data.answer_extraction import RULES, chosen_rule, extracted, gold, is_right, solution, spelled


@pytest.mark.parametrize(
    "completion",
    ["66", "The answer is 66", "blah\n66", "\\boxed{66}", "**66**", "66.", "66.0", "<think>7</think>66", "$66"],
)
def test_what_people_call_right_is_right_by_its_last_number(completion: str) -> None:
    assert is_right("number", completion, "66") and not is_right("number", completion, "67")


@pytest.mark.parametrize(
    ("completion", "found"),
    [
        ("5-3", "3"),
        ("it is -3", "-3"),
        ("(\u22123)", "-3"),
        ("x=1,234.50 euro", "1234.50"),
        ("1, 2 and 3.", "3"),
        ("none", ""),
        ("<think>66", ""),  # the working never ends, so there is no answer
    ],
)
def test_the_last_number(completion: str, found: str) -> None:
    assert extracted("number", completion) == found


def test_boxes_and_hashes() -> None:
    assert extracted("boxed", "first \\boxed{1}, then \\boxed{\\frac{1}{2}} .") == "\\frac{1}{2}"
    assert extracted("boxed", "66") == extracted("boxed", "\\boxed{66") == ""
    assert is_right("boxed", "\\boxed{ \\frac{1} {2} }", "so \\boxed{\\frac{1}{2}}") and not is_right(
        "boxed", "66", "66"
    )
    assert is_right("boxed", "\\boxed{1,000}", "1000.0")
    assert extracted("hashes", "2+2\n#### 4\nbye") == "4"
    assert is_right("hashes", "x #### 98", "y\n#### 98") and not is_right("hashes", "98", "y\n#### 98")
    assert gold("number", "72/2 = 36\n#### 1,098") == "1098" and gold("text", " Paris ") == "Paris"
    assert is_right("text", "<think>hm</think> Paris", "Paris") and not is_right("text", "It is Paris", "Paris")


def test_mathematics() -> None:
    assert is_right("math", "so $\\frac{2}{4}$", "\\frac{1}{2}") and not is_right("math", "so $2$", "\\frac{1}{2}")
    assert is_right("math", "\\boxed{0.5}", "worked out: \\boxed{\\frac12}")
    with pytest.raises(ValueError, match="is no mathematics"):
        is_right("math", "4", "")


@pytest.mark.parametrize(
    ("answers", "rule", "why"),
    [
        (["1", "-2.5", "1,000"], "number", "all 3 answers are numbers"),
        (["a\n#### 1", "b\n#### 2"], "number", "all 2 answers end in #### and a number"),
        (["\\boxed{3}", "so \\boxed{4}"], "number", "all 2 answers are numbers"),
        (["\\frac12", "x^2", "7"], "math", "2 of 3 answers are mathematics"),
        (["a #### b", "#### c"], "hashes", "all 2 answers hold ####"),
        (["Paris", "7"], "text", "not all 2 answers are numbers"),
    ],
)
def test_the_rule_suits_the_answers(answers: list[str], rule: str, why: str) -> None:
    found, reason = chosen_rule(answers)
    assert found == rule and reason.startswith(why)


def test_without_an_answer_nothing_is_right_by_itself() -> None:
    assert not is_right("none", solution("none", "98"), "98")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("auto", "none")])
def test_what_is_shown_as_right_is_right(rule: str) -> None:
    for answer in ("98", "\\boxed{98}", "so\n#### 98"):
        assert is_right(rule, solution(rule, answer), answer)


def test_a_long_completion_takes_no_time() -> None:
    for rule in RULES:
        if rule != "math":
            is_right(rule, "\\boxed{" * 20_000 + "1" * 50_000 + "#### " * 5_000 + "-" * 50_000, "66")


@pytest.mark.parametrize(
    ("rule", "completions", "spelling"),
    [
        ("number", ["66", "it is 66.", "66.00", "066", "$66", "<think>7</think>66"], "66"),
        ("number", ["1,234.50", "so 1234.5"], "1234.5"),
        ("number", ["-0", "0.0", "0"], "0"),
        ("number", ["-2.50", "it is \u22122.5"], "-2.5"),
        ("number", ["none", "", "<think>66"], ""),
        ("boxed", ["\\boxed{1 234}", "\\boxed{1234.0}", "\\boxed{$1,234$}"], "1234"),
        ("boxed", ["\\boxed{x + 1}", "\\boxed{x+1}"], "x+1"),
        ("hashes", ["#### 5", "so\n#### 5.0"], "5"),
        ("text", ["a b", " a b "], "a b"),
        ("text", ["01"], "01"),
        ("math", ["\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"], "\\frac{1}{2}"),
    ],
)
def test_one_answer_has_one_spelling(rule: str, completions: list[str], spelling: str) -> None:
    assert {spelled(rule, completion) for completion in completions} == {spelling}


def test_a_number_of_any_size_is_spelled_exactly() -> None:
    large = "1" + "0" * 40
    assert (
        spelled("number", large) != spelled("number", large + "1") and len(spelled("boxed", "\\boxed{1e99999999}")) < 20
    )
