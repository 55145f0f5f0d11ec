"""Logarithms, exponentials and powers as Java's StrictMath has them, to the bit, over whole arrays.

StrictMath is defined by an algorithm, fdlibm of Sun Microsystems, not by its accuracy: every Java
gives the same bits. The constants here are its polynomials; the branches are chosen by the upper
half of the bits, as there. Each function takes and gives arrays of doubles.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Doubles: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.int64]

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700
_INVERSE_LN10 = 4.34294481903251816668e-01
_LOG10_2_HIGH = 3.01029995663611771306e-01
_LOG10_2_LOW = 3.69423907715893078616e-13
_EXP_OVERFLOWS = 7.09782712893383973096e02
_EXP_VANISHES = -7.45133219101941108420e02

_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
EXP = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_EXPM1 = (
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)

_ONE = 0x3FF00000
_FRACTION = 0x000FFFFF
_HALF_LN2 = 0x3FD62E42
_THREE_HALVES_LN2 = 0x3FF0A2B2

# Constants of `power`, which splits them at another bit.
_LOG2 = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_POWER_LN2, _POWER_LN2_HIGH, _POWER_LN2_LOW = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
_TWO_THIRDS_LN2, _TWO_THIRDS_LN2_HIGH, _TWO_THIRDS_LN2_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_POWER_INVERSE_LN2, _POWER_INVERSE_LN2_HIGH, _POWER_INVERSE_LN2_LOW = (
    1.44269504088896338700e00,
    1.44269502162933349609e00,
    1.92596299112661746887e-08,
)
_LOG2_OF_3_HALVES_HIGH = 5.84962487220764160156e-01
_LOG2_OF_3_HALVES_LOW = 1.35003920212974897128e-08
_ROUNDS_UP = 8.0085662595372944372e-17
"""Half a unit in the last place of 1024, less what is needed to overflow."""

_HUGE = 0x41E00000


def upper(x: Doubles) -> Bits:
    """The upper 32 bits, with their sign."""
    return x.view(np.int64) >> 32


def with_upper(x: Doubles, bits: Bits) -> Doubles:
    """The same lower 32 bits under other upper ones."""
    return ((bits << 32) | (x.view(np.int64) & 0xFFFFFFFF)).view(np.float64)


def cut(x: Doubles) -> Doubles:
    """The lower 32 bits made zero."""
    return (x.view(np.int64) & ~0xFFFFFFFF).view(np.float64)


def polynomial(x: Doubles, factors: tuple[float, ...]) -> Doubles:
    """a + x (b + x (c + …)), from the inside out."""
    *rest, last = factors
    value = np.full_like(x, last)
    for factor in reversed(rest):
        value = factor + x * value
    return value


def _times_power(x: Doubles, exponent: Bits) -> Doubles:
    """x · 2ⁿ where both are normal: the exponent is added to the bits."""
    return (x.view(np.int64) + (exponent << 52)).view(np.float64)


def _normal(x: Doubles) -> tuple[Doubles, Bits]:
    """x without subnormal numbers, and the exponent that was taken out for that."""
    small = upper(x) < 0x00100000
    return np.where(small, x * 2.0**54, x), np.where(small, -54, 0)


def _beyond_numbers(x: Doubles) -> NDArray[np.bool_]:
    """Infinity, and what is no number, with either sign."""
    return np.asarray(np.isnan(x) | (x == np.inf))


def _of_positive(x: Doubles, found: Doubles) -> Doubles:
    """The logarithm found, but for what is no positive number."""
    found = np.where(x == 0, -np.inf, np.where(x < 0, np.nan, found))
    return np.where(_beyond_numbers(x), x, found)


def log(x: Doubles) -> Doubles:
    """The natural logarithm: x = 2ᵏ (1 + f), and log(1 + f) by a polynomial in f / (2 + f)."""
    scaled, k = _normal(x)
    bits = upper(scaled)
    k = k + (bits >> 20) - 1023
    bits = bits & _FRACTION
    half = (bits + 0x95F64) & 0x100000
    k = k + (half >> 20)
    f = with_upper(scaled, bits | (half ^ _ONE)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even, odd = w * polynomial(w, _LOG[1::2]), z * polynomial(w, _LOG[0::2])
    r, square = odd + even, 0.5 * f * f
    wide = ((bits - 0x6147A) | (0x6B851 - bits)) > 0
    low = k * LN2_LOW
    inner = np.where(wide, square - (s * (square + r) + low), s * (f - r) - low)
    near = f * f * (0.5 - 0.33333333333333333 * f) - low
    inner = np.where((_FRACTION & (2 + bits)) < 3, near, inner)
    return _of_positive(x, k * LN2_HIGH - (inner - f))


def log10(x: Doubles) -> Doubles:
    """The logarithm to the base 10."""
    scaled, k = _normal(x)
    bits = upper(scaled)
    k = k + (bits >> 20) - 1023
    below = (k < 0).astype(np.int64)
    whole = (k + below).astype(np.float64)
    rest = with_upper(scaled, (bits & _FRACTION) | ((0x3FF - below) << 20))
    found = (whole * _LOG10_2_LOW + _INVERSE_LN10 * log(rest)) + whole * _LOG10_2_HIGH
    return _of_positive(x, found)


def log2(x: Doubles) -> Doubles:
    """The logarithm to the base 2, which Spark takes for a quotient."""
    return logarithm(np.full_like(x, 2.0), x)


def logarithm(base: Doubles, x: Doubles) -> Doubles:
    """The logarithm to any base, as Spark has it: a quotient."""
    return log(x) / log(base)


def log1p(x: Doubles) -> Doubles:
    """log(1 + x), which keeps what 1 + x loses."""
    bits = upper(x)
    size = bits & 0x7FFFFFFF
    direct = (bits < 0x3FDA827A) & ((bits > 0) | (bits <= 0xBFD2BEC3 - 2**32))
    f, fraction, k, lost = _one_more(x)
    f, fraction = np.where(direct, x, f), np.where(direct, 1, fraction)
    k = np.where(direct, 0, k)
    low = np.where(k == 0, 0.0, k * LN2_LOW + lost)
    square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    r = z * polynomial(z, _LOG)
    inner = np.where(
        fraction == 0,
        square * (1.0 - 0.66666666666666666 * f) - low,
        square - (s * (square + r) + low),
    )
    found = k * LN2_HIGH - (inner - f)
    found = np.where(size < 0x3E200000, x - x * x * 0.5, found)
    found = np.where(size < 0x3C900000, x, found)
    found = np.where(x == -1, -np.inf, np.where(x < -1, np.nan, found))
    return np.where(_beyond_numbers(x), x, found)


def _one_more(x: Doubles) -> tuple[Doubles, Bits, Bits, Doubles]:
    """1 + x = 2ᵏ (1 + f): f, the bits of its fraction, k, and what the sum lost."""
    large = upper(x) >= 0x43400000
    u = np.where(large, x, 1.0 + x)
    bits = upper(u)
    k = (bits >> 20) - 1023
    lost = np.where(k > 0, 1.0 - (u - x), x - (u - 1.0)) / u
    bits = bits & _FRACTION
    over = bits >= 0x6A09E
    f = with_upper(u, bits | np.where(over, 0x3FE00000, _ONE)) - 1.0
    fraction = np.where(over, (0x00100000 - bits) >> 2, bits)
    return f, fraction, k + over, np.where(large, 0.0, lost)


def _reduced(x: Doubles) -> tuple[Doubles, Doubles, Bits]:
    """x = k ln 2 + high − low, with a small rest."""
    size = upper(x) & 0x7FFFFFFF
    negative = upper(x) < 0
    nearest = np.trunc(_INVERSE_LN2 * x + np.where(negative, -0.5, 0.5))
    t = np.where(size < _THREE_HALVES_LN2, np.where(negative, -1.0, 1.0), nearest)
    t = np.where(size > _HALF_LN2, t, 0.0)
    return x - t * LN2_HIGH, t * LN2_LOW, t.astype(np.int64)


def exp(x: Doubles) -> Doubles:
    """The exponential function: 2ᵏ by the exponent, the rest by a rational function."""
    inside = np.where((x <= _EXP_OVERFLOWS) & (x >= _EXP_VANISHES), x, 0.0)
    high, low, k = _reduced(inside)
    r = high - low
    t = r * r
    c = r - t * polynomial(t, EXP)
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    tiny = k < -1021
    found = _times_power(y, np.where(tiny, k + 1000, k))
    found = np.where(tiny, found * 2.0**-1000, found)
    found = np.where((upper(x) & 0x7FFFFFFF) < 0x3E300000, 1.0 + x, found)
    found = np.where(x > _EXP_OVERFLOWS, np.inf, np.where(x < _EXP_VANISHES, 0.0, found))
    return np.where(np.isnan(x), x, found)


def expm1(x: Doubles) -> Doubles:
    """exp(x) − 1, which keeps what is lost near zero."""
    size = upper(x) & 0x7FFFFFFF
    whole = (x < 0) & (size >= 0x4043687A)
    inside = np.where(whole | ~(x <= _EXP_OVERFLOWS), 0.0, x)
    high, low, k = _reduced(inside)
    r = high - low
    lost = (high - r) - low
    half = 0.5 * r
    square = r * half
    r1 = 1.0 + square * polynomial(square, _EXPM1)
    t = 3.0 - r1 * half
    e = square * ((r1 - t) / (6.0 - r * t))
    found = np.where(k == 0, r - (r * e - square), _moved(r, (r * (e - lost) - lost) - square, k))
    found = np.where(size < 0x3C900000, x, found)
    found = np.where(whole, -1.0, np.where(x > _EXP_OVERFLOWS, np.inf, found))
    return np.where(np.isnan(x), x, found)


def _moved(r: Doubles, e: Doubles, k: Bits) -> Doubles:
    """2ᵏ (1 + r − e) − 1 for k other than zero, in the order that loses least."""
    one_up = np.where(r < -0.25, -2.0 * (e - (r + 0.5)), 1.0 + 2.0 * (r - e))
    far = _times_power(1.0 - (e - r), k) - 1.0
    power = _times_power(np.ones_like(r), -np.clip(k, 1, 1000))
    few = _times_power((1.0 - power) - (e - r), k)
    many = _times_power((r - (e + power)) + 1.0, k)
    found = np.where(k < 20, few, many)
    found = np.where((k <= -2) | (k > 56), far, found)
    return np.where(k == -1, 0.5 * (r - e) - 0.5, np.where(k == 1, one_up, found))


def power(x: Doubles, y: Doubles) -> Doubles:
    """x to the y: log₂ |x| as a sum of two doubles, times y in two parts, and 2 to the product."""
    whole = np.trunc(y) == y
    odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(y, 2.0) != 0)
    size = np.abs(x)
    found = _power_of_positive(np.where(np.isfinite(size) & (size != 0), size, 1.0), y)
    found = np.where(np.signbit(x) & odd, -found, found)
    found = np.where((x < 0) & ~whole, np.nan, found)
    found = np.where((size == 0) | np.isinf(size) | (size == 1), _of_edge(x, y, whole, odd), found)
    return _at_special(x, y, found)


def _of_edge(x: Doubles, y: Doubles, whole: Bits, odd: Bits) -> Doubles:
    """The powers of zero, one and infinity, of either sign."""
    size = np.abs(x)
    found = np.where(y < 0, 1.0 / size, size)
    found = np.where((size == 1) & np.signbit(x) & ~whole, np.nan, found)
    return np.where(np.signbit(x) & odd, -found, found)


def _at_special(x: Doubles, y: Doubles, found: Doubles) -> Doubles:
    """The exponents that Java answers before anything else."""
    size = np.abs(x)
    grows = (size > 1) == (y > 0)
    endless = np.where(size == 1, np.nan, np.where(grows, np.inf, 0.0))
    found = np.where(np.isinf(y), endless, found)
    found = np.where(y == 1, x, np.where(y == -1, 1.0 / x, found))
    found = np.where((y == 0.5) & (x > -np.inf), np.sqrt(np.where(x == 0, 0.0, x)), found)
    found = np.where(y == 2, x * x, found)
    found = np.where(np.isnan(x) | np.isnan(y), np.nan, found)
    return np.where(y == 0, 1.0, found)


def _power_of_positive(x: Doubles, y: Doubles) -> Doubles:
    """The power of a positive number, by its logarithm in two parts."""
    huge = (upper(y) & 0x7FFFFFFF) > _HUGE
    near, far = _log2_near_one(x), _log2(x)
    first, second = (np.where(huge, a, b) for a, b in zip(near, far, strict=True))
    y_cut = cut(y)
    low = (y - y_cut) * first + y * second
    high = y_cut * first
    found = _power_of_two(high, low)
    bits = upper(x)
    away = huge & ((bits < 0x3FEFFFFF) | (bits > 0x3FF00000))
    return np.where(away, np.where((bits >= 0x3FF00000) == (y > 0), np.inf, 0.0), found)


def _log2_near_one(x: Doubles) -> tuple[Doubles, Doubles]:
    """log₂ x in two parts, where x is so near to 1 that four terms are enough."""
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _POWER_INVERSE_LN2_HIGH * t
    v = t * _POWER_INVERSE_LN2_LOW - w * _POWER_INVERSE_LN2
    first = cut(u + v)
    return first, v - (first - u)


def _log2(x: Doubles) -> tuple[Doubles, Doubles]:
    """log₂ x in two parts: x = 2ⁿ m, with m near to 1 or to 3/2."""
    small = upper(x) < 0x00100000
    x = np.where(small, x * 2.0**53, x)
    bits = upper(x)
    n = np.where(small, -53, 0) + (bits >> 20) - 0x3FF
    fraction = bits & 0x000FFFFF
    over = fraction >= 0xBB67A
    middle = (fraction > 0x3988E) & ~over
    n = n + over
    bits = (fraction | 0x3FF00000) - np.where(over, 0x00100000, 0)
    m = with_upper(x, bits)
    near = np.where(middle, 1.5, 1.0)
    u, v = m - near, 1.0 / (m + near)
    s = u * v
    s_high = cut(s)
    sum_high = with_upper(
        np.zeros_like(x), ((bits >> 1) | 0x20000000) + 0x00080000 + (middle.astype(np.int64) << 18)
    )
    sum_low = m - (sum_high - near)
    s_low = v * ((u - s_high * sum_high) - s_high * sum_low)
    square = s * s
    r = square * square * polynomial(square, _LOG2) + s_low * (s_high + s)
    square = s_high * s_high
    t_high = cut(3.0 + square + r)
    t_low = r - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = cut(u + v)
    p_low = v - (p_high - u)
    z_high = _TWO_THIRDS_LN2_HIGH * p_high
    z_low = _TWO_THIRDS_LN2_LOW * p_high + p_low * _TWO_THIRDS_LN2
    z_low = z_low + np.where(middle, _LOG2_OF_3_HALVES_LOW, 0.0)
    base = np.where(middle, _LOG2_OF_3_HALVES_HIGH, 0.0)
    t = n.astype(np.float64)
    first = cut(((z_high + z_low) + base) + t)
    return first, z_low - (((first - t) - base) - z_high)


def _power_of_two(high: Doubles, low: Doubles) -> Doubles:
    """2 to the sum of two parts."""
    total = low + high
    over = (total > 1024) | ((total == 1024) & (low + _ROUNDS_UP > total - high))
    under = (total < -1075) | ((total == -1075) & (low <= total - high))
    outside = over | under
    high, low = np.where(outside, 0.0, high), np.where(outside, 0.0, low)
    bits = upper(low + high)
    exponent = np.clip(((bits & 0x7FFFFFFF) >> 20) - 0x3FF, -1, 10)
    whole = bits + (0x00100000 >> (exponent + 1))
    exponent = np.clip(((whole & 0x7FFFFFFF) >> 20) - 0x3FF, 0, 20)
    t = with_upper(np.zeros_like(high), whole & ~(0x000FFFFF >> exponent))
    n = ((whole & 0x000FFFFF) | 0x00100000) >> (20 - exponent)
    some = (bits & 0x7FFFFFFF) > 0x3FE00000
    n = np.where(some, np.where(bits < 0, -n, n), 0)
    high = np.where(some, high - t, high)
    found = np.ldexp(_small_power_of_two(high, low), n.astype(np.int32))
    return np.where(over, np.inf, np.where(under, 0.0, found))


def _small_power_of_two(high: Doubles, low: Doubles) -> Doubles:
    """2 to the sum of two parts, at most a half."""
    t = cut(low + high)
    u, v = t * _POWER_LN2_HIGH, (low - (t - high)) * _POWER_LN2 + t * _POWER_LN2_LOW
    z = u + v
    w = v - (z - u)
    square = z * z
    rest = z - square * polynomial(square, EXP)
    return 1.0 - (((z * rest) / (rest - 2.0) - (w + z * w)) - z)
