"""Many systems that differ in what they pay and in W: one loop over the items."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.backward import expect, follow, induction
from ucbf.kernels.endless import FOLLOWED, SWEEPS, follow_on, raise_by, solve
from ucbf.kernels.jit import compiled, inlined, unsigned
from ucbf.kernels.laws import Counts, add, add_censored
from ucbf.kernels.seen import explain
from ucbf.kernels.types import Floats, Ints, Mechanics

MOST = 4 * SWEEPS  # of a plan without an end, at most


class Parts(NamedTuple):
    """What all items pay, and what a cost of 1 adds to it, cost by cost: an item's table is linear in its costs."""

    reward: Floats  # [1 + C, P, S, A]; the first is -inf where the action does not exist, the others are 0 there
    landing: Floats  # [1 + C, D, Z]
    terminal: Floats  # [1 + C, S]
    pays: NDArray[np.bool_]  # [3, 1 + C] whether a cost is paid as part of the reward, on landing, at the end

    @property
    def tables(self) -> tuple[Floats, Floats, Floats]:
        """The three tables."""
        return self.reward, self.landing, self.terminal


@compiled
def plan_items(
    m: Mechanics,
    model: Any,
    parts: Parts,
    costs: Floats,
    law: Floats,
    settled: Floats,
    value: Floats,
    policy: NDArray[np.int16],
    gain: Floats,
    v: Floats,
    ahead: Floats,
    actions: Ints,
    raw: Floats,
) -> None:
    """Plan for every item, one after the other.

    m: shared mechanics; its reward, landing and terminal reward are room for those of one item
    costs: [N, C]; law: [N, L, R]; settled: [N] how far bounds on what a period pays may be apart, without an end
    value: [N, S] of the first step, from which a plan without an end begins; policy: [N, H, S]; gain: [N] the average
    of a step, without an end; not a number where the plan did not settle; all filled here
    v: [H+1, S], ahead: [H, X], actions: [H, S] and raw: [Z] are room
    """
    H, S = m.horizon, m.after.shape[1]
    for i in range(len(costs)):
        weigh(parts, costs, i, m)
        for s in range(S):
            v[0, s], v[H, s] = value[i, s], m.terminal[s]
        if m.endless:
            low, high, _ = solve(m, model, m.offsets, law[i], v, ahead, actions, raw, settled[i], MOST)
            gain[i] = 0.5 * (low + high) / H if high - low <= settled[i] else np.nan
        else:
            induction(m, model, m.offsets, law[i], v, ahead, actions, raw)
        for s in range(S):
            value[i, s] = v[0, s]
            for h in range(H):
                policy[i, h, s] = actions[h, s]


@compiled
def plan_by_action(
    m: Mechanics,
    runs: Ints,
    parts: Parts,
    costs: Floats,
    law: Floats,
    value: Floats,
    policy: NDArray[np.int16],
    v: Floats,
    ahead: Floats,
    raw: Floats,
    best: Floats,
    chosen: NDArray[np.int16],
) -> None:
    """The plans of :func:`plan_items` with an end, bit for bit: the same sums for one action after the other.

    So that a processor works on several states at once. Other arguments are as there.
    m, parts: their rewards are [.., A, S]; runs: [3, A] of :func:`runs_of`; best, chosen: [S] room
    """
    H, A, S = m.horizon, m.reward.shape[1], m.reward.shape[2]
    for i in range(len(costs)):
        weigh(parts, costs, i, m)
        for s in range(S):
            v[H, s] = m.terminal[s]
        for h in range(H - 1, -1, -1):
            expect(m, h, m.offsets, law[i], v, raw, ahead, h)
            r, row = unsigned(min(h, len(m.reward) - 1)), unsigned(h)
            for s in range(S):
                best[s], chosen[s] = -np.inf, 0
            for a in range(A):
                x, along = unsigned(runs[0, a]), unsigned(a)
                for s in range(unsigned(runs[1, a]), unsigned(runs[2, a])):
                    q = m.reward[r, along, s] + ahead[row, x + s]
                    better = q > best[s]
                    best[s] = q if better else best[s]
                    chosen[s] = a if better else chosen[s]
            for s in range(S):
                v[h, s] = best[s] + 0.0
                policy[i, h, s] = chosen[s]
        for s in range(S):
            value[i, s] = v[0, s]


def runs_of(m: Mechanics) -> Ints | None:
    """[3, A] where an action leads state s to x + s: x, and the states from first to end; None where one does not.

    Between the two are all states in which the action exists. Only where f is the same at every step.
    """
    if len(m.after) > 1:
        return None
    exists = np.asarray(np.isfinite(m.reward).any(axis=0))
    after = m.after[0].astype(np.int64)
    first, end = exists.argmax(axis=0), len(exists) - exists[::-1].argmax(axis=0)
    x = after[first, np.arange(len(first))] - first
    if not exists.any(axis=0).all() or (exists & (after != x + np.arange(len(after))[:, None])).any():
        return None
    return np.ascontiguousarray(np.stack([x, first, end]))


