"""Ways of knowing W: counting, and one of a user's own."""

import numpy as np
import pytest

import ucbf
from ucbf.laws import LAWS, Counts, Law


class Own(Law):
    """Counts that fade, as a user would write it."""

    name = "Own"

    def __init__(self, *, keep=1.0):
        super().__init__(keep=keep)

    def start(self):
        self.counts = np.zeros((self.horizon, self.bins.n))

    def add(self, h, j, share):
        self.counts[h] *= self.params["keep"]
        self.counts[h, j] += share

    def pmf(self):
        total = self.counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.counts / np.where(total > 0, total, 1), self.bins.guess)

    @property
    def state(self):
        return {"counts": self.counts}


@pytest.fixture
def world():
    return ucbf.random_world(9, 3, 4, seed=2)


def test_a_law_of_ones_own_that_counts_is_counting(world):
    own, counted = ucbf.UCBVIf(world.system, law=Own()), ucbf.UCBVIf(world.system)
    runs = [ucbf.simulate(agent, world, 60, seed=1) for agent in (own, counted)]
    np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
    np.testing.assert_allclose(own.law.pmf, counted.law.pmf)
    history = world.draw(5, 9)[1]
    for agent in (own, counted):
        agent.warm_start(history)
    np.testing.assert_allclose(own.law.pmf, counted.law.pmf)
    np.testing.assert_array_equal(own.policy, counted.policy)


def test_a_law_that_fades_by_hand(world):
    agent = ucbf.UCBVIf(world.system, law=Own(keep=0.5))
    agent.warm_start([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    # At step 0: weights 1/4 for the 0, 1/2 + 1 for the two 1.
    np.testing.assert_allclose(agent.law.pmf[0, :2], [0.25 / 1.75, 1.5 / 1.75])


def test_saving_a_law_of_ones_own_and_going_on(world, tmp_path):
    agent = ucbf.UCBVIf(world.system, law=Own(keep=0.9))
    ucbf.simulate(agent, world, 20, seed=1)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match="does not hold this agent: unknown law 'Own'"):
        ucbf.load(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz", law=Own(keep=0.9))
    a, b = (ucbf.simulate(each, world, 20, seed=2) for each in (agent, again))
    np.testing.assert_array_equal(a.gap, b.gap)
    with pytest.raises(ValueError, match="pass one with the same parameters"):
        ucbf.load(tmp_path / "agent.npz", law=Own(keep=0.8))


def test_counts_by_name_are_the_default(world):
    agents = [
        ucbf.UCBVIf(world.system, stationary=True),
        ucbf.UCBVIf(world.system, law={"name": "Counts", "stationary": True}),
        ucbf.UCBVIf(world.system, law=Counts(stationary=True)),
    ]
    for agent in agents:
        ucbf.simulate(agent, world, 10, seed=0)
    for other in agents[1:]:
        np.testing.assert_array_equal(agents[0].policy, other.policy)
        np.testing.assert_array_equal(agents[0].law.pmf, other.law.pmf)
    assert "Counts" in LAWS


def test_a_prior_in_a_law_is_saved(world, tmp_path):
    agent = ucbf.UCBVIf(world.system, law=Counts(prior=world.law, prior_weight=3))
    agent.save(tmp_path / "agent.npz")
    np.testing.assert_array_equal(ucbf.load(tmp_path / "agent.npz").law.pmf, agent.law.pmf)


def test_what_makes_no_sense_is_refused(world):
    law = Own()
    ucbf.UCBVIf(world.system, law=law)
    with pytest.raises(ValueError, match="already belongs to an agent"):
        ucbf.UCBVIf(world.system, law=law)
    with pytest.raises(ValueError, match="give them to the law itself"):
        ucbf.UCBVIf(world.system, law="Counts", stationary=True)
    with pytest.raises(ValueError, match="unknown law 'Count'; did you mean 'Counts'"):
        ucbf.UCBVIf(world.system, law="Count")
    with pytest.raises(TypeError, match="law is 3; give one of ucbf.laws"):
        ucbf.UCBVIf(world.system, law=3)
    with pytest.raises(ValueError, match="nothing is proved of Own"):
        ucbf.UCBVIf(world.system, law=Own()).certificate()
    told = ucbf.corrupt(world.system, 2)
    with pytest.raises(ValueError, match="OffsetPosterior needs W counted"):
        ucbf.UCBVIf(told, law=Own(), estimator="OffsetPosterior")


def test_a_pmf_that_is_none_is_refused(world):
    class Wrong(Own):
        name = "Wrong"

        def pmf(self):
            return np.ones((1, self.bins.n))

    with pytest.raises(ValueError, match="Wrong.pmf gave rows that are no probabilities"):
        ucbf.UCBVIf(world.system, law=Wrong())

    class Silent(Law):
        name = "Silent"

    with pytest.raises(NotImplementedError, match="Silent must say what it believes: give it `pmf`"):
        ucbf.UCBVIf(world.system, law=Silent())


def test_what_is_known_of_w_moves_to_another_price_list(world):
    for law in (None, Own(keep=0.7)):
        agent = ucbf.UCBVIf(world.system, law=law)
        ucbf.simulate(agent, world, 15, seed=4)
        moved = agent.moved_to(world.system.replace(reward=-world.system.reward))
        np.testing.assert_array_equal(moved.law.pmf, agent.law.pmf)
