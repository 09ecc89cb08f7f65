"""UCBVI-f: disturbances counted, censored ones too, and planned with."""

from __future__ import annotations

import math
from typing import NamedTuple

from ucbf.kernels.averaged import is_due
from ucbf.kernels.backward import plan
from ucbf.kernels.jit import compiled, inlined, inner
from ucbf.kernels.learners import registered
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.kernels.watch import CENSORED, Watch, watch

ENOUGH = 10.0  # hidden disturbances for each that was seen
PASSES = 500  # over a law that both edges hide, at most


class UCBVIfState(NamedTuple):
    """Q_h(s, a) = r_h(s, a) + ahead_h(f(s, a)), planned with the counted disturbances."""

    counts: Floats  # [L, R] disturbances seen at each step, or at any
    below: Floats  # [L, R] how often a boundary said no more than that W was at most this one
    above: Floats  # [L, R] or at least
    law: Floats  # [L, R] what follows from them
    guess: Floats  # [R] the law where nothing was counted
    room: Floats  # [2, R]
    ahead: Floats  # [H, X] expectation of landing(x + w) + γ V_{h+1}(boundary(x + w))
    value: Floats  # [H+1, S]
    visits: Ints  # [H]
    policy: Ints  # [H, S]
    raw: Floats  # [Z] room for what follows each raw next state
    stale: Ints  # [1] whether anything was seen since the last plan
    watch: Watch
    eta: float
    due: Ints  # [1]


@inlined
def ucbvi_f_update(told: Mechanics, learner: UCBVIfState, seen: Seen) -> bool:
    """Count the disturbance, or what a boundary says of it; planning waits for the next episode."""
    if seen.low == seen.high:
        watch(told, learner.watch, seen.h, seen.s, seen.a, seen.low)
        return ucbvi_f_learn(told, learner, seen.h, seen.low)
    learner.watch.tally[CENSORED] += 1
    row = seen.h % len(learner.counts)
    if seen.s_next > 0:
        learner.above[row, seen.low] += 1
    elif told.after.shape[1] > 1:  # else both boundaries are one, and it says nothing
        learner.below[row, seen.high] += 1
    learner.visits[seen.h] += 1
    learner.stale[0] = 1
    return False


@inlined
def ucbvi_f_learn(told: Mechanics, learner: UCBVIfState, h: int, j: int) -> bool:
    """Count disturbance j of step h."""
    learner.counts[h % len(learner.counts), j] += 1
    learner.visits[h] += 1
    learner.stale[0] = 1
    return False


@inner
def ucbvi_f_renew(told: Mechanics, learner: UCBVIfState) -> int:
    """Backward induction with the counted law, if there is news; the last step whose policy changed, or -1."""
    if learner.stale[0] == 0 or not is_due(learner.visits, learner.due, learner.eta):
        return -1
    learner.stale[0] = 0
    believe(told, learner, True)
    return plan(told, told.offsets, learner.law, learner.value, learner.ahead, learner.policy, learner.raw)


@compiled
def believe(told: Mechanics, learner: UCBVIfState, curious: bool) -> None:
    """The law of every row: shares of what was counted, or the product-limit estimate where edges hid some.

    curious: where an edge hides, doubt it as far as too little was seen beyond the edge (:func:`doubt`).
    """
    counts, below, above, law = learner.counts, learner.below, learner.above, learner.law
    R = told.n_residuals
    for row in range(len(counts)):
        seen, at_most, at_least = 0.0, 0.0, 0.0
        for j in range(R):
            seen += counts[row, j]
            at_most += below[row, j]
            at_least += above[row, j]
        if at_most == 0 and at_least == 0:
            for j in range(R):
                law[row, j] = counts[row, j] / seen if seen > 0 else learner.guess[j]
        elif at_least == 0:
            product_limit(counts, row, below, law, row, -1)
        elif at_most == 0:
            product_limit(counts, row, above, law, row, 1)
        else:
            self_consistent(learner, row)
        if curious and at_most + at_least > 0:
            share_out(learner, row)
            if at_most > 0:
                doubt(learner.room, 0, below, law, row, -1)
            if at_least > 0:
                doubt(learner.room, 1, above, law, row, 1)


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
def share_out(learner: UCBVIfState, row: int) -> None:
    """learner.room: counts with what the upper edge hid, and with what the lower one did, where the law believes it."""
    law, room, R = learner.law, learner.room, learner.law.shape[1]
    up, weight = 1.0, 0.0
    for j in range(R):
        weight += learner.above[row, j] / up if up > 1e-12 else 0.0
        room[0, j] = learner.counts[row, j] + law[row, j] * weight
        up -= law[row, j]
    up, weight = 1.0, 0.0
    for j in range(R - 1, -1, -1):
        weight += learner.below[row, j] / up if up > 1e-12 else 0.0
        room[1, j] = learner.counts[row, j] + law[row, j] * weight
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
def self_consistent(learner: UCBVIfState, row: int) -> None:
    """Where both edges hide: what the upper one hid is shared out by the law so far, the rest is a product limit."""
    law, above, room = learner.law, learner.above, learner.room
    R = law.shape[1]
    for j in range(R):
        law[row, j] = learner.counts[row, j] + 1e-3  # what both edges agree on may be where nothing was seen
    law[row, 0] += 1  # the ends, where what is never seen may be
    law[row, R - 1] += 1
    for _ in range(PASSES):
        tail, weight, moved = 0.0, 0.0, 0.0
        for j in range(R - 1, -1, -1):
            tail += law[row, j]
            room[0, j] = above[row, j] / tail if above[row, j] > 0 else 0.0
        for j in range(R):
            weight += room[0, j]
            room[0, j] = learner.counts[row, j] + law[row, j] * weight
            room[1, j] = law[row, j]
        product_limit(room, 0, learner.below, law, row, -1)
        for j in range(R):
            moved = max(moved, abs(law[row, j] - room[1, j]))
        if moved < 1e-9:
            break


registered(UCBVIfState, ucbvi_f_update, ucbvi_f_renew, ucbvi_f_learn)
