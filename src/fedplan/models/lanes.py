"""Lanes: vectors of 16 floats for numba kernels, and the tiles that keep them in registers.

Numba turns loops into vector code only when it happens to see that it can, and never keeps a block
of accumulators in registers. So the few innermost loops are written with an explicit vector type:
LLVM maps it to whatever the machine has (one AVX-512 register, two of AVX2, four of NEON).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.extending import intrinsic

LANES = 16
VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
INDEX = ir.IntType(64)
_SQRT_HALF_BITS = 0x3F3504F3


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


vector = _Vector()


@register_default(_Vector)
class _VectorModel(PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, VECTOR)


def emit_data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The pointer to an array's first entry."""
    return context.make_array(kind)(context, builder, value).data


def emit_load(builder: Any, data: Any, at: Any) -> Any:
    """Sixteen floats from data[at] on, wherever that lies in memory."""
    value = builder.load(builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer()))
    value.align = 4
    return value


def emit_store(builder: Any, value: Any, data: Any, at: Any) -> None:
    """Sixteen floats into data[at] and on."""
    slot = builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())
    builder.store(value, slot).align = 4


def emit_splat(builder: Any, scalar: Any) -> Any:
    """Sixteen times the same float."""
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(_INTS, [0] * LANES))


def emit_call(builder: Any, name: str, *args: Any) -> Any:
    """One of LLVM's own functions on vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(args))
    full = f"llvm.{name}.v{LANES}f32"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, full), args)


def emit_sum(builder: Any, value: Any) -> Any:
    """The sum of sixteen lanes, by halves."""
    for step in (8, 4, 2, 1):
        mask = ir.Constant(_INTS, [lane ^ step for lane in range(LANES)])
        value = builder.fadd(value, builder.shuffle_vector(value, value, mask))
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


@njit(inline="always")
def aligned_zeros(size):  # type: ignore[no-untyped-def]
    """Zeros that begin at a cache line, so that no vector straddles two."""
    array = np.zeros(size + LANES, np.float32)
    skip = (-array.ctypes.data % 64) // 4
    return array[skip : skip + size]


@intrinsic
def load(_context, array, at):  # type: ignore[no-untyped-def]
    """array[at : at + 16]."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return emit_load(builder, emit_data(context, builder, signature.args[0], args[0]), args[1])

    return vector(array, types.intp), generate


