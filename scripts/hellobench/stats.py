# SPDX-License-Identifier: MIT
"""Statistics of few repeats, without assumptions about their distribution.

The unit is the cell, never the request. Two entrants are compared by their ratio in each block, the
estimate is the median of the ratios, and its interval comes from order statistics: no resampling,
and too few blocks for an interval give none. Nothing is dropped as an outlier.
"""

import collections
import dataclasses
import functools
import itertools
import math
import random
import statistics

DEFAULT_MARGIN = 0.02
# Of the intervals that order statistics allow, the tightest with at least this coverage. 5 blocks
# reach 93.75 % and 8 blocks 93.0 %, so 95 % would ask for more than an article's 5 repeats.
MIN_COVERAGE = 0.925
MIN_BLOCKS = 5
RESAMPLES = 10_000
MIN_BOOTSTRAP = 10


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Of a with b: `ratio` is a / b. None where there are too few blocks to tell."""

    ratio: float | None
    low: float | None
    high: float | None
    coverage: float | None
    decision: str  # "faster", "slower", "equivalent" or "inconclusive"; said of a
    n: int  # blocks with both; unpaired: the smaller sample
    geometric_mean: float | None
    bootstrap: dict | None  # {"low", "high", "coverage", "resamples", "method"}
    margin: float
    method: str  # "order-statistics" or "mann-whitney"
    p: float | None  # two-sided sign test, or Mann-Whitney


def summary(values):
    """{n, median, mad, min, max, q1, q3} of the values that are known (not None)."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return {"n": 0} | dict.fromkeys(("median", "mad", "min", "max", "q1", "q3"))
    middle = statistics.median(known)
    q1, _, q3 = (statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1
                 else known * 3)
    return {"n": len(known), "median": middle,
            "mad": statistics.median(abs(value - middle) for value in known),
            "min": known[0], "max": known[-1], "q1": q1, "q3": q3}


def binomial_tail(n, below):
    """P(Bin(n, 1/2) < below)."""
    return sum(math.comb(n, hits) for hits in range(below)) / 2 ** n


def median_interval(values):
    """(low, high, coverage) for the median of what the values are drawn from; None if n < 5.

    The ends are the k-th smallest and the k-th largest value, coverage 1 - 2 P(Bin(n, 1/2) < k).
    """
    known = sorted(value for value in values if value is not None)
    if len(known) < MIN_BLOCKS:
        return None
    ranks = [rank for rank in range(1, len(known) // 2 + 1)
             if 1 - 2 * binomial_tail(len(known), rank) >= MIN_COVERAGE]
    rank = ranks[-1]
    return known[rank - 1], known[-rank], 1 - 2 * binomial_tail(len(known), rank)


def margin_for(noise_floor=None):
    """The smallest ratio to 1 that means anything: 2 %, or what two equal entrants differ by."""
    return max(DEFAULT_MARGIN, noise_floor or 0)


def decide(low, high, within, lower_is_better=False):
    """The word for an interval of a ratio, with `within` as the margin."""
    if low is None:
        return "inconclusive"
    if low > 1 + within:
        return "slower" if lower_is_better else "faster"
    if high < 1 - within:
        return "faster" if lower_is_better else "slower"
    if low >= 1 - within and high <= 1 + within:
        return "equivalent"
    return "inconclusive"


def compare(a_by_block, b_by_block, margin=DEFAULT_MARGIN, lower_is_better=False):
    """a with b, both {block: value}, by their ratio in each block that has both."""
    ratios = [a_by_block[block] / b_by_block[block] for block in sorted(a_by_block)
              if _positive(a_by_block[block]) and _positive(b_by_block.get(block))]
    low, high, coverage = median_interval(ratios) or (None, None, None)
    return Comparison(
        ratio=statistics.median(ratios) if ratios else None, low=low, high=high, coverage=coverage,
        decision=decide(low, high, margin, lower_is_better), n=len(ratios),
        geometric_mean=geometric_mean(ratios), bootstrap=bootstrap(ratios), margin=margin,
        method="order-statistics", p=sign_test(ratios))


def _positive(value):
    return value is not None and value > 0


def geometric_mean(values):
    known = [value for value in values if _positive(value)]
    return math.exp(statistics.fmean(map(math.log, known))) if known else None


def sign_test(ratios):
    """Two-sided p-value for the median ratio being 1; None without a ratio."""
    if not ratios:
        return None
    above = sum(ratio > 1 for ratio in ratios)
    below = sum(ratio < 1 for ratio in ratios)
    return min(1.0, 2 * binomial_tail(above + below, min(above, below) + 1))


def holm(p_values):
    """{name: p} adjusted for so many tests at once, by Holm's step-down method; None stays None."""
    adjusted = dict(p_values)
    tested = sorted((name for name in p_values if p_values[name] is not None), key=p_values.get)
    largest = 0.0
    for position, name in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - position) * p_values[name]))
        adjusted[name] = largest
    return adjusted


