"""What the items of a fleet have in common, and what each pays: tables that are linear in its costs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import numbers, whole
from ucbf.kernels.fleet import Parts
from ucbf.system import System
from ucbf.systems.base import Preset

Floats = NDArray[np.float64]
MOST_ACTIONS = 2**15  # that fit into the table of actions


def checked_system(preset: Any) -> System:
    """The system that all items have in common, or a readable error."""
    system = preset.system if isinstance(preset, Preset) else preset
    if not isinstance(system, System):
        raise TypeError(f"preset is {preset!r:.60}; give one of ucbf.systems, or a ucbf.System")
    if not system.space.all_whole or system.n_contexts > 1 or system.lag or system.model_error:
        raise ValueError(
            "a fleet is of systems with whole states and exact f, without contexts and rewards that are paid late; use "
            "UCBVI-f, item by item"
        )
    if system.n_actions >= MOST_ACTIONS:
        raise ValueError(f"there are {system.n_actions} actions; a fleet takes up to {MOST_ACTIONS - 1}")
    return system


def checked_costs(preset: Preset | None, given: Any, n_items: int | None) -> tuple[tuple[str, ...], Floats]:
    """Names of the costs, and [N, C] their values."""
    if not given:
        if n_items is None:
            raise ValueError("neither costs nor n_items is given; say how many items there are")
        return (), np.zeros((whole("n_items", n_items, 1, 2**31), 0))
    if preset is None:
        raise ValueError("costs are parameters of a preset, and a System has none; give a preset, or n_items alone")
    unknown = [name for name in given if name not in preset.money or name == "price_breaks"]
    if unknown:
        known = ", ".join(name for name in preset.money if name != "price_breaks")
        raise ValueError(f"{unknown[0]} is no cost that items may differ in; those are {known}")
    columns = {name: numbers(name, values) for name, values in given.items()}
    n = {values.shape for values in columns.values()}
    if len(n) > 1 or len(next(iter(n))) != 1 or (n_items is not None and (n_items,) not in n):
        raise ValueError(f"costs have shapes {sorted(n)}; give one number for each item, as many of each")
    return tuple(columns), np.stack(list(columns.values()), axis=1)


def parts_of(system: System, preset: Preset | None, names: tuple[str, ...], costs: Floats) -> Parts:
    """What all items pay, and what a cost of 1 adds; kept for the next items of this preset."""
    if preset is None or not names:
        m = system.mechanics
        return _parts(m.reward[None], m.landing[None], m.terminal[None])
    known: dict[tuple[str, ...], _Known] = vars(preset).setdefault("_parts_of_costs", {})  # beside its system
    totals = costs.sum(axis=1)
    if names not in known:
        parts = _asked(preset, names)
        _check_linear(preset, names, costs[int(totals.argmin())], parts)
        known[names] = _Known(parts, -np.inf)
    if totals.max() > known[names].checked_to:
        _check_linear(preset, names, costs[int(totals.argmax())], known[names].parts)
        known[names] = known[names]._replace(checked_to=float(totals.max()))
    return known[names].parts


class _Known(NamedTuple):
    """The parts of a preset, which is kept beside it, and the largest sum of costs that they were checked with."""

    parts: Parts
    checked_to: float


def _asked(preset: Preset, names: tuple[str, ...]) -> Parts:
    """The same, by asking the preset for one cost after the other."""
    nothing = dict.fromkeys(names, 0.0)
    asked = [nothing, *({**nothing, name: 1.0} for name in names)]
    tables = [preset.replace(**one).system.mechanics for one in asked]
    exists = np.isfinite(tables[0].reward)
    reward = np.stack([np.where(exists, m.reward, 0) for m in tables])
    parts = [reward, np.stack([m.landing for m in tables]), np.stack([m.terminal for m in tables])]
    for table in parts:
        table[1:] -= table[0]
    parts[0][0][~exists] = -np.inf
    return _parts(*parts)


def _parts(reward: Floats, landing: Floats, terminal: Floats) -> Parts:
    """The tables, [1 + C, ...] each, and where there is anything in them."""
    tables = reward, landing, terminal = tuple(map(np.ascontiguousarray, (reward, landing, terminal)))
    pays = np.stack([table.reshape(len(table), -1).any(axis=1) for table in tables])
    return Parts(reward, landing, terminal, pays)


def _check_linear(preset: Preset, names: tuple[str, ...], costs: Floats, parts: Parts) -> None:
    """An error if what an item with these costs [C] pays does not follow from what they pay one by one."""
    m = preset.replace(**dict(zip(names, costs.tolist(), strict=True))).system.mechanics
    for table, part in zip((m.reward, m.landing, m.terminal), parts.tables, strict=True):
        told = part[0] + np.tensordot(costs, part[1:], 1)
        finite = np.isfinite(table)
        scale = 1e-9 * (1 + float(np.abs(table[finite]).max(initial=0)))
        if not np.allclose(table[finite], told[finite], rtol=0, atol=scale):
            raise ValueError(
                f"what {type(preset).__name__} pays is not the sum of what {', '.join(names)} make it pay one by "
                "one; give fewer of them as costs of items, and the others to the preset"
            )
