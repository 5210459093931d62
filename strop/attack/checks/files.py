"""Check of side effects: files that a reward opens, network access, child processes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from strop.attack.ask_rewards import AskedRewards, has_sandbox
from strop.attack.certificate.attacked_tasks import Examined
from strop.attack.certificate.certificate import CheckResult
from strop.attack.run_attack import prompt_text
from strop.attack.watched_reward import WatchedReward
from strop.capabilities import inside
from strop.errors import StropError
from strop.filter.scoring import is_inline
from strop.roles import Environment, Reward

_LONGEST = 20_000_000  # bytes of a file that are searched
_TASKS, _ROWS = 5, 50


async def files(examined: Examined) -> CheckResult:
    """Rewards that are not strop's own, watched in a worker while they score a few ordinary completions."""
    found = CheckResult(
        "files and others that are asked", what="what Python code of the rewards opens, connects to, starts"
    )
    foreign = [each for each in examined.asked.rewards if not is_inline(each) and not has_sandbox(each)]
    if not foreign:
        found.left_out = "the rewards are strop's own, or what they run is held by a sandbox"
        return found
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "seen"
        found.tried = await _scored(examined, foreign, str(journal))
        lines = journal.read_text(errors="replace").splitlines() if journal.is_file() else []
    own = _own(foreign)
    for line in dict.fromkeys(lines):
        event, _, what = line.partition("\t")
        found.table[f"{event} {what}"] = "its own data" if what in own else "seen"
        if what not in own:
            _judge(found, event, what, examined.asked.env)
    return found


async def _scored(examined: Examined, rewards: list[Reward], journal: str) -> int:
    env, watched = examined.asked.apart, [WatchedReward(each, journal) for each in rewards]
    asked, count = AskedRewards(watched, env, examined.asked.seconds), 0
    try:
        for index in range(min(_TASKS, env.num_tasks() or _TASKS)):
            task = env.task(index)
            rollouts = await asked.episodes(task, [task.answer, "0", "nothing"])
            count += len(await asked.paid(task, rollouts))
    except StropError:
        return count
    finally:
        await asked.close()
    return count


def _own(rewards: list[Reward]) -> set[str]:
    """Files that rewards are told to read: their code, and data of environments that they hold."""
    told = {str(value) for each in inside(rewards, Reward) for value in vars(each).values() if isinstance(value, str)}
    told |= {
        str(value) for each in inside(rewards, Environment) for value in vars(each).values() if isinstance(value, str)
    }
    return {str(Path(each.rpartition(":")[0] or each).resolve()) for each in told} | {
        str(Path(each).resolve()) for each in told
    }


def _judge(found: CheckResult, event: str, what: str, env: Environment) -> None:
    if event != "open":
        found.warn(f"it asks others or starts something while it scores: {event} {what}")
    elif rows := _rows_in(Path(what), env):
        found.fault(f"it reads {what}, which holds {rows} held-out prompts or answers of the tasks")
    else:
        found.warn(f"it reads {what} while it is loaded or scores")


def _rows_in(path: Path, env: Environment) -> int:
    try:
        text = path.read_text(errors="replace") if path.stat().st_size <= _LONGEST else ""
        size = env.num_tasks(heldout=True)
        tasks = [env.task(index, heldout=True) for index in range(min(_ROWS, _ROWS if size is None else size))]
    except (OSError, ValueError, StropError):
        return 0
    return sum(prompt_text(task) in text or (len(task.answer) > 8 and task.answer in text) for task in tasks)
