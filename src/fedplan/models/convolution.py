"""Tiles of 5 x 5 convolutions, fused with ReLU and 2 x 2 max pooling, one sample per lane.

An image is rows of vectors: pixel (y, x) of a channel starts at y * row + x * 16. A tile computes
one pooling window, so that what the pooling drops is never stored: forward keeps the largest of
four sums and which one it was (0 to 3 in reading order, 4 where ReLU let nothing through).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from fedplan.models.lanes import LANES, Index, Sum, emits, filled, loop, sum_lanes

SIDE = 5
TAPS = SIDE * SIDE
NOTHING = 4.0  # "which" of a window whose largest sum is not positive


def _line(array: Any, start: Index, count: int) -> list[Any]:
    """So many pixels of a row, from `start` on."""
    return [array.load(start + j * LANES) for j in range(count)]


def _winner(builder: Any, which: Any) -> tuple[Any, Any]:
    """Lanes in which the right column of the window won, and those in which the lower row did."""
    first, second = (builder.fcmp_ordered("==", which, filled(q)) for q in (1.0, 3.0))
    return builder.or_(first, second), builder.fcmp_ordered(">=", which, filled(2.0))


def _pool(builder: Any, sums: list[Sum], bias: Any) -> tuple[Any, Any]:
    """Bias, ReLU and pooling of the four sums of a window: the value, and which one it was."""
    best, *others = (total.value for total in sums)
    which = filled(0.0)
    for q, value in enumerate(others, 1):
        larger = builder.fcmp_ordered(">", value, best)
        best = builder.select(larger, value, best)
        which = builder.select(larger, filled(float(q)), which)
    best = builder.fadd(best, bias)
    # "not <= 0", so that a NaN goes on to where divergence is seen
    passes = builder.fcmp_unordered(">", best, filled(0.0))
    return (
        builder.select(passes, best, filled(0.0)),
        builder.select(passes, which, filled(NOTHING)),
    )


@emits(types.none)
def convolve_pool_tile(
    builder, x, at, row, plane, planes, w, taps, biases, out, which, place, step, outs: int
):
    """One pooling window of `outs` output channels, into out and which.

    x[at + c * plane] is the window's corner in channel c of `planes`; weights of output o and
    channel c start at w[taps + (o * planes + c) * 25], biases at w[biases]; output o goes to
    place + o * step.
    """
    sums = [[Sum(builder) for _ in range(4)] for _ in range(outs)]
    per_output = planes * TAPS
    with loop(builder, planes) as channel:
        corner, channel_taps = at + channel * plane, taps + channel * TAPS
        with loop(builder, Index(builder, SIDE)) as line:
            upper, line_taps = corner + line * row, channel_taps + line * SIDE
            pixels = [_line(x, start, SIDE + 1) for start in (upper, upper + row)]
            for j in range(SIDE):
                for o in range(outs):
                    weight = w.splat(line_taps + per_output * o + j)
                    for q in range(4):
                        sums[o][q].add(pixels[q // 2][j + q % 2], weight)
    _store_pooled(builder, sums, w, biases, out, which, place, step)


@emits(types.none)
def convolve_pool_some_tile(
    builder, x, at, row, some, w, taps, biases, out, which, place, step, outs: int
):
    """Like `convolve_pool_tile` for one input channel, with only the taps whose bits `some` has.

    The others must meet only zeros in all sixteen samples.
    """
    sums = [[Sum(builder) for _ in range(4)] for _ in range(outs)]
    left = cgutils.alloca_once_value(builder, some.value)
    with loop(builder, Index(builder, builder.ctpop(some.value))):
        bits = builder.load(left)  # the lowest that is set is the next tap
        tap = Index(builder, builder.cttz(bits, ir.Constant(ir.IntType(1), 1)))
        builder.store(builder.and_(bits, builder.sub(bits, Index(builder, 1).value)), left)
        corner = at + (tap // SIDE * row + tap % SIDE * LANES)
        pixels = [*_line(x, corner, 2), *_line(x, corner + row, 2)]
        for o in range(outs):
            weight = w.splat(taps + tap + o * TAPS)
            for q in range(4):
                sums[o][q].add(pixels[q], weight)
    _store_pooled(builder, sums, w, biases, out, which, place, step)


def _store_pooled(
    builder: Any, sums: Any, w: Any, biases: Index, out: Any, which: Any, place: Index, step: Index
) -> None:
    for o, totals in enumerate(sums):
        value, winner = _pool(builder, totals, w.splat(biases + o))
        out.store(value, place + step * o)
        which.store(winner, place + step * o)


@emits(types.none)
def tap_gradient_tile(builder, x, at, row, side, error, which, place, gradient, taps):
    """gradient[taps + 5 i + j] += sum of error times pixel, over windows and samples.

    x[at] is the corner of one channel's first window; error and which hold side x side windows of
    one output channel from `place` on; the error is zero where which is `NOTHING`. A tap meets one
    of four pixels, as the lane's winner has it: choosing that pixel first, by column and then by
    row, takes one product where a product for every possible winner would take four.
    """
    sums = [Sum(builder) for _ in range(TAPS)]
    with loop(builder, side) as down, loop(builder, side) as across:
        window = place + (down * side + across) * LANES
        error_ = error.load(window)
        right, lower = _winner(builder, which.load(window))
        corner = at + down * 2 * row + across * (2 * LANES)
        above: list[Any] = []
        for i in range(SIDE + 1):
            pixels = _line(x, corner + row * i, SIDE + 1)
            below = [builder.select(right, pixels[j + 1], pixels[j]) for j in range(SIDE)]
            for j, upper in enumerate(above):
                sums[(i - 1) * SIDE + j].add(builder.select(lower, below[j], upper), error_)
            above = below
    for tap, total in enumerate(sums):
        slot = gradient.slot(taps + tap)
        builder.store(builder.fadd(builder.load(slot), sum_lanes(builder, total.value)), slot)


@emits(types.none)
def pixel_gradient_tile(builder, error, which, place, plane, planes, w, taps, step, out, at, row):
    """Add one window's gradient with respect to the pixels of one input channel to out[at].

    error and which of channel o of `planes` are at place + o * plane, its weights at
    w[taps + o * step]. As in `tap_gradient_tile`, each lane first chooses the weight its winner
    has for a pixel. Three columns of pixels at a time: registers do not hold the sums of all six.
    """
    zero = filled(0.0)
    for columns in (range(SIDE // 2 + 1), range(SIDE // 2 + 1, SIDE + 1)):
        sums = [[Sum(builder) for _ in columns] for _ in range(SIDE + 1)]
        with loop(builder, planes) as channel:
            window = place + channel * plane
            error_ = error.load(window)
            right, lower = _winner(builder, which.load(window))
            first_tap = taps + channel * step
            upper_error = builder.select(lower, zero, error_)
            lower_error = builder.select(lower, error_, zero)
            rows = []
            for i in range(SIDE):
                line = [zero, *(w.splat(first_tap + (i * SIDE + j)) for j in range(SIDE)), zero]
                rows.append([builder.select(right, line[j], line[j + 1]) for j in columns])
            for n in range(len(columns)):
                sums[0][n].add(rows[0][n], upper_error)
                for i in range(1, SIDE):
                    sums[i][n].add(builder.select(lower, rows[i - 1][n], rows[i][n]), error_)
                sums[SIDE][n].add(rows[SIDE - 1][n], lower_error)
        for i in range(SIDE + 1):
            start = at + row * i
            for j, total in zip(columns, sums[i], strict=True):
                pixel = start + j * LANES
                out.store(builder.fadd(out.load(pixel), total.value), pixel)
