"""Accuracy of a model: pass@1 and pass@64 on held-out tasks of every environment and level.

`python -m strop.pocket.measure --model FOLDER` prints the table of any model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.bundled.next_state import NextState
from strop.environments.bundled.search import Search
from strop.environments.judging.preferences import Preferences
from strop.evaluation import Evaluation, Score, evaluate, held_out
from strop.filter.scoring import Scorer
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.policy import Policy
from strop.pocket.target_accuracy import ACCURACY
from strop.roles import Environment
from strop.types import Sampling

CONTEXT = 512
MANY = 64

ENVS: tuple[Environment, ...] = (
    *(Arithmetic(level) for level in range(1, 9)),
    *(Compose(level) for level in range(1, 5)),
    *(Countdown(level) for level in range(2, 6)),
    *(KeyValue(level) for level in range(1, 7)),
    *(Guess(level) for level in range(1, 6)),
    *(NextState(level) for level in range(1, 5)),
    *(Search(level) for level in range(1, 4)),
    *(Preferences(Arithmetic(level)) for level in (1, 3)),
)


@dataclass(frozen=True)
class Grade:
    """One environment at one level; `intended` is the share of correct demonstrations, None where the corpus has
    none.
    """

    env: str
    level: int
    pass_at_1: float
    low: float  # of the 95% interval of pass@1
    high: float
    pass_at_many: float
    intended: float | None

    def __str__(self) -> str:
        intended = "untrained" if self.intended is None else f"{self.intended:9.2f}"
        spread = f"{self.low:.3f}..{self.high:.3f}"
        return f"{self.env:<10} {self.level:>2}  {self.pass_at_1:6.3f} {spread}  {self.pass_at_many:6.3f}  {intended}"


HEADING = f"{'env':<10} level pass@1 {'95% interval':<12}  pass@{MANY}  intended"


def grades(
    model: Path,
    device: str,
    rows: int,
    tasks: int,
    rollouts: int = MANY,
    envs: Sequence[Environment] = ENVS,
    seed: int = 0,
) -> Iterator[Grade]:
    """Grade environment after environment at temperature 1."""
    engine = TorchEngine(rows=rows, device=device)
    engine.open(model)
    policy = Policy.load(model, engine, Sampling(max_tokens=160), CONTEXT)
    evaluation = Evaluation(every=0, tasks=tasks, rollouts=rollouts)
    with asyncio.Runner() as runner:
        for env in envs:
            yield _grade(runner.run(_score(env, evaluation, policy, seed)))


async def _score(env: Environment, evaluation: Evaluation, policy: Policy, seed: int) -> Score:
    scorer = Scorer(evaluation.rewards)
    try:
        asked = held_out([env], evaluation, policy)
        return (await evaluate(asked, evaluation, policy, scorer, seed))[0]
    finally:
        await scorer.close()


def _grade(score: Score) -> Grade:
    mean, low, high = (round(value, 4) for value in score.pass_at(1))
    many = round(score.pass_at(min(MANY, score.rollouts))[0], 4)
    return Grade(score.source, score.level, mean, low, high, many, ACCURACY.get(score.source, {}).get(score.level))


def show(found: Iterable[Grade]) -> list[dict[str, object]]:
    """Print the table line by line as it comes, and give it back as plain data."""
    print(HEADING)
    rows = []
    for grade in found:
        print(grade, flush=True)
        rows.append(asdict(grade))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path(__file__).parent / "model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=256, help="rollouts decoded together")
    parser.add_argument("--tasks", type=int, default=16, help="held-out tasks per environment and level")
    parser.add_argument("--record", type=Path, help="a made.json whose grades are replaced")
    arguments = parser.parse_args()
    found = show(grades(arguments.model, arguments.device, arguments.rows, arguments.tasks))
    if arguments.record:
        record = json.loads(arguments.record.read_text()) | {"grades": found}
        arguments.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
