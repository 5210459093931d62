"""What LLM clients sample is counted beside what the policy does, so that runs can be compared by all they spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strop.generate.llm_clients.without_model import Canned
from strop.launch.checks.warnings import warnings_of
from strop.observe.metrics.step_metrics import Tally
from strop.pipeline import train
from strop.roles import LLMClient, Reward
from strop.types import Group, Message, Sampling
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass
class ThreeTokens(LLMClient):
    """A model that answers with three tokens whatever it is asked."""

    num_generated: int = field(default=0, init=False)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.num_generated += 3
        return "1"


@dataclass(frozen=True)
class Asks(Reward):
    """What an LLM client says of each rollout."""

    llm_client: LLMClient
    weight: float = 1.0
    is_inline: bool = True

    async def __call__(self, group: Group) -> list[float]:
        return [
            float(await self.llm_client.ask([Message("user", t.completion)], Sampling(), 0)) for t in group.rollouts
        ]


@pytest.mark.parametrize(("llm_client", "total"), [(ThreeTokens(), 2 * 4 * 3 * 3), (Canned({"": "1"}), None)])
def test_what_an_llm_client_samples_from_a_model_has_a_metric(
    tmp_path: Path, llm_client: LLMClient, total: int | None
) -> None:
    model = save_pocket_like(tmp_path / "model")
    rows = []
    for rewards in ((Asks(llm_client),), (Asks(Canned({"": "1"})),)):
        with opened(make_run(steps=2, rewards=rewards), model, tmp_path / f"{len(rows)}.db") as (flow, recorder):
            run_virtually(train(flow))
        rows.append(recorder.rows[-1])
    assert rows[0].get("tokens_advised") == total, "steps, groups, rollouts and tokens of an answer"
    assert "tokens_advised" not in rows[1] and rows[0]["tokens_generated"] == rows[1]["tokens_generated"]


def test_a_run_that_goes_on_adds_to_what_was_spent_before() -> None:
    first, later = Tally(), Tally()
    first.llm_client_tokens(10)
    first.llm_client_tokens(25)
    later.restore(first.state())
    later.llm_client_tokens(0)
    later.llm_client_tokens(7)  # LLM clients begin at 0 again
    assert (first.tokens_advised, later.tokens_advised) == (25, 32)


def test_a_worker_process_counts_for_nobody() -> None:
    warnings = [warnings_of(make_run(rewards=(Asks(ThreeTokens(), is_inline=inline),))) for inline in (False, True)]
    told = [warning for warning in warnings[0] if "Asks asks ThreeTokens in a worker process" in warning]
    assert len(told) == 1 and told[0] not in warnings[1]