@compiled
def follow_items(
    m: Mechanics,
    model: Any,
    parts: Parts,
    costs: Floats,
    law: Floats,
    policy: NDArray[np.int16],
    settled: Floats,
    value: Floats,
    gain: Floats,
    v: Floats,
    ahead: Floats,
    actions: Ints,
    raw: Floats,
) -> None:
    """What every item gets that follows its policy: value [N, S] of the first step, and gain [N]; as plan_items."""
    H, S = m.horizon, m.after.shape[1]
    for i in range(len(costs)):
        weigh(parts, costs, i, m)
        for s in range(S):
            v[0, s], v[H, s] = 0.0, m.terminal[s]
            for h in range(H):
                actions[h, s] = policy[i, h, s]
        if m.endless:
            low, high = follow_on(m, model, m.offsets, law[i], v, ahead, actions, raw, settled[i], SWEEPS * FOLLOWED)
            raise_by(m, v, ahead, low, high)
            gain[i] = 0.5 * (low + high) / H
        else:
            for h in range(H - 1, -1, -1):
                follow(m, model, m.offsets, law[i], v, ahead, actions, raw, h)
        for s in range(S):
            value[i, s] = v[0, s]


@inlined
def weigh(parts: Parts, costs: Floats, i: int, m: Mechanics) -> None:
    """What item i pays, written into its mechanics; rewards may be [P, S, A] or [P, A, S], in both alike."""
    P, S, A = m.reward.shape
    D, Z = m.landing.shape
    for h in range(P):
        for s in range(S):
            for a in range(A):
                m.reward[h, s, a] = parts.reward[0, h, s, a]
    for h in range(D):
        for z in range(Z):
            m.landing[h, z] = parts.landing[0, h, z]
    for s in range(len(m.terminal)):
        m.terminal[s] = parts.terminal[0, s]
    for c in range(1, parts.pays.shape[1]):
        cost = costs[i, c - 1]
        for h in range(P if parts.pays[0, c] else 0):
            for s in range(S):
                for a in range(A):
                    m.reward[h, s, a] += cost * parts.reward[c, h, s, a]
        for h in range(D if parts.pays[1, c] else 0):
            for z in range(Z):
                m.landing[h, z] += cost * parts.landing[c, h, z]
        for s in range(len(m.terminal) if parts.pays[2, c] else 0):
            m.terminal[s] += cost * parts.terminal[c, s]


@compiled
def observe_items(
    m: Mechanics,
    law: Counts,
    L: int,
    items: Ints,
    h: int,
    s: Ints,
    a: Ints,
    s_next: Ints,
    measured: Ints,
    known: NDArray[np.bool_],
) -> None:
    """Count what a transition of each item says of its W.

    law: that of all items, L rows each; items: [n] which; s, a, s_next: [n] state indices and actions
    measured: [n] the index of the disturbance, where it is known: [n]
    """
    for k in range(len(items)):
        i = items[k]
        own = Counts(
            law.counts[i * L : (i + 1) * L],
            law.below[i * L : (i + 1) * L],
            law.above[i * L : (i + 1) * L],
            law.law,
            law.guess,
            law.room,
            L,
            law.trust,
        )
        seen = explain(m, h, s[k], a[k], s_next[k], measured[k], not known[k])
        if seen.low < seen.high:
            add_censored(m, own, seen)
        else:
            add(m, own, h, 0, min(max(seen.low, 0), m.n_residuals - 1), m.whole)


@compiled
def explain_items(
    m: Mechanics,
    h: int,
    s: Ints,
    a: Ints,
    s_next: Ints,
    measured: Ints,
    known: NDArray[np.bool_],
    low: Ints,
    high: Ints,
) -> None:
    """low, high [n]: the bounds on the index of W that each transition gives; other arguments as above."""
    for k in range(len(s)):
        seen = explain(m, h, s[k], a[k], s_next[k], measured[k], not known[k])
        low[k], high[k] = seen.low, seen.high


@compiled
def recall_items(
    counts: Floats, total: Floats, scores: Floats, keep: Floats, guess: Floats, L: int, items: Ints, h: Ints, j: Ints
) -> None:
    """Let what was seen of an item's step count less, and count what came, with each of C half-lives.

    counts: [N L, C, R], total: [N L, C] their sums; keep: [C] what is left of a count after one more
    scores: [N, C] the logarithms of the probabilities that what came was given before, added up
    items, h, j: [n] in order of time
    """
    R = counts.shape[2]
    for k in range(len(items)):
        row = items[k] * L + h[k] % L
        for c in range(len(keep)):
            came = (counts[row, c, j[k]] + guess[j[k]]) / (total[row, c] + 1)
            scores[items[k], c] += math.log(max(came, 1e-300))
            if keep[c] < 1:
                for r in range(R):
                    counts[row, c, r] *= keep[c]
            counts[row, c, j[k]] += 1
            total[row, c] = total[row, c] * keep[c] + 1


