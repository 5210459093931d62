"""Check of leaks: answers contained in prompts, and held-out tasks among training tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from strop.attack.certificate.attacked_tasks import Examined, not_tried
from strop.attack.certificate.certificate import CheckResult
from strop.attack.run_attack import prompt_text
from strop.roles import Environment
from strop.types import Task

_ROWS = 1000  # of each side
_FEW = 300  # of an endless episode, whose tasks have to be made
_WORD, _NUMBER = re.compile(r"[^\s,;:()\[\]{}]+"), re.compile(r"-?\d+(?:\.\d+)?")
_LABEL = re.compile(r"(?:answer|solution|result|hint|key|label|target|gold)\w*\W{1,5}([^\n]{1,200})", re.IGNORECASE)
_MOST, _MANY = 0.9, 0.5
_REPEATED = 0.05


def _last(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda prompt: (pattern.findall(prompt[-10_000:]) or [""])[-1]


def _first(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda prompt: (pattern.findall(prompt[:10_000]) or [""])[0]


def _line(place: int) -> Callable[[str], str]:
    return lambda prompt: (prompt.strip().splitlines() or [""])[place]


_COPIES: Mapping[str, Callable[[str], str]] = {
    "its last word": lambda prompt: _last(_WORD)(prompt).strip(".?!\"'"),
    "its first word": _first(_WORD),
    "its last number": _last(_NUMBER),
    "its first number": _first(_NUMBER),
    "its last line": _line(-1),
    "its first line": _line(0),
    "what follows `answer:`": lambda prompt: _last(_LABEL)(prompt).strip(" .)]}\"'"),
    "the first word behind `answer:`": lambda prompt: _first(_WORD)(_last(_LABEL)(prompt)).strip(".\"'"),
}


async def prompts(examined: Examined) -> CheckResult:
    """Completions copied from a fixed place of the prompt."""
    if examined.problem or examined.is_blind:
        return not_tried("the answer in the prompt", examined)
    found = CheckResult("the answer in the prompt", what="; ".join(_COPIES))
    known, counts = examined.apart, Counter[str]()
    for each in known:
        copies = {name: copy(prompt_text(each.task)) for name, copy in _COPIES.items()}
        copies = {name: copied for name, copied in copies.items() if copied.strip()}  # or it copies nothing
        texts = [text for copied in copies.values() for text in (copied, examined.frame.replace("@", copied))]
        paid = await examined.paid(each, texts)
        found.tried += len(texts)
        counts.update(name for place, name in enumerate(copies) if any(paid[2 * place : 2 * place + 2]))
    found.table = {name: f"{counts[name]} of {len(known)}" for name in _COPIES}
    for name, count in counts.most_common():
        told = f"{name} is the right answer of {count} of {len(known)} tasks"
        if len(known) > 1 and count > _MOST * len(known):
            found.fault(told)
        elif len(known) > 1 and count > _MANY * len(known):
            found.warn(told)
    return found


async def rows(examined: Examined) -> CheckResult:
    """Held-out prompts among those trained on, exactly or but for case and blanks; rows that repeat or contradict."""
    env = examined.asked.env
    train, heldout = _side(env, False), _side(env, True)
    found = CheckResult("held-out rows and repeated ones", len(train) + len(heldout))
    found.what = (
        f"{len(train)} tasks to train on, {len(heldout)} held-out ones; prompts exactly, and but for case and blanks"
    )
    exact, alike = {_exact(task) for task in train}, {_alike(task) for task in train}
    shared = [task for task in heldout if _exact(task) in exact]
    near = [task for task in heldout if _exact(task) not in exact and _alike(task) in alike]
    found.table = {"held-out prompts that are trained on": str(len(shared)), "but for case and blanks": str(len(near))}
    if shared:
        found.fault(f"{len(shared)} of {len(heldout)} held-out prompts are trained on", prompt_text(shared[0])[:200])
    if near:
        found.fault(
            f"{len(near)} of {len(heldout)} held-out prompts are trained on but for case and blanks",
            prompt_text(near[0])[:200],
        )
    if env.num_tasks() is not None:
        _repeats(found, train)
    if not heldout:
        found.left_out = "there are no held-out tasks"
    return found


def _repeats(found: CheckResult, train: Sequence[Task]) -> None:
    """In a finite set a prompt stands once; with two answers it teaches both."""
    counts = Counter(_alike(task) for task in train)
    repeated = len(train) - len(counts)
    answers: dict[str, set[str]] = {}
    for task in train:
        answers.setdefault(_alike(task), set()).add(task.answer.strip())
    torn = [prompt for prompt, each in answers.items() if len(each) > 1]
    found.table |= {"repeated": f"{repeated} of {len(train)}", "with several answers": str(len(torn))}
    if repeated > _REPEATED * len(train):
        found.warn(f"{repeated} of {len(train)} rows repeat another one")
    if torn:
        found.fault(f"{len(torn)} prompts stand there with different answers", torn[0][:200])


def _side(env: Environment, heldout: bool) -> list[Task]:
    size = env.num_tasks(heldout)
    count = _FEW if size is None else min(size, _ROWS)
    try:
        return [env.task(index, heldout) for index in range(count)]
    except (ValueError, LookupError):
        return []


def _exact(task: Task) -> str:
    return prompt_text(task)


def _alike(task: Task) -> str:
    return " ".join(prompt_text(task).casefold().split()).rstrip(".?! ")
