"""The inner loops on sorted keys: as the bytes of a file, and without those that are known.

A block of a file is sorted, its first key stands in the file's index, and each further key is its
distance from the one before: seven bits a byte, the lowest first, with the eighth bit on all bytes
of a distance but its last one.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as Python.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
from functools import cache
from typing import Any

from epochgate.fsm.checker.engines import kernels
from epochgate.fsm.checker.engines.store_kernels import Bytes, Words, first_from

DISTANCE_BYTES_MAX = 10
"""64 bits, seven at a time."""


def encode(keys: Words, count: int, data: Bytes) -> int:
    """Write the distances between sorted keys; returns how many bytes they take."""
    n = 0
    i = 1
    while i < count:
        distance = keys[i] - keys[i - 1]
        while (distance >> 7) != 0:
            data[n] = (distance & 127) | 128
            distance = distance >> 7
            n += 1
        data[n] = distance
        n += 1
        i += 1
    return n


def decode(data: Bytes, first: int, count: int, keys: Words) -> int:
    """Read the keys of a block that begins with `first`; returns how many bytes were read."""
    key = first
    keys[0] = key
    n = 0
    i = 1
    while i < count:
        byte = data[n]
        n += 1
        distance = byte & 127
        shift = 7
        while byte > 127:
            byte = data[n]
            n += 1
            distance = distance | ((byte & 127) << shift)
            shift = shift + 7
        key = key + distance
        keys[i] = key
        i += 1
    return n


def unlike(keys: Words, count: int) -> int:
    """Keep each of the sorted keys once; returns how many are left."""
    n = 0
    i = 0
    while i < count:
        key = keys[i]
        is_new = 1
        if i > 0:
            is_new = key != keys[n - 1]
        if is_new:
            keys[n] = key
            n += 1
        i += 1
    return n


def mark(
    keys: Words, first: int, end: int, known: Words, start: int, stop: int, marks: Bytes
) -> int:
    """Mark the keys that are among the known ones; both are sorted."""
    i = first
    j = start
    while i < end and j < stop:
        one = keys[i]
        other = known[j]
        if one == other:
            marks[i] = 1
        i += one <= other
        j += other <= one
    return i


def mark_few(
    keys: Words, first: int, end: int, known: Words, start: int, stop: int, marks: Bytes
) -> int:
    """The same for few known keys, each of which is looked up."""
    begin = first
    j = start
    while j < stop:
        wanted = known[j]
        begin = first_from(keys, begin, end, wanted)
        if begin < end:
            if keys[begin] == wanted:
                marks[begin] = 1
        j += 1
    return begin


def unmarked(keys: Words, count: int, marks: Bytes) -> int:
    """Keep the keys without a mark; returns how many."""
    n = 0
    i = 0
    while i < count:
        keys[n] = keys[i]
        n += marks[i] == 0
        i += 1
    return n


KERNELS = (encode, decode, unlike, mark, mark_few, unmarked)


class KeyFunctions:
    """These kernels as callables."""

    def __init__(self) -> None:
        import llvmlite.ir as ir
        from epochgate.fsm.checker.compiler import kernel, machine_code as made

        sources = [inspect.getsource(each) for each in (kernel, first_from, *KERNELS)]
        key = hashlib.sha256("\0".join(sources).encode()).hexdigest()
        code = made.kept(key, made.OPTIMISED)
        if code is None:
            translated = kernel.Kernel(ir.Module("keys"), kernels.CONSTANTS)
            translated.add(first_from, inline=True)
            for each in KERNELS:
                translated.add(each)
            code = made.compiled(key, made.OPTIMISED, str(translated.module))
        p, i = ctypes.c_void_p, ctypes.c_int64
        self.encode = code.function("encode", p, i, p)
        self.decode = code.function("decode", p, i, i, p)
        self.unlike = code.function("unlike", p, i)
        self.mark = code.function("mark", p, i, i, p, i, i, p)
        self.mark_few = code.function("mark_few", p, i, i, p, i, i, p)
        self.unmarked = code.function("unmarked", p, i, p)


@cache
def key_functions() -> Any:
    """The kernels, compiled once for a process."""
    return KeyFunctions()
