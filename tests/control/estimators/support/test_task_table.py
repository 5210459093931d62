"""Numbers by key in arrays: against a dict, through growth, saved and made again."""

from __future__ import annotations

import numpy as np
import pytest

from strop.control.estimators.support.task_table import TaskTable, keys_of

ROW = np.dtype([("key", "u8"), ("one", "f4"), ("two", "i4")])


def test_it_holds_what_a_dict_would_through_several_growths() -> None:
    stream, table, plain = np.random.default_rng(0), TaskTable(ROW), dict[int, tuple[float, int]]()
    for _ in range(60):
        keys = np.unique(stream.integers(1, 20_000, 300).astype(np.uint64) << np.uint64(3))  # crowded: few low bits
        one, two = stream.normal(size=len(keys)).astype(np.float32), stream.integers(0, 99, len(keys))
        table.write(keys, one=one, two=two)
        plain |= {key: (float(a), int(b)) for key, a, b in zip(keys.tolist(), one, two, strict=True)}
    assert table.count == len(plain) > 3 * 1024
    asked = np.arange(8, 160_001, 8).astype(np.uint64)
    found = table.read(asked)
    expected = [plain.get(int(key), (0.0, 0)) for key in asked]
    assert found["one"].tolist() == [one for one, _ in expected]
    assert found["two"].tolist() == [two for _, two in expected]


def test_keys_that_want_the_same_slot_all_get_one() -> None:
    """Five hundred keys with the same low bits, the last slot's: they go on at the beginning."""
    table, keys = TaskTable(ROW), (np.arange(1, 501).astype(np.uint64) << np.uint64(20)) + np.uint64(1023)
    table.write(keys, one=np.arange(500.0), two=7)
    assert table.read(keys)["one"].tolist() == list(range(500)) and set(table.read(keys)["two"]) == {7}
    assert table.count == 500 and not table.read(keys + np.uint64(1))["two"].any()


def test_rows_make_the_same_table_again() -> None:
    table, keys = TaskTable(ROW), keys_of([str(number) for number in range(3000)])
    table.write(keys, one=np.arange(3000.0), two=np.arange(3000))
    rows = table.rows()
    assert len(rows) == 3000 and rows.dtype == ROW
    again = TaskTable.of(rows)
    assert again.count == 3000 and np.array_equal(again.read(keys)["two"], np.arange(3000))
    again.write(keys[:2], one=np.array([5.0, 6.0]), two=1)
    assert again.count == 3000 and again.read(keys[:3])["one"].tolist() == [5.0, 6.0, 2.0]


def test_a_task_costs_less_than_60_bytes_once_there_are_many() -> None:
    table = TaskTable(ROW)
    for first in range(0, 100_000, 10_000):
        table.write(keys_of([str(number) for number in range(first, first + 10_000)]), one=np.zeros(10_000), two=0)
        if first:
            assert table.num_bytes / table.count < 60


def test_keys_are_64_bits_of_the_name_and_never_0() -> None:
    keys = keys_of(["a", "b", "a"])
    assert keys.dtype == np.uint64 and keys[0] == keys[2] != keys[1] and (keys > 0).all()
    assert len(keys_of([])) == 0


@pytest.mark.parametrize("count", [716, 717])
def test_seven_tenths_full_is_not_too_full(count: int) -> None:
    table = TaskTable(ROW)
    table.write(np.arange(1, count + 1).astype(np.uint64), one=np.zeros(count), two=0)
    assert table.num_bytes == 16 * (1024 if count == 716 else 2048)
