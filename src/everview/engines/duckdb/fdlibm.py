"""Logarithms and exponentials as Java's StrictMath has them, to the bit, over whole arrays.

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
