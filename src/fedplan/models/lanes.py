"""Lanes: vectors of 16 floats for numba kernels, and the tiles that keep them in registers.

Numba turns loops into vector code only when it happens to see that it can, and never keeps a block
of accumulators in registers. So the few innermost loops are written with an explicit vector type:
LLVM maps it to whatever the machine has (one AVX-512 register, two of AVX2, four of NEON).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, njit, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.extending import intrinsic

LANES = 16
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_INDEX = ir.IntType(64)
_SQRT_HALF_BITS = 0x3F3504F3


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


vector = _Vector()


@register_default(_Vector)
class _VectorModel(PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, _VECTOR)


class Index:
    """A whole number known when the kernel runs; sums and products become instructions."""

    def __init__(self, builder: Any, value: Any) -> None:
        self._builder = builder
        self.value = ir.Constant(_INDEX, value) if isinstance(value, int) else value

    def __add__(self, other: Index | int) -> Index:
        return self._with("add", other)

    def __mul__(self, other: Index | int) -> Index:
        return self._with("mul", other)

    def __floordiv__(self, other: Index | int) -> Index:
        return self._with("udiv", other)

    def __mod__(self, other: Index | int) -> Index:
        return self._with("urem", other)

    def _with(self, operation: str, other: Index | int) -> Index:
        value = Index(self._builder, other).value if isinstance(other, int) else other.value
        return Index(self._builder, getattr(self._builder, operation)(self.value, value))


class Array:
    """The entries of an array, by their places; vectors may lie anywhere in memory."""

    def __init__(self, builder: Any, data: Any) -> None:
        self._builder, self._data = builder, data

    def slot(self, at: Index) -> Any:
        """The pointer to one entry."""
        return self._builder.gep(self._data, [at.value])

    def index(self, at: Index) -> Index:
        """One entry of an array of int64."""
        return Index(self._builder, self._builder.load(self.slot(at)))

    def splat(self, at: Index) -> Any:
        """Sixteen times the same float."""
        return _splat(self._builder, self._builder.load(self.slot(at)))

    def load(self, at: Index) -> Any:
        """Sixteen floats from here on."""
        value = self._builder.load(self._vector_slot(at))
        value.align = 4
        return value

    def store(self, value: Any, at: Index) -> None:
        """Store sixteen floats from here on."""
        self._builder.store(value, self._vector_slot(at)).align = 4

    def _vector_slot(self, at: Index) -> Any:
        return self._builder.bitcast(self.slot(at), _VECTOR.as_pointer())


class Sum:
    """A vector that products are added to; LLVM keeps it in a register."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._slot = cgutils.alloca_once_value(builder, filled(0.0))

    def add(self, a: Any, b: Any) -> None:
        """Add a * b, lane by lane."""
        self._builder.store(call(self._builder, "fma", a, b, self.value), self._slot)

    @property
    def value(self) -> Any:
        """The sum so far."""
        return self._builder.load(self._slot)


