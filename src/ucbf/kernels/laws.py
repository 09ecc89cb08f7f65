"""Ways of knowing the distribution of W, and the functions that use them, chosen by type."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import by_type, compiled, inlined
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, context_of, row_of
from ucbf.kernels.types import Floats, Ints, Mechanics

ENOUGH = 10.0  # hidden disturbances for each that was seen
PASSES = 500  # over a law that both boundaries hide, at most
NOTHING = (0.0, 0.0, 0.0, 0.0)  # spread and bias of no rows

# add(told, law, h, e, j, share): take in a disturbance of step h and context e; between bins it is shared out, [B],
# among those that begin with j.
add = by_type(1)
# add_censored(told, law, seen): take in what a boundary says of one that it hides.
add_censored = by_type(1)
# believe(law, curious): find the distribution of every row of law.law from what was taken in.
believe = by_type(0, merged=False)


@packed
class Given(NamedTuple):
    """A distribution that Python writes."""

    law: Floats  # [L, R]


@inlined
def given_add(told: Mechanics, law: Given, h: int, e: int, j: int, share: Floats) -> None:
    """Nothing to do: it is told in Python."""


@inlined
def given_add_censored(told: Mechanics, law: Given, seen: Seen) -> None:
    """Nothing to do: it is told in Python."""


@inlined
def given_believe(law: Given, curious: bool) -> None:
    """Nothing to do: it is written in Python."""


@packed
class Counts(NamedTuple):
    """How often each disturbance was seen, censored ones too. L is H, or 1 if steps are pooled."""

    counts: Floats  # [L, R] disturbances seen at each step, or at any
    below: Floats  # [L, R] how often a boundary said no more than that W was at most this one
    above: Floats  # [L, R] or at least
    law: Floats  # [L, R] what follows from them
    guess: Floats  # [R] the law where nothing was counted
    room: Floats  # [2, R]
    rows: int  # L; where several items are counted below each other, L of one of them
    trust: float  # the most that the guess may count for beside what was counted, in disturbances; 0: nothing


@inlined
def counts_add(told: Mechanics, law: Any, h: int, e: int, j: int, share: Floats) -> None:
    """Count disturbance j of step h and context e, or its shares of the bins around it."""
    row = row_of(told, len(law.counts), h, e)
    for c in range(len(share)):
        law.counts[row, j + told.bin_corners[c]] += share[c]


@inlined
def counts_add_censored(told: Mechanics, law: Counts, seen: Seen) -> None:
    """Count W <= high at the lower boundary, W >= low at the upper one."""
    row = row_of(told, len(law.counts), seen.h, context_of(told, seen.s))
    if seen.low > 0 if told.searches else seen.s_next > 0:
        law.above[row, seen.low] += 1
    elif told.after.shape[1] > 1:  # else both boundaries are one, and it says nothing
        law.below[row, seen.high] += 1


@compiled
def counts_believe(law: Counts, curious: bool) -> None:
    """The law of every row: shares of what was counted and guessed, or the product-limit estimate where W was hidden.

    curious: where a boundary hides, doubt it as far as too little was seen beyond (:func:`doubt`).
    """
    counts, below, above, pmf = law.counts, law.below, law.above, law.law
    R, worth, sums = counts.shape[1], 0.0, NOTHING
    for row in range(len(counts) - 1, -1, -1):
        if law.trust > 0:
            sums = spread_and_bias(counts, law.guess, row, NOTHING if (row + 1) % law.rows == 0 else sums)
            worth = credibility(sums, law.trust)
        seen, at_most, at_least = 0.0, 0.0, 0.0
        for j in range(R):
            seen += counts[row, j]
            at_most += below[row, j]
            at_least += above[row, j]
        if at_most == 0 and at_least == 0:
            for j in range(R):
                pmf[row, j] = (counts[row, j] + worth * law.guess[j]) / (seen + worth) if seen > 0 else law.guess[j]
        elif at_most > 0 and at_least > 0:
            self_consistent(law, row)
        else:
            hidden, step = (below, -1) if at_most > 0 else (above, 1)
            product_limit(counts, row, hidden, pmf, row, step)
        if curious and at_most + at_least > 0:
            share_out(law, row)
            for edge in range(2):
                hidden, step, hid = (below, -1, at_most) if edge == 0 else (above, 1, at_least)
                if hid > 0:
                    doubt(law.room, edge, hidden, pmf, row, step)


@inlined
def spread_and_bias(counts: Floats, guess: Floats, row: int, later: Any) -> Any:
    """What shares of the counts in a row are off by, and the guess, squared, added to those of later rows.

    Of the chances of single disturbances, and of the chances that W is at most j, on which smooth values depend.
    """
    spread, bias, spread_below, bias_below = later
    n = 0.0
    for j in range(counts.shape[1]):
        n += counts[row, j]
    if n < 2:
        return spread, bias, spread_below, bias_below
    a, b, a_below, b_below, below, guessed = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(counts.shape[1]):
        share = counts[row, j] / n
        below, guessed = below + share, guessed + guess[j]
        a, b = a + share * (1 - share), b + (share - guess[j]) ** 2
        a_below, b_below = a_below + below * (1 - below), b_below + (below - guessed) ** 2
    a, a_below = a * n / (n - 1), a_below * n / (n - 1)
    return spread + a, bias + b - a / n, spread_below + a_below, bias_below + b_below - a_below / n


@inlined
def credibility(sums: Any, most: float) -> float:
    """How many disturbances the guess is worth beside those counted, at most ``most``: Bühlmann (1967).

    The shares of n draws have a variance A/n, and the guess has a bias whose square is B. Averaged with the weights n
    and w they are off least if w = A/B. Both are estimated from the rows of this step and of all later ones: what is
    planned for the steps that follow must not depend on the disturbances of this one, or nothing could be certified
    (:mod:`ucbf.coupling`). Errors are measured in two ways, and the smaller w counts.
    """
    spread, bias, spread_below, bias_below = sums
    if spread < 1e-12:  # one disturbance only, or nothing was seen twice
        return 0.0
    worth = most if spread >= most * bias else spread / bias
    return min(worth, most if spread_below >= most * bias_below else spread_below / bias_below)


@inlined
def product_limit(counts: Floats, c: int, hidden: Floats, law: Floats, row: int, step: int) -> None:
    """Kaplan and Meier (1958): the law in ``row`` from the counts in row c, in the direction of ``step``, 1 or -1.

    hidden: [L, R] how many are known only to be this one or one further on, in that direction. Each j takes its share
    of those still at risk: seen there or further on, or hidden from further on. What nothing ever showed is put at the
    far end.
    """
    R = counts.shape[1]
    at_risk = 0.0
    for j in range(R):
        at_risk += counts[c, j] + hidden[row, j]
    left, j = 1.0, 0 if step > 0 else R - 1
    for _ in range(R):
        at_risk -= hidden[row, j]  # it may be this very one: no longer known to be further on
        share = min(max(counts[c, j] / at_risk, 0.0), 1.0) if counts[c, j] > 0 else 0.0
        at_risk -= counts[c, j]
        law[row, j] = left * share
        left *= 1 - share
        j += step
    law[row, j - step] += left


@inlined
def share_out(known: Counts, row: int) -> None:
    """known.room: counts with what the upper edge hid, and with what the lower one did, where the law believes it."""
    law, room, R = known.law, known.room, known.law.shape[1]
    up, weight = 1.0, 0.0
    for j in range(R):
        weight += known.above[row, j] / up if up > 1e-12 else 0.0
        room[0, j] = known.counts[row, j] + law[row, j] * weight
        up -= law[row, j]
    up, weight = 1.0, 0.0
    for j in range(R - 1, -1, -1):
        weight += known.below[row, j] / up if up > 1e-12 else 0.0
        room[1, j] = known.counts[row, j] + law[row, j] * weight
        up -= law[row, j]


@inlined
def doubt(counts: Floats, c: int, hidden: Floats, law: Floats, row: int, step: int) -> None:
    """Believe less of what the law in ``row`` says beyond an edge where too little was seen; the far end gets the rest.

    counts: [.., R] what was seen in row c. hidden: [L, R] what the edge hid, as of :func:`product_limit`. Of those m
    are believed to have been at j or further on, and r were seen to be, which is enough for 1 + r² hidden ones each,
    but not for more than ``ENOUGH``. Where m is more than that, up to log(1 + n) more than r are taken to have been at
    risk at j, n being all that the edge hid. What is seen once and then hidden for ever would else be believed for
    ever.
    """
    R = law.shape[1]
    at_risk, mass, n = 0.0, 0.0, 0.0
    for j in range(R):
        at_risk += counts[c, j] + hidden[row, j]
        mass += law[row, j]
        n += hidden[row, j]
    left, believed, j = mass, 0.0, 0 if step > 0 else R - 1
    for _ in range(R - 1):
        at_risk -= hidden[row, j]
        believed += hidden[row, j]
        share = min(law[row, j] / mass, 1.0) if mass > 1e-12 else 0.0
        mass -= law[row, j]
        trusted = share
        enough = at_risk * min(ENOUGH, 1 + at_risk * at_risk)
        if believed > enough:
            more = math.log(1 + n) * (1 - enough / believed)
            trusted *= max(at_risk, 0.0) / (max(at_risk, 0.0) + more)
        believed *= 1 - share
        at_risk -= counts[c, j]
        law[row, j] = left * trusted
        left *= 1 - trusted
        j += step
    law[row, j] = left


@inlined
def self_consistent(known: Counts, row: int) -> None:
    """Where both edges hide: what the upper one hid is shared out by the law so far, the rest is a product limit."""
    law, above, room = known.law, known.above, known.room
    R = law.shape[1]
    for j in range(R):
        law[row, j] = known.counts[row, j] + 1e-3  # what both edges agree on may be where nothing was seen
    law[row, 0] += 1  # the ends, where what is never seen may be
    law[row, R - 1] += 1
    for _ in range(PASSES):
        tail, weight, moved = 0.0, 0.0, 0.0
        for j in range(R - 1, -1, -1):
            tail += law[row, j]
            room[0, j] = above[row, j] / tail if above[row, j] > 0 else 0.0
        for j in range(R):
            weight += room[0, j]
            room[0, j] = known.counts[row, j] + law[row, j] * weight
            room[1, j] = law[row, j]
        product_limit(room, 0, known.below, law, row, -1)
        for j in range(R):
            moved = max(moved, abs(law[row, j] - room[1, j]))
        if moved < 1e-9:
            break


@packed
class Sets(NamedTuple):
    """How often each disturbance was seen, and each set of which a transition said only that W was one of it."""

    counts: Floats  # [L, R] disturbances seen at each step, or at any
    hits: Floats  # [L, M] how often a transition told no more than a set
    which: NDArray[np.int32]  # [X, R] the set of an after-state and a disturbance
    begins: Ints  # [M + 1] where each set begins in members
    members: Ints  # disturbances, set by set
    law: Floats  # [L, R] what follows from them
    guess: Floats  # [R] the law where nothing was counted
    room: Floats  # [2, R]


@inlined
def sets_add_censored(told: Mechanics, law: Sets, seen: Seen) -> None:
    """Count the set that the transition tells."""
    row = row_of(told, len(law.counts), seen.h, context_of(told, seen.s))
    law.hits[row, law.which[told.after[min(seen.h, len(told.after) - 1), seen.s, seen.a], seen.low]] += 1


@compiled
def sets_believe(law: Sets, curious: bool) -> None:
    """The most likely law of every row, by expectation and maximisation (Dempster, Laird, Rubin 1977; Turnbull 1976).

    What only a set was told of is shared out among its members by the law so far, and the law is the shares of all. It
    begins with counts and guess, so that no member of a set is ruled out. curious: no use is made of it.
    """
    R, M = law.counts.shape[1], law.hits.shape[1]
    for row in range(len(law.counts)):
        n, hidden = 0.0, 0.0
        for j in range(R):
            n += law.counts[row, j]
        for m in range(M):
            hidden += law.hits[row, m]
        for j in range(R):
            law.law[row, j] = (law.counts[row, j] + law.guess[j]) / (n + 1)
        if n + hidden == 0:
            continue
        for _ in range(PASSES if hidden > 0 else 1):
            moved = 0.0
            for j in range(R):
                law.room[0, j] = law.counts[row, j]
            for m in range(M):
                if law.hits[row, m] == 0:
                    continue
                mass = 0.0
                for i in range(law.begins[m], law.begins[m + 1]):
                    mass += law.law[row, law.members[i]]
                for i in range(law.begins[m], law.begins[m + 1]):
                    j = law.members[i]
                    law.room[0, j] += law.hits[row, m] * law.law[row, j] / mass if mass > 0 else 0.0
            for j in range(R):
                share = law.room[0, j] / (n + hidden)
                moved = max(moved, abs(share - law.law[row, j]))
                law.law[row, j] = share
            if moved < 1e-9:
                break


add.state(Given, given_add)
add_censored.state(Given, given_add_censored)
believe.state(Given, given_believe)

add.state(Counts, counts_add)
add_censored.state(Counts, counts_add_censored)
believe.state(Counts, counts_believe)

add.state(Sets, counts_add)
add_censored.state(Sets, sets_add_censored)
believe.state(Sets, sets_believe)
