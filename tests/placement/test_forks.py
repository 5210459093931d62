"""Forks over several engines: what they begin with is not computed again, because they go where its keys are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from strop.backends import Completion
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.load_balanced import Several
from strop.placement.process_engine import LocalProcess
from strop.types import Sampling
from tests.placement.light import Keeping
from tests.tiny_models import save_pocket_like

ROOTS, FORKS, PROMPT, CUT = 6, 4, 30, 12
PREFIXES = ROOTS * FORKS * (PROMPT + CUT)  # tokens that forks begin with


async def made(engine: Several) -> list[Completion]:
    """Roots, all at once."""
    asked = enumerate(prompts())
    return await asyncio.gather(*(engine.sample(prompt, Sampling(max_tokens=2 * CUT), key) for key, prompt in asked))


def prompts() -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    stream = np.random.default_rng(0)
    return [stream.integers(4, 40, PROMPT) for _ in range(ROOTS)]


async def forked(engine: Several, roots: list[Completion]) -> list[Completion]:
    """From the middle of each root some forks, root after root, those of one root at once."""
    found: list[Completion] = []
    for place, (prompt, root) in enumerate(zip(prompts(), roots, strict=True)):
        begun, sampling = np.concatenate([prompt, root.tokens[:CUT]]), Sampling(max_tokens=CUT)
        keys = [100 + place * FORKS + number for number in range(FORKS)]
        found += await asyncio.gather(*(engine.sample(begun, sampling, key) for key in keys))
    return found


def test_over_processes() -> None:
    engine = Several((LocalProcess(Keeping()), LocalProcess(Keeping())))
    engine.open(Path("nowhere"))

    async def work() -> list[Completion]:
        try:
            return await forked(engine, await made(engine))
        finally:
            await engine.close()

    told = np.array([completion.aux["found"][0] for completion in asyncio.run(work())])
    assert len(set(told[:, 0])) == 2, "both took part"
    assert told[:, 1].sum() >= 0.8 * PREFIXES, f"{told[:, 1].sum() / PREFIXES:.0%} was there"


def test_over_engines_with_weights(tmp_path: Path) -> None:
    engines = (TorchEngine(), TorchEngine())
    engine = Several(engines)
    engine.open(save_pocket_like(tmp_path / "model"))

    async def work() -> float:
        roots = await made(engine)
        assert all(len(root.tokens) > CUT for root in roots), "every root is long enough to be cut"
        before = sum(each.num_reused for each in engines)
        await forked(engine, roots)
        return (sum(each.num_reused for each in engines) - before) / PREFIXES

    share = asyncio.run(work())
    assert share >= 0.8, f"{share:.0%} was there"
