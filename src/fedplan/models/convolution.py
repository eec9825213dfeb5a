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
    vector,
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


def _weight(builder: Any, array: Any, place: Any) -> Any:
    """One weight, for all lanes."""
    return emit_splat(builder, builder.load(builder.gep(array, [place])))


def _winner(builder: Any, which: Any) -> tuple[Any, Any]:
    """Lanes in which the right column of the window won, and those in which the lower row did."""
    first, second = (builder.fcmp_ordered("==", which, _vector(q)) for q in (1.0, 3.0))
    return builder.or_(first, second), builder.fcmp_ordered(">=", which, _vector(2.0))


def _emit_pool(builder: Any, sums: Any, biases: Any, targets: Any, places: Any) -> None:
    """Bias, ReLU and pooling of four sums an output channel, into (out, which) at its place.

    biases : (array, place of the first channel's bias).
    """
    for o, (totals, place) in enumerate(zip(sums, places, strict=True)):
        values = [builder.load(total) for total in totals]
        best, index = values[0], _vector(0.0)
        for q in range(1, 4):
            larger = builder.fcmp_ordered(">", values[q], best)
            best = builder.select(larger, values[q], best)
            index = builder.select(larger, _vector(float(q)), index)
        bias = _weight(builder, biases[0], builder.add(biases[1], _index(o)))
        best = builder.fadd(best, bias)
        # "not <= 0", so that a NaN goes on to where divergence is seen
        passes = builder.fcmp_unordered(">", best, _vector(0.0))
        emit_store(builder, builder.select(passes, best, _vector(0.0)), targets[0], place)
        emit_store(builder, builder.select(passes, index, _vector(NOTHING)), targets[1], place)


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
                        weight = _weight(builder, arrays[5], tap)
                        for q in range(4):
                            _accumulate(builder, sums[o][q], pixels[q // 2][j + q % 2], weight)
        places = [builder.add(args[10], builder.mul(args[11], _index(o))) for o in range(count)]
        _emit_pool(builder, sums, (arrays[5], args[7]), (arrays[8], arrays[9]), places)
        return context.get_dummy_value()

    i = types.intp
    return types.none(x, i, i, i, i, w, i, i, out, which, i, i, outs), generate


@intrinsic
def nonzero(_context, x):  # type: ignore[no-untyped-def]
    """A whole number whose bit i is set where lane i is anything but zero, be it NaN."""

    def generate(_target, builder, _signature, args):  # type: ignore[no-untyped-def]
        some = builder.fcmp_unordered("!=", args[0], _vector(0.0))
        return builder.zext(builder.bitcast(some, ir.IntType(LANES)), INDEX)

    return types.int64(vector), generate


@intrinsic
def convolve_pool_some_tile(  # type: ignore[no-untyped-def]
    _context, x, at, row, some, w, taps, biases, out, which, place, step, outs
):
    """As `convolve_pool_tile` for one input channel, with only the taps whose bits `some` has.

    The others must meet none but zeros in all sixteen samples.
    """
    if not isinstance(outs, types.IntegerLiteral):
        return None
    count = outs.literal_value

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        arrays = {n: emit_data(context, builder, signature.args[n], args[n]) for n in (0, 4, 7, 8)}
        sums = [_zeroed(builder, 4) for _ in range(count)]
        left = cgutils.alloca_once_value(builder, args[3])
        with cgutils.for_range(builder, builder.ctpop(args[3]), intp=INDEX):
            bits = builder.load(left)  # the lowest that is set is the next tap
            tap = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
            builder.store(builder.and_(bits, builder.sub(bits, _index(1))), left)
            down = builder.mul(builder.udiv(tap, _index(SIDE)), args[2])
            across = builder.mul(builder.urem(tap, _index(SIDE)), _index(LANES))
            corner = builder.add(args[1], builder.add(down, across))
            pixels = [
                emit_load(builder, arrays[0], builder.add(start, _index(j * LANES)))
                for start in (corner, builder.add(corner, args[2]))
                for j in range(2)
            ]
            for o in range(count):
                slot = builder.add(builder.add(args[5], tap), _index(o * TAPS))
                weight = _weight(builder, arrays[4], slot)
                for q in range(4):
                    _accumulate(builder, sums[o][q], pixels[q], weight)
        places = [builder.add(args[9], builder.mul(args[10], _index(o))) for o in range(count)]
        _emit_pool(builder, sums, (arrays[4], args[6]), (arrays[7], arrays[8]), places)
        return context.get_dummy_value()

    i = types.intp
    return types.none(x, i, i, i, w, i, i, out, which, i, i, outs), generate


@intrinsic
def tap_gradient_tile(_context, x, at, row, side, error, which, place, gradient, taps):  # type: ignore[no-untyped-def]
    """gradient[taps + 5 i + j] += sum of error times pixel, over windows and samples.

    x[at] is the corner of one channel's first window; error and which hold side x side windows of
    one output channel from `place` on; the error is zero where which is `NOTHING`. A tap meets one
    of four pixels, as the lane's winner has it: choosing that pixel first, by column and then by
    row, takes one product where a product for every possible winner would take four.
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
                error_ = emit_load(builder, arrays[4], window)
                right, lower = _winner(builder, emit_load(builder, arrays[5], window))
                corner = builder.add(line, builder.mul(across.index, _index(2 * LANES)))
                above: list[Any] = []
                for i in range(SIDE + 1):
                    start = builder.add(corner, builder.mul(row_, _index(i)))
                    pixels = [
                        emit_load(builder, arrays[0], builder.add(start, _index(j * LANES)))
                        for j in range(SIDE + 1)
                    ]
                    below = [builder.select(right, pixels[j + 1], pixels[j]) for j in range(SIDE)]
                    for j, upper in enumerate(above):
                        pixel = builder.select(lower, below[j], upper)
                        _accumulate(builder, sums[(i - 1) * SIDE + j], pixel, error_)
                    above = below
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
    _context, error, which, place, plane, planes, w, taps, step, out, at, row
):
    """Add one window's gradient with respect to the pixels of one input channel to out[at].

    error and which of channel o of `planes` are at place + o * plane, its weights at
    w[taps + o * step]. As in `tap_gradient_tile`, each lane first chooses the weight its winner
    has for a pixel. Three columns of pixels at a time: registers do not hold the sums of all six.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        arrays = {n: emit_data(context, builder, signature.args[n], args[n]) for n in (0, 1, 5, 8)}
        zero = _vector(0.0)
        for columns in (range(SIDE // 2 + 1), range(SIDE // 2 + 1, SIDE + 1)):
            sums = [_zeroed(builder, len(columns)) for _ in range(SIDE + 1)]
            with cgutils.for_range(builder, args[4], intp=INDEX) as channel:
                window = builder.add(args[2], builder.mul(channel.index, args[3]))
                error_ = emit_load(builder, arrays[0], window)
                right, lower = _winner(builder, emit_load(builder, arrays[1], window))
                first_tap = builder.add(args[6], builder.mul(channel.index, args[7]))
                upper_error = builder.select(lower, zero, error_)
                lower_error = builder.select(lower, error_, zero)
                rows = []
                for i in range(SIDE):
                    places = [builder.add(first_tap, _index(i * SIDE + j)) for j in range(SIDE)]
                    line = [zero, *(_weight(builder, arrays[5], place) for place in places), zero]
                    rows.append([builder.select(right, line[j], line[j + 1]) for j in columns])
                for n in range(len(columns)):
                    _accumulate(builder, sums[0][n], rows[0][n], upper_error)
                    for i in range(1, SIDE):
                        chosen = builder.select(lower, rows[i - 1][n], rows[i][n])
                        _accumulate(builder, sums[i][n], chosen, error_)
                    _accumulate(builder, sums[SIDE][n], rows[SIDE - 1][n], lower_error)
            for i in range(SIDE + 1):
                start = builder.add(args[9], builder.mul(args[10], _index(i)))
                for j, total in zip(columns, sums[i], strict=True):
                    pixel = builder.add(start, _index(j * LANES))
                    old = emit_load(builder, arrays[8], pixel)
                    emit_store(builder, builder.fadd(old, builder.load(total)), arrays[8], pixel)
        return context.get_dummy_value()

    i = types.intp
    return types.none(error, which, i, i, i, w, i, i, out, i, i), generate
