"""``ucbf figure1``, ``figure2`` and ``figure3``: the paper's study and those beyond it, each run and drawn at once."""

from __future__ import annotations

from pathlib import Path

from ucbf.cli.flags import HERE, Band, Quick, Running, Scale, Seed
from ucbf.cli.output import check_can_draw
from ucbf.cli.plot import draw_gaps, draw_growth, draw_regrets
from ucbf.cli.studies import run_missing


def figure1(
    *,
    running: Running = HERE,
    seed: Seed = 0,
    quick: Quick = False,
    band: Band = "sd",
    scale: Scale = "linear",
) -> None:
    """Reproduce the paper's figure: run its 1,500 runs, draw the six panels, print the table."""
    from ucbf.studies.paper import figure1

    check_can_draw()
    study = figure1(quick=quick, seed=seed)
    folder = running.out or Path("results") / ("figure1-quick" if quick else "figure1")
    if run_missing(study, folder, running):
        draw_gaps(folder, band, scale)


def figure2(
    *,
    running: Running = HERE,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Beyond the paper: UCB-f and UCBVI-f in its worlds, with f as told and repaired; regrets compared world by world.

    Where the f that agents are told is exact (ζ = 0), they repair it as if it could be wrong by ζ = 4.
    """
    from ucbf.studies.paper import figure2

    check_can_draw()
    study = figure2(quick=quick, seed=seed)
    folder = running.out or Path("results") / ("figure2-quick" if quick else "figure2")
    if run_missing(study, folder, running):
        draw_regrets(folder)


def figure3(
    *,
    running: Running = HERE,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Beyond the paper: how regret grows with the horizon H = 5, 10, 20, 40, with fitted exponents beside proved ones.

    UCB-f, its forms with Bernstein's bonus and with a reference, and UCBVI-f, in the paper's worlds with four actions.
    """
    from ucbf.studies.paper import figure3

    check_can_draw()
    study = figure3(quick=quick, seed=seed)
    folder = running.out or Path("results") / ("figure3-quick" if quick else "figure3")
    if run_missing(study, folder, running):
        draw_growth(folder)
