"""Powers as Java's StrictMath has them, to the bit, over whole arrays.

fdlibm's way: log₂ |x| as a sum of two doubles, that times y in two parts, and 2 to the product.
"""

from __future__ import annotations

import numpy as np

from everview.engines.duckdb.fdlibm import (
    EXP,
    Bits,
    Doubles,
    cut,
    polynomial,
    upper,
    with_upper,
)

_LOG2 = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_LN2, _LN2_HIGH, _LN2_LOW = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
_TWO_THIRDS_LN2, _TWO_THIRDS_LN2_HIGH, _TWO_THIRDS_LN2_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_INVERSE_LN2, _INVERSE_LN2_HIGH, _INVERSE_LN2_LOW = (
    1.44269504088896338700e00,
    1.44269502162933349609e00,
    1.92596299112661746887e-08,
)
_LOG2_OF_3_HALVES_HIGH = 5.84962487220764160156e-01
_LOG2_OF_3_HALVES_LOW = 1.35003920212974897128e-08
_ROUNDS_UP = 8.0085662595372944372e-17
"""Half a unit in the last place of 1024, less what is needed to overflow."""

_HUGE = 0x41E00000


def power(x: Doubles, y: Doubles) -> Doubles:
    """x to the y."""
    whole = np.trunc(y) == y
    odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(y, 2.0) != 0)
    size = np.abs(x)
    found = _of_positive(np.where(np.isfinite(size) & (size != 0), size, 1.0), y)
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


def _of_positive(x: Doubles, y: Doubles) -> Doubles:
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
    u = _INVERSE_LN2_HIGH * t
    v = t * _INVERSE_LN2_LOW - w * _INVERSE_LN2
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
    u, v = t * _LN2_HIGH, (low - (t - high)) * _LN2 + t * _LN2_LOW
    z = u + v
    w = v - (z - u)
    square = z * z
    rest = z - square * polynomial(square, EXP)
    return 1.0 - (((z * rest) / (rest - 2.0) - (w + z * w)) - z)
