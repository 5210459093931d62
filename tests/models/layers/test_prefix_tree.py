"""Order of a scan over shared prefixes: every token once, and what is shared once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from strop.models.layers.prefix_tree import PrefixTree, States


class Summing:
    """Running sums: the state is all that went before, and every output tells its whole prefix."""

    module = None

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, hidden: Tensor, before: States) -> tuple[Tensor, States]:
        self.seen += hidden.shape[0] * hidden.shape[1]
        start = before["sum"] if before else torch.zeros(len(hidden), hidden.shape[2])
        sums = start.unsqueeze(1) + hidden.cumsum(1)
        return sums, {"sum": sums[:, -1]}


def laid_out(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray, Tensor]:
    """Sizes and places of sequences as a trie, and a number for each token that is computed."""
    nodes: dict[tuple[int, ...], int] = {}
    places = [nodes.setdefault(tuple(each[: i + 1]), len(nodes)) for each in sequences for i in range(len(each))]
    values = torch.tensor([[float(prefix[-1])] for prefix in nodes])
    return np.array([len(each) for each in sequences]), np.array(places), values


def test_siblings_cost_their_own_tokens() -> None:
    prompt = list(range(384))
    sizes, places, values = laid_out([[*prompt, *range(1000 * i, 1000 * i + 64)] for i in range(1, 9)])
    tree, mixer = PrefixTree(sizes, places, "cpu"), Summing()
    tree.mix(mixer, values)
    assert mixer.seen == 384 + 8 * 64


def test_every_output_knows_its_whole_prefix() -> None:
    """Branches upon branches, short ones, a sequence that is a prefix of another, one token, and strangers."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        grown = [rng.integers(0, 9, 40).tolist()]
        for _ in range(12):
            stem = grown[rng.integers(len(grown))]
            grown.append(stem[: rng.integers(0, len(stem) + 1)] + rng.integers(0, 9, rng.integers(1, 45)).tolist())
        sizes, places, values = laid_out(sorted(grown))
        expected = torch.tensor([[float(sum(each[: i + 1]))] for each in sorted(grown) for i in range(len(each))])
        found = PrefixTree(sizes, places, "cpu").mix(Summing(), values)
        assert torch.equal(found[torch.from_numpy(places)], expected)