@functools.lru_cache
def _resampled_middles(n):
    """How often each pair of ranks stood in the middle of a resample of n values.

    The median of a resample depends on ranks alone, so one table serves all data of that size.
    """
    generator = random.Random(f"bootstrap-{n}")
    drawn = (sorted(generator.choices(range(n), k=n)) for _ in range(RESAMPLES))
    return collections.Counter((ranks[(n - 1) // 2], ranks[n // 2]) for ranks in drawn)


def bootstrap(values):
    """The bias-corrected bootstrap interval of the median; None for fewer than 10 values.

    A second opinion beside median_interval(), always labelled: it covers less than it promises
    when some values are far off. The same values give the same interval.
    """
    known = sorted(values)
    if len(known) < MIN_BOOTSTRAP:
        return None
    medians = sorted(itertools.chain.from_iterable(
        [(known[low] + known[high]) / 2] * count
        for (low, high), count in _resampled_middles(len(known)).items()))
    estimate = statistics.median(known)
    below = sum((value < estimate) + (value == estimate) / 2 for value in medians)
    normal = statistics.NormalDist()
    bias = normal.inv_cdf(min(max(below, 1), RESAMPLES - 1) / RESAMPLES)
    low, high = (medians[min(int(normal.cdf(2 * bias + z) * RESAMPLES), RESAMPLES - 1)]
                 for z in (normal.inv_cdf(0.025), normal.inv_cdf(0.975)))
    return {"low": low, "high": high, "coverage": 0.95, "resamples": RESAMPLES,
            "method": "bias-corrected bootstrap"}


@functools.lru_cache
def _rank_sum_counts(m, n):
    """For each u: how many orders of m and n values have just u pairs with the first one greater.

    They are the coefficients of the product of (1 - x^(n+i)) / (1 - x^i) for i = 1..m.
    """
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for power in range(m * n, n + i - 1, -1):
            counts[power] -= counts[power - n - i]
        for power in range(i, m * n + 1):
            counts[power] += counts[power - i]
    return counts


def compare_unpaired(a_values, b_values, margin=DEFAULT_MARGIN, lower_is_better=False):
    """a with b when no block holds both, as in two runs: all pairs' ratios, Mann-Whitney interval.

    It takes the two to differ by a factor alone. What else changed from one run to the other, the
    machine's state above all, it can't tell from a difference.
    """
    a, b = ([value for value in values if _positive(value)] for values in (a_values, b_values))
    ratios = sorted(one / other for one in a for other in b)
    low = high = coverage = p = None
    if ratios:
        counts = _rank_sum_counts(len(a), len(b))
        total = math.comb(len(a) + len(b), len(a))
        tails = [tail / total for tail in itertools.accumulate(counts)]  # P(U <= u)
        ranks = [u for u, tail in enumerate(tails) if 1 - 2 * tail >= MIN_COVERAGE]
        above = sum((ratio > 1) + (ratio == 1) / 2 for ratio in ratios)
        p = min(1.0, 2 * tails[math.ceil(min(above, len(ratios) - above))])
        if ranks:
            low, high = ratios[ranks[-1]], ratios[-1 - ranks[-1]]
            coverage = 1 - 2 * tails[ranks[-1]]
    return Comparison(
        ratio=statistics.median(ratios) if ratios else None, low=low, high=high, coverage=coverage,
        decision=decide(low, high, margin, lower_is_better), n=min(len(a), len(b)),
        geometric_mean=geometric_mean(ratios), bootstrap=None, margin=margin,
        method="mann-whitney", p=p)


def tie_groups(by_entrant, margin=DEFAULT_MARGIN, lower_is_better=False):
    """The entrants of {id: {block: value}} in groups, the best first, that share a rank.

    A group holds those that can't be told from its first member. With fewer than 5 common blocks
    the ranges stand in for the interval: apart if they don't overlap and the medians differ by more
    than the margin, and never by a single value. An entrant without a value is in no group.
    """
    medians = {name: statistics.median(known) for name, values in by_entrant.items()
               if (known := [value for value in values.values() if _positive(value)])}
    groups = []
    for name in sorted(medians, key=medians.get, reverse=not lower_is_better):
        if groups and not _worse(by_entrant[name], by_entrant[groups[-1][0]], margin,
                                 lower_is_better):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _worse(values, best, margin, lower_is_better):
    compared = compare(values, best, margin, lower_is_better)
    if compared.n >= MIN_BLOCKS:
        return compared.decision == "slower"
    ours, theirs = ([value for value in known.values() if _positive(value)]
                    for known in (values, best))
    if min(len(ours), len(theirs)) < 2:
        return False
    ratio = statistics.median(ours) / statistics.median(theirs)
    if lower_is_better:
        return min(ours) > max(theirs) and ratio > 1 + margin
    return max(ours) < min(theirs) and ratio < 1 - margin
