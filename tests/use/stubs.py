"""Address that plays judge, teacher, task generator or simulator: it answers plausibly and records what it is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.generate.llm_clients.serving import running


class Stub(ThreadingHTTPServer):
    """Server with its questions."""

    daemon_threads = True
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked did not wait for the answer."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        stub = self.server
        assert isinstance(stub, Stub)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = "\n".join(str(message["content"]) for message in body["messages"])
        stub.asked.append(said)
        text = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer(said)}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def answer(asked: str) -> str:
    """What a model that adds well and keeps to the format would say; where it has no opinion, the hash decides."""
    marked = re.search(r"`(answer \w+:)`", _question(asked))
    return f"{marked[1]} {_answer(asked)}" if marked else _answer(asked)


def _question(asked: str) -> str:
    """The words behind the data."""
    return asked.rpartition("stand in round brackets.")[2]


def _answer(asked: str) -> str:
    low = _question(asked).lower()
    for words, said in _FORMATS:
        if re.search(words, low):
            return said(asked)
    if found := re.search(r"from (-?\d+)\b.{0,40}? to (\d+)\b", low, re.DOTALL):
        return found[2] if _is_right(asked) else found[1]
    return "Add the tens before the ones, then check."


def _chosen(asked: str, *choices: str) -> str:
    return choices[int(hashlib.sha256(asked.encode()).hexdigest(), 16) % len(choices)]


def _terms(asked: str) -> list[int]:
    """Terms of the sum that is asked for."""
    found = re.findall(r"\d+(?:\+\d+)+(?==\?)", asked)
    return [int(term) for term in found[-1].split("+")] if found else [1, 2]


def _completion(asked: str) -> str:
    found = re.search(r"\[completion \w+\]\n(.*?)\n?\[/completion", asked, re.DOTALL)
    return found[1] if found else ""


def _is_right(asked: str, completion: str | None = None) -> bool:
    numbers = re.findall(r"\d+", _completion(asked) if completion is None else completion)
    return bool(numbers) and numbers[-1].lstrip("0") == str(sum(_terms(asked)))


def _lines(asked: str, right: str, wrong: str) -> str:
    """A line for each numbered line of the completion."""
    numbered = re.findall(r"^(\d+): (.*)", _completion(asked), re.MULTILINE)
    return "\n".join(f"{place}: {right if _is_right(asked, text) else wrong}" for place, text in numbered)


def _met(asked: str) -> str:
    """How well each requirement is met."""
    found = re.search(r"\[requirements \w+\]\n(.*?)\n?\[/requirements", asked, re.DOTALL)
    numbers = re.findall(r"^(\d+): ", found[1] if found else "", re.MULTILINE)
    return "\n".join(f"{number}: {90 if _is_right(asked) else 20}" for number in numbers)


def _transition(asked: str) -> str:
    """Every episode takes two completions."""
    is_first = re.search(r"\[ideas \w+\]\s*\[/ideas", asked)
    return "state: say it once more" if is_first else f"reward: {int(_is_right(asked))}"


def _solution(asked: str) -> str:
    terms = _terms(asked)
    sums = [sum(terms[:place]) for place in range(1, len(terms) + 1)]
    said = [f"{one} plus {term} is {two}." for one, term, two in zip(sums, terms[1:], sums[1:], strict=False)]
    return " ".join([*said, f"So {sum(terms)}"])


def _new_task(asked: str) -> str:
    drawn = int(hashlib.sha256(asked.encode()).hexdigest(), 16)
    terms = [10 + drawn // 97**place % 90 for place in range(len(_terms(asked)))]
    words = _chosen(asked, "", "", "Write the sum: ", "Now please add up ", "Tell me what is ")
    return f"[task] {words}{'+'.join(map(str, terms))}=? [answer] {sum(terms)}"


def _same_answer(asked: str) -> str:
    first, *rest, last = _terms(asked)
    return f"[task] {'+'.join(map(str, [first + 1, *rest, last - 1]))}=?"


_REFLECTION = json.dumps({"outcome": "failure", "retry_from_step": 0, "guidance": "Add the tens before the ones."})
# what the words of a question ask for, and the answer; the first that fits
_FORMATS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"first wrong one", lambda asked: _chosen(asked, "-1", "0") if _is_right(asked) else "0"),
    (r"each numbered requirement", lambda asked: _met(asked)),
    (r"score: 1, score: 0", lambda asked: f"score: {1 if _is_right(asked) else -1}"),
    (r"score each completion", lambda asked: _lines(asked, "9", "2")),
    (r"each numbered sentence", lambda asked: _lines(asked, "faithful; right; correct", "faithful; wrong; incorrect")),
    (r"answer with 3 if", lambda asked: "3" if _is_right(asked) else "1"),
    (r"'verdict: n'", lambda asked: f"verdict: {2 if _is_right(asked) else -2}"),
    (r"with the winner", lambda asked: f"core, {_chosen(asked, 'first', 'second')}, 3: It is right."),
    (
        r"topic: ",
        lambda asked: f"topic: sums\naudience: {_chosen(asked, 'students', 'clerks')}\nsize: 10\nthemes: tens",
    ),
    (r"\bveto\b", lambda asked: "2: It ends with a number.\nveto: It answers the task."),
    (r"\bchecklist\b", lambda asked: "90: It ends with a number.\n40: It is short."),
    (r"\brubric\b", lambda asked: "5: It ends with a number.\n-3: It guesses."),
    (r"each after a dash", lambda asked: "- It is right.\n- It is short."),
    (r"has the same answer", _same_answer),
    (r"write \[task\]", _new_task),
    (r"write \[answer\]", lambda asked: f"[answer] {sum(_terms(asked))}"),
    (r"what does the environment answer", lambda asked: _transition(asked)),
    (r"in json", lambda asked: _REFLECTION),
    (r"`add: `", lambda asked: "add: Add the tens before the ones."),
    (r"score: 1 and the hint", lambda asked: "score: 1\nAdd the tens before the ones."),
    (r"write 1 or 2", lambda asked: _chosen(asked, "1", "2")),
    (r"search engine", lambda asked: f"It is known that {_solution(asked)}."),
    (r"solve the task", _solution),
    (r"\byes\b.{0,30}\bno\b|\bno\b.{0,30}\byes\b", lambda asked: "yes" if _is_right(asked) else "no"),
    (r"\ba\b.{0,40}\bor b\b", lambda asked: _chosen(asked, "A", "B")),
    (r"\A\s*\d+(\+\d+)+=\?\s*\Z", _solution),
)


@contextmanager
def stub() -> Iterator[Stub]:
    """A stub for as long as a run takes."""
    found = Stub(("127.0.0.1", 0), _Handler)
    found.asked = []
    with running(found):
        yield found
