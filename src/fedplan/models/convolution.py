"""Tiles of 5 x 5 convolutions, fused with ReLU and 2 x 2 max pooling, one sample a lane.

An image is rows of vectors: pixel (y, x) of a channel starts at y * row + x * 16. A tile computes
one pooling window, so that what the pooling drops is never stored: forward keeps the largest of
four sums and which one it was (0 to 3 in reading order, 4 where ReLU let nothing through).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedplan.models.lanes import (
    INDEX,
    LANES,
    VECTOR,
    emit_call,
    emit_data,
    emit_load,
    emit_splat,
    emit_store,
    emit_sum,
)

SIDE = 5
TAPS = SIDE * SIDE
NOTHING = 4.0  # "which" of a window whose largest sum is not positive


def _index(value: int) -> Any:
    return ir.Constant(INDEX, value)


def _vector(value: float) -> Any:
    return ir.Constant(VECTOR, [value] * LANES)


def _zeroed(builder: Any, count: int) -> list[Any]:
    """Sums, which LLVM keeps in registers."""
    return [cgutils.alloca_once_value(builder, _vector(0.0)) for _ in range(count)]


def _accumulate(builder: Any, total: Any, a: Any, b: Any) -> None:
    builder.store(emit_call(builder, "fma", a, b, builder.load(total)), total)


@intrinsic
def convolve_pool_tile(  # type: ignore[no-untyped-def]
    _context, x, at, row, plane, planes, w, taps, biases, out, which, place, step, outs
):
    """One pooling window of `outs` (a literal) output channels, into out and which.

    x[at + c * plane] is the window's corner in channel c of `planes`; weights of output o and
    channel c start at w[taps + (o * planes + c) * 25], biases at w[biases]; output o goes to
    place + o * step.
    """
    if not isinstance(outs, types.IntegerLiteral):
        return None
    count = outs.literal_value

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        arrays = {n: emit_data(context, builder, signature.args[n], args[n]) for n in (0, 5, 8, 9)}
        at_, row_, plane_, planes_, taps_ = args[1], args[2], args[3], args[4], args[6]
        sums = [_zeroed(builder, 4) for _ in range(count)]
        per_output = builder.mul(planes_, _index(TAPS))
        with cgutils.for_range(builder, planes_, intp=INDEX) as channel:
            corner = builder.add(at_, builder.mul(channel.index, plane_))
            channel_taps = builder.add(taps_, builder.mul(channel.index, _index(TAPS)))
            with cgutils.for_range(builder, _index(SIDE), intp=INDEX) as line:
                upper = builder.add(corner, builder.mul(line.index, row_))
                line_taps = builder.add(channel_taps, builder.mul(line.index, _index(SIDE)))
                pixels = [
                    [
                        emit_load(builder, arrays[0], builder.add(start, _index(j * LANES)))
                        for j in range(SIDE + 1)
                    ]
                    for start in (upper, builder.add(upper, row_))
                ]
                for j in range(SIDE):
                    for o in range(count):
                        tap = builder.add(line_taps, builder.mul(per_output, _index(o)))
                        tap = builder.add(tap, _index(j))
                        weight = emit_splat(builder, builder.load(builder.gep(arrays[5], [tap])))
                        for q in range(4):
                            _accumulate(builder, sums[o][q], pixels[q // 2][j + q % 2], weight)
        for o in range(count):
            values = [builder.load(total) for total in sums[o]]
            best, index = values[0], _vector(0.0)
            for q in range(1, 4):
                larger = builder.fcmp_ordered(">", values[q], best)
                best = builder.select(larger, values[q], best)
                index = builder.select(larger, _vector(float(q)), index)
            bias = builder.load(builder.gep(arrays[5], [builder.add(args[7], _index(o))]))
            best = builder.fadd(best, emit_splat(builder, bias))
            # "not <= 0", so that a NaN goes on to where divergence is seen
            passes = builder.fcmp_unordered(">", best, _vector(0.0))
            target = builder.add(args[10], builder.mul(args[11], _index(o)))
            value = builder.select(passes, best, _vector(0.0))
            emit_store(builder, value, arrays[8], target)
            index = builder.select(passes, index, _vector(NOTHING))
            emit_store(builder, index, arrays[9], target)
        return context.get_dummy_value()

    i = types.intp
    return types.none(x, i, i, i, i, w, i, i, out, which, i, i, outs), generate


@intrinsic
def tap_gradient_tile(_context, x, at, row, side, error, which, place, gradient, taps):  # type: ignore[no-untyped-def]
    """gradient[taps + 5 i + j] += sum of error times pixel, over windows and samples.

    x[at] is the corner of one channel's first window; error and which hold side x side windows of
    one output channel from `place` on.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        arrays = {n: emit_data(context, builder, signature.args[n], args[n]) for n in (0, 4, 5, 7)}
        at_, row_, side_ = args[1], args[2], args[3]
        sums = _zeroed(builder, TAPS)
        with cgutils.for_range(builder, side_, intp=INDEX) as down:
            line = builder.add(at_, builder.mul(builder.mul(down.index, _index(2)), row_))
            first = builder.mul(down.index, side_)
            with cgutils.for_range(builder, side_, intp=INDEX) as across:
                window = builder.mul(builder.add(first, across.index), _index(LANES))
                window = builder.add(args[6], window)
                whole = emit_load(builder, arrays[4], window)
                chosen = emit_load(builder, arrays[5], window)
                errors = [
                    builder.select(
                        builder.fcmp_ordered("==", chosen, _vector(float(q))), whole, _vector(0.0)
                    )
                    for q in range(4)
                ]
                corner = builder.add(line, builder.mul(across.index, _index(2 * LANES)))
                for i in range(SIDE + 1):
                    start = builder.add(corner, builder.mul(row_, _index(i)))
                    for j in range(SIDE + 1):
                        place_ = builder.add(start, _index(j * LANES))
                        pixel = emit_load(builder, arrays[0], place_)
                        for q in range(4):
                            up, left = i - q // 2, j - q % 2
                            if 0 <= up < SIDE and 0 <= left < SIDE:
                                _accumulate(builder, sums[up * SIDE + left], pixel, errors[q])
        for tap, total in enumerate(sums):
            slot = builder.gep(arrays[7], [builder.add(args[8], _index(tap))])
            builder.store(
                builder.fadd(builder.load(slot), emit_sum(builder, builder.load(total))), slot
            )
        return context.get_dummy_value()

    i = types.intp
    return types.none(x, i, i, i, error, which, i, gradient, i), generate


