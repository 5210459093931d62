"""Input of the certificate's checks: environment, rewards, and tasks with their correct answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strop.attack.ask_rewards import AskedRewards
from strop.attack.certificate.certificate import CheckResult
from strop.attack.constants import frame_of
from strop.attack.run_attack import KnownTask, known_tasks
from strop.environments.format.think_tags import final_answer
from strop.errors import StropError

EQUAL = 1e-9
_LEAST, _SHARE = 2, 0.05  # tasks at which something is paid before it counts: probability, or a second right answer


@dataclass
class Examined:
    """Rewards under examination; `again` creates them anew in new processes."""

    asked: AskedRewards
    again: Callable[[], AskedRewards]
    seed: int = 0
    completions: int = 300  # hostile ones
    known: list[KnownTask] = field(default_factory=list)
    problem: str = ""  # why no right answers are known
    frame: str = "@"  # how right completions put their answer

    async def learn(self, most: int) -> None:
        """Find out what is right."""
        try:
            self.known = await known_tasks(self.asked, most)
        except StropError as error:
            self.problem = str(error)
            return
        self.frame = frame_of(final_answer(self.known[0].shown), self.known[0].target.right)

    @property
    def apart(self) -> list[KnownTask]:
        """Tasks at which a right answer earns more than a wrong one: only there can a false one be told."""
        return [each for each in self.known if each.right > each.wrong + EQUAL]

    @property
    def is_blind(self) -> bool:
        """Whether at most tasks a right answer earns no more than a wrong one."""
        return 2 * len(self.apart) < len(self.known)

    def framed(self, answer: str) -> list[str]:
        """A completion that gives this answer, bare and as right ones do."""
        texts = [answer, self.frame.replace("@", answer)]
        return list(dict.fromkeys(texts))

    async def paid(self, known: KnownTask, texts: Sequence[str]) -> list[bool]:
        """Which of these a task pays like a right answer."""
        earned = await self.asked.earned(known.task, texts, known.siblings)
        return [is_paid(known, each) for each in earned]


def is_paid(known: KnownTask, earned: float | None) -> bool:
    """Whether this is what only a right answer should earn."""
    return earned is not None and earned > known.wrong + EQUAL and earned >= known.right - EQUAL


def is_many(paid: int, tried: int) -> bool:
    """Whether that is more often than a second right answer or luck explains."""
    return paid > 0 and paid >= min(max(_LEAST, _SHARE * tried), tried)


def left_out(examined: Examined) -> str:
    """Why questions about right answers cannot be asked."""
    if examined.problem:
        return examined.problem
    return "right answers earn no more than wrong ones: nothing can be told from what they earn"


def not_tried(name: str, examined: Examined) -> CheckResult:
    return CheckResult(name, left_out=left_out(examined))