@intrinsic
def store(_context, array, at, value):  # type: ignore[no-untyped-def]
    """array[at : at + 16] = value."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = emit_data(context, builder, signature.args[0], args[0])
        emit_store(builder, args[2], data, args[1])
        return context.get_dummy_value()

    return types.none(array, types.intp, vector), generate


@intrinsic
def splat(_context, scalar):  # type: ignore[no-untyped-def]
    """Sixteen times the same float."""

    def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
        return emit_splat(builder, args[0])

    return vector(types.float32), generate


def _binary(operation: str) -> Any:
    @intrinsic
    def operate(_context, a, b):  # type: ignore[no-untyped-def]
        def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
            return getattr(builder, operation)(*args)

        return vector(vector, vector), generate

    return operate


def _function(name: str, arity: int) -> Any:
    if arity == 1:

        @intrinsic
        def apply(_context, a):  # type: ignore[no-untyped-def]
            return vector(vector), lambda _t, builder, _s, args: emit_call(builder, name, *args)
    elif arity == 2:

        @intrinsic
        def apply(_context, a, b):  # type: ignore[no-untyped-def]
            kind = vector(vector, vector)
            return kind, lambda _t, builder, _s, args: emit_call(builder, name, *args)
    else:

        @intrinsic
        def apply(_context, a, b, c):  # type: ignore[no-untyped-def]
            kind = vector(vector, vector, vector)
            return kind, lambda _t, builder, _s, args: emit_call(builder, name, *args)

    return apply


add, subtract, multiply, divide = (_binary(name) for name in ("fadd", "fsub", "fmul", "fdiv"))
fma = _function("fma", 3)
maximum = _function("maxnum", 2)
nearest = _function("rint", 1)


def _select(comparison: str) -> Any:
    @intrinsic
    def choose(_context, a, b, when, otherwise):  # type: ignore[no-untyped-def]
        def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
            chosen = builder.fcmp_ordered(comparison, args[0], args[1])
            return builder.select(chosen, args[2], args[3])

        return vector(vector, vector, vector, vector), generate

    return choose


# Lane by lane, the third where the first compares so with the second, the fourth elsewhere.
where_greater, where_equal = _select(">"), _select("==")


@intrinsic
def lane_sum(_context, x):  # type: ignore[no-untyped-def]
    """The sum of the sixteen lanes."""

    def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
        return emit_sum(builder, args[0])

    return types.float32(vector), generate


@intrinsic
def power_of_two(_context, exponent):  # type: ignore[no-untyped-def]
    """2**e for whole e between -126 and 127."""

    def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
        whole = builder.fptosi(args[0], _INTS)
        biased = builder.add(whole, ir.Constant(_INTS, [127] * LANES))
        return builder.bitcast(builder.shl(biased, ir.Constant(_INTS, [23] * LANES)), VECTOR)

    return vector(vector), generate


@njit(inline="always")
def constant(value):  # type: ignore[no-untyped-def]
    """A vector of one number."""
    return splat(numba.float32(value))


@njit(inline="always")
def exp(x):  # type: ignore[no-untyped-def]
    """e**x to two units in the last place; 0 below -87."""
    x = maximum(x, constant(-87.0))
    n = nearest(multiply(x, constant(1.4426950408889634)))
    r = fma(n, constant(-0.693359375), x)
    r = fma(n, constant(2.12194440e-4), r)
    p = constant(1.9875691500e-4)
    p = fma(p, r, constant(1.3981999507e-3))
    p = fma(p, r, constant(8.3334519073e-3))
    p = fma(p, r, constant(4.1665795894e-2))
    p = fma(p, r, constant(1.6666665459e-1))
    p = fma(p, r, constant(5.0000001201e-1))
    p = fma(multiply(r, r), p, add(r, constant(1.0)))
    return multiply(p, power_of_two(n))


@intrinsic
def exponent(_context, x):  # type: ignore[no-untyped-def]
    """The whole e for which x / 2**e lies in [sqrt(1/2), sqrt(2)), x positive."""

    def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(args[0], _INTS)
        shifted = builder.sub(bits, ir.Constant(_INTS, [_SQRT_HALF_BITS] * LANES))
        whole = builder.ashr(shifted, ir.Constant(_INTS, [23] * LANES))
        return builder.sitofp(whole, VECTOR)

    return vector(vector), generate


@njit(inline="always")
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of normal positive numbers, to two units in the last place."""
    e = exponent(x)
    m = subtract(multiply(x, power_of_two(multiply(e, constant(-1.0)))), constant(1.0))
    z = multiply(m, m)
    p = constant(7.0376836292e-2)
    p = fma(p, m, constant(-1.1514610310e-1))
    p = fma(p, m, constant(1.1676998740e-1))
    p = fma(p, m, constant(-1.2420140846e-1))
    p = fma(p, m, constant(1.4249322787e-1))
    p = fma(p, m, constant(-1.6668057665e-1))
    p = fma(p, m, constant(2.0000714765e-1))
    p = fma(p, m, constant(-2.4999993993e-1))
    p = fma(p, m, constant(3.3333331174e-1))
    y = multiply(multiply(m, z), p)
    y = fma(e, constant(-2.12194440e-4), y)
    y = fma(z, constant(-0.5), y)
    return fma(e, constant(0.693359375), add(m, y))