def emits(result: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a kernel function from one that writes its instructions with an LLVM builder.

    It is handed the builder, then an `Array` for every array, an `Index` for every whole number,
    and floats and vectors as LLVM has them. A parameter annotated `int` is a number that shapes the
    instructions: kernels must give a constant.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        parameters = list(signature(emit).parameters.values())[1:]

        @wraps(emit)
        def define(_context: Any, *kinds: Any) -> Any:
            taken = [_taken(*pair) for pair in zip(parameters, kinds, strict=True)]
            if None in taken:
                return None

            def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                pairs = zip(taken, values, strict=True)
                emitted = emit(builder, *(_handed(context, builder, *pair) for pair in pairs))
                return context.get_dummy_value() if result is types.none else emitted

            return result(*taken), generate

        return intrinsic(define)

    return decorate


def _taken(parameter: Parameter, kind: Any) -> Any:
    """The type to which an argument of this type is converted; None if it cannot be."""
    if parameter.annotation in (int, "int"):
        return kind if isinstance(kind, types.IntegerLiteral) else None
    if isinstance(kind, types.Integer):
        return types.intp
    return types.float32 if isinstance(kind, types.Float) else kind


def _handed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """What the function that writes instructions gets for a value of this type."""
    if isinstance(kind, types.IntegerLiteral):
        return kind.literal_value
    if isinstance(kind, types.Array):
        return Array(builder, context.make_array(kind)(context, builder, value).data)
    return Index(builder, value) if kind is types.intp else value


@contextmanager
def loop(builder: Any, count: Index) -> Iterator[Index]:
    """Instructions that run for every number below `count`."""
    with cgutils.for_range(builder, count.value, intp=_INDEX) as running:
        yield Index(builder, running.index)


def filled(value: float) -> Any:
    """A constant vector of one number."""
    return ir.Constant(_VECTOR, [value] * LANES)


def call(builder: Any, name: str, *args: Any) -> Any:
    """One of LLVM's own functions on vectors."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    full = f"llvm.{name}.v{LANES}f32"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, full), args)


def sum_lanes(builder: Any, value: Any) -> Any:
    """The sum of sixteen lanes, by halves."""
    for step in (8, 4, 2, 1):
        mask = ir.Constant(_INTS, [lane ^ step for lane in range(LANES)])
        value = builder.fadd(value, builder.shuffle_vector(value, value, mask))
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def _splat(builder: Any, scalar: Any) -> Any:
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, _ints(0))


def _ints(value: int) -> Any:
    return ir.Constant(_INTS, [value] * LANES)


add = emits(vector)(lambda builder, a, b: builder.fadd(a, b))
subtract = emits(vector)(lambda builder, a, b: builder.fsub(a, b))
multiply = emits(vector)(lambda builder, a, b: builder.fmul(a, b))
divide = emits(vector)(lambda builder, a, b: builder.fdiv(a, b))
fma = emits(vector)(lambda builder, a, b, c: call(builder, "fma", a, b, c))
maximum = emits(vector)(lambda builder, a, b: call(builder, "maxnum", a, b))
nearest = emits(vector)(lambda builder, a: call(builder, "rint", a))
load = emits(vector)(lambda _builder, array, at: array.load(at))
store = emits(types.none)(lambda _builder, array, at, value: array.store(value, at))
splat = emits(vector)(_splat)
lane_sum = emits(types.float32)(sum_lanes)


@emits(vector)
def where_greater(builder, a, b, when, otherwise):
    """Lane by lane, `when` where a > b, `otherwise` elsewhere."""
    return builder.select(builder.fcmp_ordered(">", a, b), when, otherwise)


@emits(vector)
def where_equal(builder, a, b, when, otherwise):
    """Lane by lane, `when` where a == b, `otherwise` elsewhere."""
    return builder.select(builder.fcmp_ordered("==", a, b), when, otherwise)


@emits(types.int64)
def nonzero(builder, x):
    """A whole number whose bit i is set where lane i is anything but zero, be it NaN."""
    some = builder.fcmp_unordered("!=", x, filled(0.0))
    return builder.zext(builder.bitcast(some, ir.IntType(LANES)), _INDEX)


@emits(vector)
def power_of_two(builder, exponent):
    """2**e for whole e between -126 and 127."""
    biased = builder.add(builder.fptosi(exponent, _INTS), _ints(127))
    return builder.bitcast(builder.shl(biased, _ints(23)), _VECTOR)


@emits(vector)
def exponent(builder, x):
    """The whole e for which x / 2**e lies in [sqrt(1/2), sqrt(2)), x positive."""
    shifted = builder.sub(builder.bitcast(x, _INTS), _ints(_SQRT_HALF_BITS))
    return builder.sitofp(builder.ashr(shifted, _ints(23)), _VECTOR)


@emits(types.none)
def transpose(builder, source, offsets, first, column, target, at, stride):
    """target[at + f * stride + i] = source[offsets[first + i] + column + f], f and i below 16."""
    rows = [source.load(offsets.index(first + i) + column) for i in range(LANES)]
    for step in (8, 4, 2, 1):  # swap ever smaller off-diagonal blocks
        low = [LANES + (lane ^ step) if lane & step else lane for lane in range(LANES)]
        high = [LANES + lane if lane & step else lane | step for lane in range(LANES)]
        for i in range(LANES):
            if not i & step:
                a, b = rows[i], rows[i | step]
                rows[i] = builder.shuffle_vector(a, b, ir.Constant(_INTS, low))
                rows[i | step] = builder.shuffle_vector(a, b, ir.Constant(_INTS, high))
    for f, row in enumerate(rows):
        target.store(row, at + stride * f)


@emits(types.none)
def dot_tile(builder, xt, at, stride, w, row, row_step, places, count, out, rows: int):
    """out[r * stride + at] = sum over i of xt[i * stride + at] * w[r * row_step + place of i].

    Sixteen samples at once, i below `count`, for `rows` rows r from `row` on, held in registers.
    The place of i is i * places, or places[i] where that is an array.
    """
    lines = [row + r for r in range(rows)]
    sums = [Sum(builder) for _ in lines]
    starts = [line * row_step for line in lines]
    with loop(builder, count) as i:
        value = xt.load(i * stride + at)
        place = places.index(i) if isinstance(places, Array) else i * places
        for total, start in zip(sums, starts, strict=True):
            total.add(value, w.splat(start + place))
    for line, total in zip(lines, sums, strict=True):
        out.store(total.value, line * stride + at)


@emits(types.none)
def outer_tile(builder, x, offsets, count, column, p, row, stride, w, width, scale, classes: int):
    """w[(row + c) * width + column + f] += scale * sum over s of p[(row + c) * stride + s] x_s[f].

    Thirty-two features f of the samples x_s = x[offsets[s] + column :], for `classes` rows of w.
    """
    halves = (0, LANES)
    lines = [row + c for c in range(classes)]
    sums = [[Sum(builder) for _ in halves] for _ in lines]
    with loop(builder, count) as s:
        start = offsets.index(s) + column
        parts = [x.load(start + half) for half in halves]
        for line, totals in zip(lines, sums, strict=True):
            error = p.splat(line * stride + s)
            for total, part in zip(totals, parts, strict=True):
                total.add(part, error)
    factor = _splat(builder, scale)
    for line, totals in zip(lines, sums, strict=True):
        for half, total in zip(halves, totals, strict=True):
            place = line * width + column + half
            w.store(call(builder, "fma", total.value, factor, w.load(place)), place)


@njit(inline="always")
def aligned_zeros(size):
    """Zeros that begin at a cache line, so that no vector straddles two."""
    array = np.zeros(size + LANES, np.float32)
    skip = (-array.ctypes.data % 64) // 4
    return array[skip : skip + size]


@njit(inline="always")
def constant(value):
    """A vector of one number."""
    return splat(float32(value))
