"""Memory that can be released and mapped again at the same address, as captured CUDA graphs require.

On a GPU the addresses are reserved once, and memory is mapped to them while it is needed (CUDA virtual memory
management); in between, torch's allocator can use it.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from strop.errors import ConfigurationError

_PINNED, _ON_DEVICE, _READ_WRITE = 1, 1, 3  # of CUDA's enumerations: an allocation, where it is, who may use it
_OUT_OF_MEMORY = 2


class Returnable:
    """`content` is a tensor of bytes; its values are lost when the memory is released."""

    def __init__(self, size: int, device: torch.device) -> None:
        self._mapped = _Mapped(size, device) if device.type == "cuda" else None
        self.content = torch.zeros(size, dtype=torch.uint8) if self._mapped is None else self._mapped.content
        self._size, self.is_here = size, True

    def give_back(self) -> None:
        if self.is_here:
            self._resize(0)

    def take(self) -> None:
        if not self.is_here:
            self._resize(self._size)
            self.content.zero_()  # whoever had it meanwhile may have left there what is no number

    def _resize(self, size: int) -> None:
        if self._mapped is None:
            self.content.untyped_storage().resize_(size)
        elif size:
            self._mapped.map()
        else:
            self._mapped.unmap()
        self.is_here = size > 0


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class _Mapped:
    """Addresses on a GPU, with memory behind them from the beginning."""

    def __init__(self, size: int, device: torch.device) -> None:
        torch.cuda.synchronize(device)  # the driver knows this thread's device from here on
        place = torch.cuda.current_device() if device.index is None else device.index
        self._device, self._location, self._handle = device, _Location(_ON_DEVICE, place), ctypes.c_uint64()
        unit = ctypes.c_size_t()
        self._call("cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(self._properties), 0)
        self._size = ctypes.c_size_t(-(-size // unit.value) * unit.value)
        self._address = ctypes.c_uint64()
        nowhere = ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0)
        self._call("cuMemAddressReserve", ctypes.byref(self._address), self._size, *nowhere)
        self.map()
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (self._address.value, False),
            "version": 3,
        }
        self.content: Tensor = torch.as_tensor(self, device=device)

    def map(self) -> None:
        """Have memory behind the addresses; torch lets go of what it holds in reserve."""
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()
        create = ctypes.byref(self._handle), self._size, ctypes.byref(self._properties), ctypes.c_uint64(0)
        self._call("cuMemCreate", *create)
        nothing = ctypes.c_size_t(0), self._handle, ctypes.c_uint64(0)
        self._call("cuMemMap", self._address, self._size, *nothing)
        access = _Access(self._location, _READ_WRITE)
        self._call("cuMemSetAccess", self._address, self._size, ctypes.byref(access), ctypes.c_size_t(1))

    def unmap(self) -> None:
        torch.cuda.synchronize(self._device)  # nobody reads it any more
        self._call("cuMemUnmap", self._address, self._size)
        self._call("cuMemRelease", self._handle)

    @property
    def _properties(self) -> _Properties:
        return _Properties(_PINNED, 0, self._location, None, 0)

    @cached_property
    def _driver(self) -> Any:
        return ctypes.CDLL("libcuda.so.1")

    def _call(self, name: str, *arguments: Any) -> None:
        if status := self._driver[name](*arguments):
            if status == _OUT_OF_MEMORY:
                free, _ = torch.cuda.mem_get_info(self._device)
                raise ConfigurationError(
                    f"the engine's keys take {self._size.value / 2**30:.1f} GiB of the GPU and {free / 2**30:.1f} are "
                    "free: give the engine less memory"
                )
            raise ConfigurationError(f"the GPU's driver refused {name} with error {status}")