@intrinsic
def pixel_gradient_tile(  # type: ignore[no-untyped-def]
    _context, error, at, plane, planes, first, end, w, taps, step, out, place, width
):
    """One row of the gradient with respect to the pixels of one input channel, into out.

    Errors before pooling stand in rows of `width` (a literal); the row has width + 4 pixels. Tap
    row i, from `first` to before `end`, meets the errors i rows before error[at]; channel o of
    `planes` starts o * plane later, and its weights at w[taps + o * step].
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    length = width.literal_value

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        arrays = {n: emit_data(context, builder, signature.args[n], args[n]) for n in (0, 6, 9)}
        sums = _zeroed(builder, length + SIDE - 1)
        with cgutils.for_range(builder, args[3], intp=INDEX) as channel:
            rows = builder.add(args[1], builder.mul(channel.index, args[2]))
            channel_taps = builder.add(args[7], builder.mul(channel.index, args[8]))
            with cgutils.for_range(builder, args[5], start=args[4], intp=INDEX) as tap_row:
                start = builder.sub(rows, builder.mul(tap_row.index, _index(length * LANES)))
                line = builder.add(channel_taps, builder.mul(tap_row.index, _index(SIDE)))
                weights = [
                    emit_splat(
                        builder,
                        builder.load(builder.gep(arrays[6], [builder.add(line, _index(j))])),
                    )
                    for j in range(SIDE)
                ]
                for k in range(length):
                    value = emit_load(builder, arrays[0], builder.add(start, _index(k * LANES)))
                    for j in range(SIDE):
                        _accumulate(builder, sums[k + j], value, weights[j])
        for k, total in enumerate(sums):
            emit_store(
                builder,
                builder.load(total),
                arrays[9],
                builder.add(args[10], _index(k * LANES)),
            )
        return context.get_dummy_value()

    i = types.intp
    return types.none(error, i, i, i, i, i, w, i, i, out, i, width), generate
