"""Lessons on categories: who is admitted, merged, thrown out and found, by hand; and that 20,000 of them stay quick."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import asdict, replace

import pytest

from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, reminded, topic, useful, with_help
from strop.generate.memory.store import Change, Lesson, Library, add, lines, tells, used
from strop.text.overlap import Similar, overlap, pieces
from strop.types import Group, Message, Origin, Start, Task

TASK = Task((Message("system", "be brief"), Message("user", "2+2=?")), "4", "test")


def carried_out(library: Library, *changes: Change) -> list[str]:
    return [library.carry_out(change) for change in changes]


def test_overlap_by_hand() -> None:
    assert pieces("abab a") == Counter({"aba": 1, "bab": 1, "ab ": 1, "b a": 1})
    assert overlap("abcd", "abce") == pytest.approx(1 / 2)  # one of two pieces each
    assert overlap("aaaa", "aaaab") == pytest.approx(4 / (2 * 5**0.5))  # aaa twice, beside aaa twice and aab
    assert overlap("ab  CD", "Ab cd") == 1.0 and overlap("abc", "xyz") == 0.0 and overlap("", "") == 1.0


def test_the_index_finds_what_a_look_at_all_texts_finds() -> None:
    random.seed(0)
    texts = {str(n): "".join(random.choice("abc") for _ in range(random.randint(1, 9))) for n in range(300)}
    index = Similar()
    for name, text in texts.items():
        index.add(name, "another text")  # which is forgotten
        index.add(name, text)
    for name in list(texts)[::2]:
        index.remove(name)
        del texts[name]
    index.remove("nobody")
    for question in ("abcab", "cc", "bbbbbbb", "xyz"):
        expected = sorted(((-overlap(question, text), int(name)) for name, text in texts.items()))[:7]
        assert [(-found, int(name)) for found, name in index.near(question, 7)] == [
            (pytest.approx(found), name) for found, name in expected
        ]
    assert len(index) == 150 and len(index.near("a", 999)) == 150 and Similar().near("a", 3) == []


def test_a_text_that_says_the_same_is_no_second_lesson() -> None:
    library = Library(most=9, same=0.5)
    changes = (add("abcd", "q", "a", 0.3), add("abce", "q", "a", 0.7), add("abce", "q", "b"), add("xyz", "q", "a"))
    assert carried_out(library, *changes) == ["added", "merged", "added", "added"]
    first, last = library.on("a")
    assert (first.text, first.score, first.support, first.name) == ("abcd", 0.7, 2, "a/1") and last.name == "a/3"
    assert carried_out(library, add("abcd", "q", "a", 0.1)) == ["merged"] and library.on("a")[0].score == 0.7
    never = Library(most=9, same=1.1)
    assert carried_out(never, add("abc", ""), add("abc", "")) == ["added"] * 2


def test_a_full_shelf_takes_only_what_is_better_than_its_worst() -> None:
    library = Library(most=2, same=1.1)
    scores = [0.5, 0.4, 0.4, 0.6, 0.45]
    told = carried_out(library, *(add(f"text {score}", "", "a", score) for score in scores))
    assert told == ["added", "added", "full", "replaced", "full"]
    assert sorted(lesson.score for lesson in library.on("a")) == [0.5, 0.6]
    assert carried_out(library, add("text", "", "b", -1.0)) == ["added"], "another category has room"


def test_the_lowest_score_never_falls_while_a_shelf_is_full() -> None:
    random.seed(1)
    library, lowest = Library(most=5), -1.0
    for number in range(200):
        library.carry_out(add(f"{number} {random.random()}", "", "a", random.random()))
        if len(library) == 5:
            now = min(lesson.score for lesson in library.on("a"))
            assert now >= lowest
            lowest = now
        assert len(library) <= 5


def test_what_is_refused_says_why_and_names_stay() -> None:
    library = Library(longest=5)
    assert carried_out(library, add("  ", ""), add("123456", ""), add(" 12\n\n45 ", "")) == [
        "empty",
        "too_long",
        "added",
    ]
    (lesson,) = library.on("")
    assert lesson.text == "12 45"
    told = carried_out(
        library,
        Change("rewrite", replace(lesson, text="other", score=2.0)),
        used(lesson, 4, 3.0),
        Change("remove", Lesson("", "", name="nobody")),
        Change("rewrite", Lesson("", "", name=lesson.name)),
    )
    assert told == ["rewritten", "used", "gone", "empty"]
    (now,) = library.on("")
    assert (now.name, now.text, now.score, now.uses) == (lesson.name, "other", 2.0, 4) and library.get(now.name) == now
    assert now.utility == pytest.approx(4 / 6) and library.like("other", "")[0][0] == 1.0
    told = carried_out(library, Change("remove", now), used(now, 1, 1), add("again", ""))
    assert told == ["removed", "gone", "added"] and library.on("")[0].name == "/2", "a name is never given twice"
    assert carried_out(library, Change("rewrite", Lesson("new", "", name="nobody"))) == ["added"]
    for bad in ({"most": 0}, {"longest": 0}, {"same": 0.0}):
        with pytest.raises(ConfigurationError, match="Library needs most >= 1"):
            Library(**bad)


def test_changes_wait_for_a_later_version_and_their_order_is_that_of_admission() -> None:
    def filled(order: list[tuple[int, int]]) -> Library:
        library = Library(most=1)
        for version, number in order:
            library.propose(Group(number, TASK, [], version), [add(f"{number} {version}", "", "", float(number))])
        return library

    there, back = filled([(0, 1), (0, 0), (1, 2)]), filled([(1, 2), (0, 0), (0, 1)])
    for library in (there, back):
        library.propose(Group(9, TASK, [], 0), [])
        library.catch_up(0)
        assert len(library) == 0
        library.catch_up(1)
        assert [lesson.text for lesson in library.on("")] == ["1 0"], "0 came first and was the worse"
    assert there.on("") == back.on("")
    again = Library(most=1)
    again.restore(json.loads(json.dumps(back.state())))
    for library in (there, again):
        library.catch_up()
        assert library.metrics() == {"lessons": 1.0, "lessons/added": 1.0, "lessons/replaced": 2.0}
    assert there.state() == again.state() and there.on("")[0].name == "/3"


def test_after_a_restart_equals_come_in_the_same_order() -> None:
    library = Library(same=1.1)
    carried_out(library, *(add(f"text {number}", "same", "a") for number in range(3)))
    carried_out(library, Change("rewrite", replace(library.on("a")[0], text="new")), used(library.on("a")[0], 1, 1))
    again = Library(same=1.1)
    again.restore(json.loads(json.dumps(library.state())))
    for each in (library, again):
        assert [lesson.text for _, lesson in each.about("same", "a", 3)] == ["text 1", "text 2", "new"]
        assert each.on("a") == each.best("a", 3) == library.on("a")


def test_what_is_alike_is_found_by_topic_and_by_text() -> None:
    library = Library(same=1.1)
    carried_out(library, add("use abcd", "sums", "a", 1), add("use abce", "games", "a", 3), add("no", "games", "a", 2))
    assert [lesson.text for _, lesson in library.about("games!", "a", 2)] == ["use abce", "no"]
    assert [lesson.text for _, lesson in library.like("no", "a")] == ["no"] and library.about("x", "none", 1) == []
    assert [lesson.score for lesson in library.best("a", 2)] == [3, 2] and library.best("none", 1) == []
    found = library.closest("a")
    assert found is not None and (found[1].text, found[2].text) == ("use abcd", "use abce")
    assert found[0] == pytest.approx(5 / 6) and Library().closest("a") is None


def test_what_is_useful_is_overlap_times_wins() -> None:
    """Three lessons: the nearest failed 8 times of 8 (1/10), the second was right 3 times of 4 (4/6)."""
    library, task = Library(same=1.1), Task((Message("user", "12+34=?"),), "", "sum")
    names = ("near", "half", "new")
    carried_out(library, *(add(name, about, "s") for name, about in zip(names, ("sum: 12+34=?",) * 3, strict=True)))
    near, half, _ = library.on("s")
    carried_out(library, used(near, 8, 0.0), used(half, 4, 3.0), add("else", "xyz", "s"))
    assert topic(task) == "sum: 12+34=?"
    assert [each.text for each in useful(library, task, "s", 9)] == ["half", "new", "near"], "else shares nothing"
    # ln 12 = 2.485: near .1 + sqrt(2.485/9) = .625, half .667 + sqrt(2.485/5) = 1.372, new .5 + sqrt(2.485) = 2.076
    assert [each.text for each in useful(library, task, "s", 2, explore=1.0)] == ["new", "half"]


def test_what_fits_stands_before_the_question_and_only_then_is_it_help() -> None:
    assert fitting(["abc", "abc", "", "defgh", "ij"], 6) == ["abc", "ij"] and fitting(["abc"], 2) == []
    assert reminded(TASK, ["a b", "c"])[-1] == Message("user", "a b c 2+2=?") and reminded(TASK, [])[0].role == "system"
    start = Start("0/0", 7)
    assert with_help(start, TASK, []) is start
    helped = with_help(start, TASK, ["a"])
    assert helped.origin is Origin.GUIDED and helped.messages[-1].content == "a 2+2=?"


def test_answers_are_seen_and_lines_are_plain() -> None:
    assert tells("it is 4.", TASK) and not tells("it is 44", TASK) and tells("say blue", TASK, " Blue ")
    assert not tells("anything", TASK, "")
    assert lines("1. one\n\n - two\n12) three\nfour 5. six", 4) == ["one", "two", "three", "four 5. six"]
    assert lines("a\nb\nc", 2) == ["a", "b"]


def test_twenty_thousand_lessons_stay_quick() -> None:
    """A look at every text takes 0.2 s for one question: 30 of them would take 6 s."""
    random.seed(2)
    words = ["".join(random.choice("abcdefgh") for _ in range(5)) for _ in range(500)]
    lessons = [asdict(Lesson(str(n), words[n % 500], "a", name=f"a/{n}")) for n in range(20_000)]
    library = Library(most=20_000, same=1.1)
    library.restore({"lessons": lessons, "waiting": [], "counts": {}, "num_named": 20_000})
    began = time.process_time()
    for word in words[:30]:
        assert library.about(word, "a", 1)[0][1].about == word
    assert library.carry_out(add("entirely new", "", "a", 1.0)) == "replaced"
    assert len(library) == 20_000 and time.process_time() - began < 2.0
