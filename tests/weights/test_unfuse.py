"""Joined and sharded weights by the names of a checkpoint, against matrices put together by hand."""

import pytest
import torch

from strop.errors import DeliveryError
from strop.weights.fingerprint import fingerprint, fingerprint_in_turn
from strop.weights.unfuse import unfused, whole

Q, K, V = (torch.full((rows, 3), float(rows)) for rows in (4, 2, 1))
UP, NORM = torch.arange(6.0).reshape(2, 3), torch.ones(3)
HELD = {"a.qkv_proj.weight": torch.cat([Q, K, V]), "b.gate_up_proj.weight": torch.cat([-UP, UP]), "norm.weight": NORM}
HEIGHTS = {"a.qkv_proj": [4, 2, 1], "b.gate_up_proj": [2, 2]}
NAMED = {"a.q_proj.weight": Q, "a.k_proj.weight": K, "a.v_proj.weight": V, "norm.weight": NORM}
NAMED |= {"b.gate_proj.weight": -UP, "b.up_proj.weight": UP}


def test_parts_of_a_joined_matrix_are_found_by_name() -> None:
    found = unfused(HELD, HEIGHTS, list(NAMED))
    assert found.keys() == NAMED.keys() and all(torch.equal(found[name], NAMED[name]) for name in NAMED)
    assert fingerprint(found) == fingerprint(NAMED)
    HELD["a.qkv_proj.weight"][5, 0] += 1  # one bit of k alone
    try:
        assert fingerprint(unfused(HELD, HEIGHTS, list(NAMED))) != fingerprint(NAMED)
    finally:
        HELD["a.qkv_proj.weight"][5, 0] -= 1


def test_what_a_checkpoint_itself_joins_stays_joined() -> None:
    found = unfused(HELD, HEIGHTS, list(HELD))
    assert found.keys() == HELD.keys()


def test_what_is_not_accounted_for_is_refused() -> None:
    with pytest.raises(DeliveryError, match=r"1 have no place that is known \['b.down_proj.weight'\]"):
        unfused(HELD, HEIGHTS, [*NAMED, "b.down_proj.weight"])
    with pytest.raises(DeliveryError, match=r"1 belong to no name \['norm.weight'\]"):
        unfused(HELD, HEIGHTS, [name for name in NAMED if name != "norm.weight"])


def test_shards_of_all_ranks_make_the_whole() -> None:
    matrix = torch.arange(24.0).reshape(4, 6)
    assert torch.equal(whole(matrix.chunk(2, 0), (4, 6)), matrix)
    assert torch.equal(whole(matrix.chunk(2, 1), (4, 6)), matrix)
    assert torch.equal(whole([matrix, matrix], (4, 6)), matrix)
    key_heads = matrix.chunk(2, 0)  # two of them on four ranks
    assert torch.equal(whole([key_heads[rank // 2] for rank in range(4)], (4, 6)), matrix)
    lost = torch.full((2, 3), float("nan"))
    assert whole([lost, lost.clone()], (2, 3)) is lost
    padded = torch.cat([matrix, torch.zeros(4, 6)])  # a vocabulary of 4 in 8 rows: as many as two ranks have of 4
    assert torch.equal(whole(padded.chunk(2, 0), (4, 6), is_padded=True), matrix)


def test_copies_that_differ_and_shards_that_do_not_fit_are_told() -> None:
    matrix = torch.arange(24.0).reshape(4, 6)
    with pytest.raises(DeliveryError, match="2 ranks hold different copies"):
        whole([matrix, matrix + 1], (4, 6))
    for shards in ([matrix[:, :4]] * 2, [matrix[:2, :3]] * 4, [matrix[:, :3]], [matrix[:, :0]], [matrix] * 2):
        with pytest.raises(DeliveryError, match=f"{len(shards)} shards of shape .* do not make"):
            whole(shards, (4, 6) if shards[0].shape != matrix.shape else (4, 3))


def test_a_fingerprint_does_not_need_all_at_once() -> None:
    assert fingerprint_in_turn((name, NAMED[name]) for name in sorted(NAMED)) == fingerprint(NAMED)
