"""Arithmetic of distributions of latency and of fractions of a maximum. No I/O.

A distribution (CDF) is a list of [µs, fraction], ascending in both: so many of all requests took at most so long.
Between two points it is a straight line; at the first one stand all that took at most so long.
"""
import math
import statistics

EVEN_SHARES = 200
# Those at which distributions are merged; without the last ones nothing would stand between p99.5 and the longest.
SHARES = (*(n / EVEN_SHARES for n in range(1, EVEN_SHARES)), 0.999, 0.9999, 1.0)
# Upper bounds of the buckets of a replica's own durations, microseconds; above the last there is one more.
BUCKETS_US = (
    5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
)


def share_within(cdf, us):
    """The fraction of requests that took at most so long."""
    if not cdf or us < cdf[0][0]:
        return 0.0
    for (low, below), (high, above) in zip(cdf, cdf[1:]):
        if us < high:
            return below + (above - below) * (us - low) / (high - low) if high > low else above
    return cdf[-1][1]


def quantile(cdf, fraction):
    """How long that fraction of requests took at most; None if the distribution does not reach so far."""
    low, below = None, 0.0
    for us, share in cdf:
        if share >= fraction:
            return us if low is None or share == below else low + (us - low) * (fraction - below) / (share - below)
        low, below = us, share
    return None


def middle(cdfs):
    """The distribution of several runs: at each share the median of how long it took in each. One bad run does not show."""
    found = []
    for share in SHARES:
        reached = [quantile(cdf, share) for cdf in cdfs]
        if None in reached:
            break
        found.append([statistics.median(reached), share])
    return found


def density(cdf, bins):
    """[µs, fraction per µs] in the middle of equal steps from the shortest to the 99th percentile.

    What is longer would make everything else one column.
    """
    first = cdf[0][0] if cdf else None
    last = quantile(cdf, 0.99) if cdf else None
    if last is None or last <= first:
        return []
    width = (last - first) / bins
    edges = [first + width * n for n in range(bins + 1)]
    # Those at the very first point belong to the first step.
    shares = [0.0, *(share_within(cdf, edge) for edge in edges[1:])]
    return [[edge + width / 2, (above - below) / width] for edge, below, above in zip(edges, shares, shares[1:])]


def mean_and_deviation(cdf):
    """Mean and standard deviation, microseconds; each step's requests are spread evenly over it."""
    total = cdf[-1][1]
    first, share = cdf[0]
    mean, square = first * share, first * first * share
    for (low, below), (high, above) in zip(cdf, cdf[1:]):
        mean += (above - below) * (low + high) / 2
        square += (above - below) * (low * low + low * high + high * high) / 3
    mean, square = mean / total, square / total
    return mean, math.sqrt(max(0.0, square - mean * mean))


def rates_at(maximum, fractions):
    """Whole requests a second, at least one, at these fractions of a maximum."""
    return [max(1, round(maximum * fraction)) for fraction in fractions]


def bucket_quantile(counts, fraction):
    """How long that fraction took, out of a replica's buckets: a straight line within one. None if nothing was counted,
    or if it is above the last bound."""
    wanted, seen, low = sum(counts) * fraction, 0, 0
    if wanted <= 0:
        return None
    for count, high in zip(counts, BUCKETS_US):
        if count and seen + count >= wanted:
            return low + (high - low) * (wanted - seen) / count
        seen, low = seen + count, high
    return None
