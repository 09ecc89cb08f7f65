"""Regret over the horizon: fitted and proved exponents."""

import numpy as np
import pyarrow as pa
import pytest

from ucbf import exponents
from ucbf.errors import UserError
from ucbf.studies.reading import make_study
from ucbf.studies.store import Results


def stored(horizon, regret):
    """Results of two agents in two worlds for each horizon, of which agent i has the regret ``regret(i, H, world)``."""
    agents = [{"name": "UCB-f", "bonus": "theorem"}, {"name": "UCB-f-Reference"}]
    study = make_study({"episodes": 10, "worlds": 2, "world": {"horizon": horizon}, "agents": agents})
    runs = []
    for p, panel in enumerate(study.panels()):
        for i, agent in enumerate(agents):
            for world in range(2):
                params = '{"bonus": "theorem"}' if i == 0 else "{}"
                total = float(regret(i, panel["horizon"], world))
                runs.append({"panel": p, "label": agent["name"], "agent": agent["name"], "agent_params": params,
                             "world": world, "regret": total, "greedy_gap": 1.0})  # fmt: skip
    curves = pa.table({name: np.ones(len(runs)) for name in ("episode", "gap", "regret")})
    return Results(study, pa.Table.from_pylist(runs), curves)


def test_the_exponents_are_those_of_the_powers_that_regret_was_made_from():
    # 2 H³ in one world and 8 H³ in the other: the slope is 3 and the means 5 H³; the other agent has H.
    found = exponents.growths(stored([2, 4, 8], lambda i, H, world: (2 if world == 0 else 8) * H**3 if i == 0 else H))
    first, second = found
    np.testing.assert_array_equal(first.horizons, [2, 4, 8])
    np.testing.assert_allclose(first.means, [40, 320, 2560])
    assert first.fit.exponent == pytest.approx(3)
    assert second.fit == pytest.approx((1, 0), abs=1e-9)
    assert first.proved == (3.5, "sqrt(H⁶T)")
    assert second.proved is None
    rows = exponents.rows(found)
    assert rows[0]["proved"] == "3.5: sqrt(H⁶T)"
    assert rows[1] == {"agent": "UCB-f-Reference", "H = 2": "2 (2, 2)", "H = 4": "4 (4, 4)", "H = 8": "8 (8, 8)",
                       "regret ~ H^": "1.00 ± 0.00", "proved": "-"}  # fmt: skip
    assert [row["regret"] for row in exponents.numbers(found)] == pytest.approx([40, 320, 2560, 2, 4, 8])


def test_a_study_that_varies_something_else_is_refused():
    with pytest.raises(UserError, match="worlds that differ in their horizon only"):
        exponents.growths(stored(5, lambda i, H, world: 1.0))
