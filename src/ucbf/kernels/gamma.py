"""The logarithm of the gamma function, the same to the last bit compiled and interpreted, as math.lgamma is not."""

from __future__ import annotations

import math

from ucbf.kernels.jit import inlined

HALF_LOG_TWO_PI = 0.9189385332046727
ENOUGH = 10.0  # from here on the series is exact to 1e-12


@inlined
def log_gamma(x: float) -> float:
    """Log Γ(x) for x > 0: Stirling's series, from 10 on; below that Γ(x + 1) = x Γ(x)."""
    product = 1.0
    while x < ENOUGH:
        product *= x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series - math.log(product)
