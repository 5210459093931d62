"""All checks of the certificate, run on one environment and its rewards."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version

from strop.attack.ask_rewards import AskedRewards, has_sandbox
from strop.attack.certificate.attacked_tasks import Examined
from strop.attack.certificate.certificate import Certificate, CheckResult
from strop.attack.checks.answers import merged, nearly_right, sanity, spellings
from strop.attack.checks.constant import constant_completions
from strop.attack.checks.files import files
from strop.attack.checks.hostile import hostile
from strop.attack.checks.judge import judge
from strop.attack.checks.leaks import prompts, rows
from strop.attack.checks.programs import programs
from strop.attack.checks.steady import steady
from strop.errors import StropError
from strop.filter.scoring import reward_names
from strop.roles import Environment, Reward

_TASKS, _FEW = 24, 4  # at which completions are tried; where each is a program that has to run
_BESIDES = {
    "files of native code, other clocks": "nothing shows what native code reads, or a scorer that waits for a date",
    "a policy that learns": "only fixed completions are tried: training finds what no list holds; read what earns most",
}


async def certified(
    subject: str, rewards: Sequence[Reward], env: Environment, completions: int, seed: int, seconds: float
) -> Certificate:
    """The certificate; a question that cannot be asked says why."""
    begun = time.monotonic()
    asked = AskedRewards(rewards, env, seconds)
    examined = Examined(asked, lambda: AskedRewards(rewards, env, seconds), seed, completions)
    is_program = any(has_sandbox(each) for each in (*rewards, env))
    try:
        await examined.learn(_FEW if is_program else _TASKS)
        asking = _OF_ALL if is_program else {**_OF_TEXTS, **_OF_ALL}
        checks = [await _answered(name, question, examined) for name, question in asking.items()]
    finally:
        await asked.close()
    name, spent = f"{env.name}:{env.level}", time.monotonic() - begun
    found = [one for each in checks for one in each]
    names = tuple(reward_names(rewards))
    return Certificate(subject, name, names, version("strop"), seed, spent, [*found, *_besides(is_program)])


Question = Callable[[Examined], Awaitable[CheckResult | list[CheckResult]]]
_OF_TEXTS: Mapping[str, Question] = {
    "spellings of right answers": spellings,
    "answers that are nearly right": nearly_right,
    "answers that are nearly alike": merged,
    "the answer in the prompt": prompts,
}
_OF_ALL: Mapping[str, Question] = {
    "right and wrong answers": sanity,
    "constant completions": constant_completions,
    "the same pay for the same completion": steady,
    "hostile completions": hostile,
    "hostile programs": programs,
    "files and others that are asked": files,
    "held-out rows and repeated ones": rows,
    "injections into a judge": judge,
}


async def _answered(name: str, question: Question, examined: Examined) -> list[CheckResult]:
    try:
        found = await question(examined)
    except StropError as error:
        return [CheckResult(name, left_out=str(error))]
    return found if isinstance(found, list) else [found]


def _besides(is_program: bool) -> list[CheckResult]:
    texts = dict.fromkeys(_OF_TEXTS, "answers are programs: hostile ones are tried") if is_program else {}
    return [CheckResult(name, left_out=why) for name, why in (texts | _BESIDES).items()]