@inlined
def step_of(day: NDArray[np.int32], k: int, before: int, n_steps: int, monday: int) -> int:
    """The step of row k, the row before it being of step ``before`` (-1: not known): most days follow each other."""
    if before >= 0 and day[k] == day[k - 1] + 1:
        return before + 1 if before + 1 < n_steps else 0
    step: int = (day[k] - monday) % n_steps
    return step


@compiled
def most_of_a_step(begins: Ints, day: NDArray[np.int32], n_steps: int, monday: int, counts: Ints, place: Ints) -> int:
    """How many rows of an item are of the same step, at most; place [N]: how many of them come before each row.

    begins: [n + 1] where the rows of each item begin; counts: [n_steps] room
    """
    most, origin, step = 0, begins[0], -1
    for i in range(len(begins) - 1):
        for h in range(n_steps):
            counts[h] = 0
        for k in range(begins[i], begins[i + 1]):
            step = step_of(day, k, step, n_steps, monday)
            place[k - origin] = counts[step]
            counts[step] += 1
            most = max(most, counts[step])
    return most


@compiled
def lay_out_by_steps(
    begins: Ints, day: NDArray[np.int32], amount: Floats, monday: int, place: Ints, table: NDArray[np.float64]
) -> None:
    """Fill table [n, n_steps, K] with the amounts of each item by steps.

    place: as :func:`most_of_a_step` gives it; it becomes where each row is in ``table.ravel()``
    """
    origin, n_steps, K, step = begins[0], table.shape[1], table.shape[2], -1
    for i in range(len(begins) - 1):
        for k in range(begins[i], begins[i + 1]):
            step, j = step_of(day, k, step, n_steps, monday), place[k - origin]
            table[i, step, j] = amount[k]
            place[k - origin] = (i * n_steps + step) * K + j


@compiled
def describe_items(begins: Ints, day: NDArray[np.int32], amount: Floats, out: Floats) -> None:
    """What the rows of each item look like: out [n, 9], the entries of :class:`ucbf.fleet.notes.Description`.

    begins: [n + 1] where the rows of each item begin; day, amount: [N]
    """
    for i in range(len(out)):
        first, end = begins[i], begins[i + 1]
        if first == end:
            continue
        middle = first + (end - first) // 2
        least, most, gaps, disorder = amount[first], amount[first], 0, 0
        for k in range(first, end):
            least, most = min(least, amount[k]), max(most, amount[k])
            if k > first:
                step = day[k] - day[k - 1]
                gaps += max(step - 1, 0)
                disorder += step <= 0
        total = 0.0
        for part in range(2):
            begin, stop = (first, middle) if part == 0 else (middle, end)
            n, mean, square = max(stop - begin, 1), 0.0, 0.0
            for k in range(begin, stop):
                mean += amount[k]
            total += mean
            mean /= n
            for k in range(begin, stop):
                square += (amount[k] - mean) ** 2
            out[i, 5 + 2 * part], out[i, 6 + 2 * part] = mean, square / n / max(n - 1, 1)
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = least, total / (end - first), most, gaps, disorder


@compiled
def place_rows(
    begins: Ints,
    items: Ints,
    some: Ints,
    day: NDArray[np.int32],
    amount: Floats,
    monday: int,
    H: int,
    ends: Floats,
    unit: float,
    first: int,
    slope: int,
    which: Ints,
    step: Ints,
    j: Ints,
) -> None:
    """The rows of some items as disturbances: which of the items [n], step [n], and the index of W, j [n].

    items: which rows belong to those that there are; some: which of these are wanted

    begins, day, amount: as above; monday: the day on which a period begins; ends: [2] of the range of amounts, to which
    others are moved; first, slope: the index of the least amount, and how far it moves for every unit more
    """
    k, least = 0, np.rint(ends[0] / unit)
    for i in some:
        h, before = 0, monday
        for r in range(begins[items[i]], begins[items[i] + 1]):
            h = h + 1 if day[r] == before + 1 and h + 1 < H else (day[r] - monday) % H  # divisions take long
            before = day[r]
            which[k], step[k] = i, h
            j[k] = first + slope * int(np.rint(min(max(amount[r], ends[0]), ends[1]) / unit) - least)
            k += 1


@compiled
def count_items(counts: Floats, L: int, items: Ints, h: Ints, j: Ints) -> None:
    """Count disturbances j [n] of steps h [n] of items [n]; counts: [N L, R], L being 1 or the number of steps."""
    for k in range(len(items)):
        counts[items[k] * L + min(h[k], L - 1), j[k]] += 1