@intrinsic
def transpose(_context, source, offsets, first, column, target, at, stride):  # type: ignore[no-untyped-def]
    """target[at + f * stride + i] = source[offsets[first + i] + column + f], f and i below 16."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = emit_data(context, builder, signature.args[0], args[0])
        places = emit_data(context, builder, signature.args[1], args[1])
        out = emit_data(context, builder, signature.args[4], args[4])
        rows = []
        for i in range(LANES):
            place = builder.gep(places, [builder.add(args[2], ir.Constant(INDEX, i))])
            rows.append(emit_load(builder, data, builder.add(builder.load(place), args[3])))
        for step in (8, 4, 2, 1):  # swap ever smaller off-diagonal blocks
            low = [LANES + (lane ^ step) if lane & step else lane for lane in range(LANES)]
            high = [LANES + lane if lane & step else lane | step for lane in range(LANES)]
            for i in range(LANES):
                if not i & step:
                    a, b = rows[i], rows[i | step]
                    rows[i] = builder.shuffle_vector(a, b, ir.Constant(_INTS, low))
                    rows[i | step] = builder.shuffle_vector(a, b, ir.Constant(_INTS, high))
        for f in range(LANES):
            offset = builder.mul(args[6], ir.Constant(INDEX, f))
            emit_store(builder, rows[f], out, builder.add(args[5], offset))
        return context.get_dummy_value()

    kind = types.none(source, offsets, types.intp, types.intp, target, types.intp, types.intp)
    return kind, generate


def _emit_dots(builder: Any, x: Any, w: Any, out: Any, where: Any, tile: int, inner: Any) -> None:
    """Sums over i of sixteen samples' x times one weight, for `tile` rows, held in registers.

    where : (at, stride, row, row_step, count) as in `dot_tile`.
    inner : gives the place of weight i within its row.
    """
    position, stride, row, row_step, count = where
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(tile)]
    lines = [builder.add(row, ir.Constant(INDEX, r)) for r in range(tile)]
    bases = [builder.mul(line, row_step) for line in lines]
    with cgutils.for_range(builder, count, intp=INDEX) as loop:
        start = builder.add(builder.mul(loop.index, stride), position)
        value, place = emit_load(builder, x, start), inner(loop.index)
        for total, base in zip(sums, bases, strict=True):
            weight = builder.load(builder.gep(w, [builder.add(base, place)]))
            new = emit_call(builder, "fma", value, emit_splat(builder, weight), builder.load(total))
            builder.store(new, total)
    for line, total in zip(lines, sums, strict=True):
        place = builder.add(builder.mul(line, stride), position)
        emit_store(builder, builder.load(total), out, place)


@intrinsic
def dot_tile(_context, xt, at, stride, w, row, row_step, step, count, out, rows):  # type: ignore[no-untyped-def]
    """out[r * stride + at] = sum over i of xt[i * stride + at] * w[r * row_step + i * step].

    Sixteen samples at once, i below `count`, for `rows` (a literal) rows r from `row` on.
    """
    if not isinstance(rows, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        x, w_, out_ = (emit_data(context, builder, signature.args[n], args[n]) for n in (0, 3, 8))
        where = (args[1], args[2], args[4], args[5], args[7])
        tile = rows.literal_value
        _emit_dots(builder, x, w_, out_, where, tile, lambda i: builder.mul(i, args[6]))
        return context.get_dummy_value()

    i = types.intp
    return types.none(xt, i, i, w, i, i, i, i, out, rows), generate


@intrinsic
def gather_dot_tile(_context, xt, at, stride, w, row, row_step, places, count, out, rows):  # type: ignore[no-untyped-def]
    """As `dot_tile`, with weight i at places[i] of its row."""
    if not isinstance(rows, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        x, w_, out_ = (emit_data(context, builder, signature.args[n], args[n]) for n in (0, 3, 8))
        places_ = emit_data(context, builder, signature.args[6], args[6])
        where = (args[1], args[2], args[4], args[5], args[7])

        def inner(index: Any) -> Any:
            return builder.load(builder.gep(places_, [index]))

        _emit_dots(builder, x, w_, out_, where, rows.literal_value, inner)
        return context.get_dummy_value()

    i = types.intp
    return types.none(xt, i, i, w, i, i, places, i, out, rows), generate


@intrinsic
def outer_tile(_context, x, offsets, count, column, p, row, stride, w, width, scale, classes):  # type: ignore[no-untyped-def]
    """w[(row + c) * width + column + f] += scale * sum over s of p[(row + c) * stride + s] x_s[f].

    Thirty-two features f of the samples x_s = x[offsets[s] + column :], for `classes` rows of w.
    """
    if not isinstance(classes, types.IntegerLiteral):
        return None
    rows = classes.literal_value

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        samples = emit_data(context, builder, signature.args[0], args[0])
        places = emit_data(context, builder, signature.args[1], args[1])
        errors = emit_data(context, builder, signature.args[4], args[4])
        weights = emit_data(context, builder, signature.args[7], args[7])
        column_, row_, step, width_ = args[3], args[5], args[6], args[8]
        half = ir.Constant(INDEX, LANES)
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(2 * rows)]
        lines = [builder.add(row_, ir.Constant(INDEX, c)) for c in range(rows)]
        with cgutils.for_range(builder, args[2], intp=INDEX) as loop:
            start = builder.add(builder.load(builder.gep(places, [loop.index])), column_)
            x = [emit_load(builder, samples, at) for at in (start, builder.add(start, half))]
            for c, line in enumerate(lines):
                place = builder.add(builder.mul(line, step), loop.index)
                error = emit_splat(builder, builder.load(builder.gep(errors, [place])))
                for part in range(2):
                    total = sums[2 * c + part]
                    new = emit_call(builder, "fma", x[part], error, builder.load(total))
                    builder.store(new, total)
        factor = emit_splat(builder, args[9])
        for c, line in enumerate(lines):
            for part in range(2):
                place = builder.add(builder.mul(line, width_), column_)
                place = builder.add(place, ir.Constant(INDEX, part * LANES))
                old = emit_load(builder, weights, place)
                new = emit_call(builder, "fma", builder.load(sums[2 * c + part]), factor, old)
                emit_store(builder, new, weights, place)
        return context.get_dummy_value()

    i = types.intp
    return types.none(x, offsets, i, i, p, i, i, w, i, types.float32, classes), generate
