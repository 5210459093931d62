"""Messages over pipes arrive whole and in order, however they are cut, and nothing in them can run."""

from __future__ import annotations

import asyncio
import os

import numpy as np
import pytest

from strop.workers.frames import Frame, Frames, decode, encode

GARBAGE = [
    *(b"", b"3", b"{}", b"[]", b"[{}, 1]", b"[[], []]", b"[" * 100_000, b"\xff", b"[{}, []]", b"[{}, [1]]"),
    *(f'[{{}}, [["x", {layout}]]]'.encode() for layout in ('"O", [1]', '"f8", [2]', '"f8", [-1]', '"f8", [1.0]')),
    *(f'[{{}}, [["x", {layout}]]]'.encode() for layout in ('"f8", 1', '"f4,(", [1]', '"i4,i4", [1]', '"V8", [1]')),
    *(f'[{{}}, [["x", {layout}]]]'.encode() for layout in ("1, [1]", '"f8"', '"f8", [99999999999999]', '"f8", ["1"]')),
]


def test_arrays_keep_type_shape_and_bits() -> None:
    arrays = {"a": np.arange(6).reshape(2, 3).T, "b": np.array([0.1, np.nan], np.float32), "c": np.zeros((0, 4), bool)}
    data = encode({"kind": "x", "n": 3}, arrays)
    size = int.from_bytes(data[:4], "big")
    frame = decode(data[12 : 12 + size], data[12 + size :])
    assert frame.head == {"kind": "x", "n": 3}
    for name, array in arrays.items():
        assert frame.arrays[name].dtype == array.dtype and frame.arrays[name].shape == array.shape
        assert frame.arrays[name].tobytes() == np.ascontiguousarray(array).tobytes()


def test_more_than_a_pipe_holds_goes_through_in_order() -> None:
    (here, there), (back, forth) = os.pipe(), os.pipe()
    giving, taking = Frames(back, there), Frames(here, forth)
    heard: list[Frame] = []

    async def talk() -> str:
        over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        taking.attach(heard.append, over.set_result)
        giving.attach(heard.append, lambda why: None)
        for number in range(20):
            giving.send({"number": number}, {"body": np.full(50_000, number)})
        while len(heard) < 20:
            await asyncio.sleep(0)
        giving.detach()
        os.close(there)
        return await over

    assert asyncio.run(talk()) == ""
    assert [(f.head["number"], int(f.arrays["body"].sum()) // 50_000) for f in heard] == [(n, n) for n in range(20)]
    for descriptor in (here, back, forth):
        os.close(descriptor)


def test_garbage_is_refused() -> None:
    for text in GARBAGE:
        with pytest.raises(ValueError):
            decode(text, b"12345678")
    here, there = os.pipe()
    frames = Frames(here, there)
    os.write(there, b"Traceback (most recent call last):\n")
    with pytest.raises(ValueError, match="something else writes to the pipe"):
        frames.wait()
    for descriptor in (here, there):
        os.close(descriptor)
