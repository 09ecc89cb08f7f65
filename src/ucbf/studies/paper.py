"""The paper's experiment as a study."""

from __future__ import annotations

from ucbf.studies.spec import Study, make_study


def figure1(*, quick: bool = False, seed: int = 0) -> Study:
    """Figure 1 of the paper: six panels, five curves and the greedy line; ``quick`` for a look in seconds."""
    return make_study(
        {
            "name": "figure1",
            "episodes": 500 if quick else 5000,
            "worlds": 5 if quick else 50,
            "seed": seed,
            "world": {
                "kind": "random",
                "n_states": 25,
                "horizon": [5, 10],
                "n_actions": [2, 4, 8],
                "max_disturbance": 5,
                "lipschitz": 0.25,
            },
            "agents": [
                {"name": "UCB-f", "model_error": [0, 2, 4], "bonus": "published", "clock": "update"},
                {"name": "UCB-H", "bonus": "published"},
                {"name": "UCBVI", "bonus": "published"},
            ],
        }
    )
