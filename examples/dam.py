"""A dam on the Fulda: real inflow, month by month, and on the Nile, year by year.

On the Fulda a released hm3 is worth more in winter, when power is dear, than in summer; at least 20 a month must flow,
and spilled water floods fields. On the Nile a fixed amount is wanted every year; a unit less costs one, and so does a
unit that is spilled. Both records are short and are split where they are. Run it with ``python examples/dam.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ucbf
from ucbf import advice, data, figures, systems

DATA = Path(__file__).parent / "data"
WINTER_POWER = (5.0, 5.0, 4.0, 3.0, 3.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0)


def fulda() -> ucbf.Advice:
    """Monthly releases for power."""
    dam = systems.Reservoir(
        unit=10, capacity=300, max_inflow=440, max_release=200,
        value=WINTER_POWER, target=20, shortage_cost=10, spill_cost=1,
    )  # fmt: skip
    return ucbf.learn(dam, data.episodes(data.read_series(DATA / "fulda.csv", least=0), horizon=12))


def nile() -> ucbf.Advice:
    """Yearly releases for what is needed below."""
    dam = systems.Reservoir(
        unit=50, horizon=5, capacity=2500, max_inflow=2000, max_release=2000, target=900, shortage_cost=1, spill_cost=1
    )
    return ucbf.learn(dam, data.episodes(data.read_series(DATA / "nile.csv", least=0), horizon=5))


def main(picture: Path = Path("results") / "dam.png") -> list[ucbf.Advice]:
    """Learn on both rivers, print the pages, draw the picture of the first."""
    found = [fulda(), nile()]
    for each in found:
        print(advice.summary(each))
    picture.parent.mkdir(parents=True, exist_ok=True)
    figures.advice_figure(found[0]).savefig(picture, dpi=160)
    print(f"picture: {picture}")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
