"""Ways of knowing W: counting, and one of a user's own."""

from functools import partial

import numpy as np
import pytest

import ucbf
from ucbf.laws import LAWS, Counts, Law, Levels, Recent
from ucbf.laws.mixtures import LevelMixture


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


def test_the_guess_is_worth_what_the_counts_say_it_is():
    system = ucbf.System([[0], [1], [2]], [0.0, 1.0, 3.0], 2, "wrap", disturbance_range=(0, 2))
    agent = ucbf.UCBVIf(system)
    agent.warm_start([[0, 1], [0, 1], [0, 2], [1, 1]])
    # Step 0 has the shares 3/4, 1/4, 0, step 1 has 0, 3/4, 1/4; the guess is 1/3 each.
    # Spread: Σ p(1 - p) is 6/16 at both, times 4/3: 1/2. Bias: Σ (p - 1/3)² is 7/24 at both, less 1/8: 1/6. So w = 3.
    # Chances of at most j: 3/4, 1, 1 and 0, 3/4, 1. Spread: 3/16 at both, times 4/3: 1/4. Bias: of the guess's 1/3, 2/3
    # it is 25/144 + 16/144 - 1/16 = 2/9 at step 0, 16/144 + 1/144 - 1/16 = 1/18 at step 1. So w is (1/2)/(5/18) = 9/5
    # of both steps, and (1/4)/(1/18) = 9/2 of step 1 alone. The smaller counts: 9/5 at step 0, 3 at step 1.
    w, v = 9 / 5, 3
    np.testing.assert_allclose(
        agent.law.pmf, [[(3 + w / 3) / (4 + w), (1 + w / 3) / (4 + w), w / 3 / (4 + w)],
                        [v / 3 / (4 + v), (3 + v / 3) / (4 + v), (1 + v / 3) / (4 + v)]], rtol=1e-12,
    )  # fmt: skip
    np.testing.assert_array_equal(agent.knowledge.counted(), [[3, 1, 0], [0, 3, 1]])


def test_what_is_planned_for_a_step_does_not_depend_on_the_disturbances_of_earlier_ones():
    world = ucbf.random_world(12, 3, 4, 5, None, seed=1)
    history = np.random.default_rng(2).integers(0, 6, (30, 4)) // np.arange(1, 5)
    for h in range(1, 4):
        agents = [ucbf.UCBVIf(world.system.replace(disturbance_range=(0, 5))) for _ in range(2)]
        agents[0].warm_start(history)
        history[:, h - 1] = 0
        agents[1].warm_start(history)
        assert (agents[0].law.pmf[h - 1] != agents[1].law.pmf[h - 1]).any()
        np.testing.assert_array_equal(agents[0].law.pmf[h:], agents[1].law.pmf[h:])
        np.testing.assert_array_equal(agents[0].policy[h:], agents[1].policy[h:])


def test_the_guess_counts_at_most_two_of_each_and_nothing_where_one_disturbance_comes():
    system = ucbf.System([[0], [1], [2]], [0.0, 1.0, 3.0], 1, "wrap", disturbance_range=(0, 2))
    even, one, once = ucbf.UCBVIf(system), ucbf.UCBVIf(system), ucbf.UCBVIf(system)
    even.warm_start([[0], [1], [2], [0], [1]])  # no further off than chance: the guess counts for 6 disturbances
    np.testing.assert_allclose(even.law.pmf, [[4 / 11, 4 / 11, 3 / 11]])
    one.warm_start([[1]] * 3)
    np.testing.assert_array_equal(one.law.pmf, [[0, 1, 0]])
    once.warm_start([[1]])  # nothing is known of how far disturbances differ
    np.testing.assert_array_equal(once.law.pmf, [[0, 1, 0]])


@pytest.mark.parametrize("how", ["not declared", "prior_weight=0", "f may be wrong", "contexts"])
def test_elsewhere_counts_stay_bare(how):
    given = {} if how == "not declared" else {"disturbance_range": (0, 2)}
    given |= {"model_error": 2} if how == "f may be wrong" else {}
    given |= {"contexts": 2} if how == "contexts" else {}
    f, reward = np.arange(9)[:, None], np.arange(9.0)
    system = ucbf.System(f, reward, 1, "wrap", **given)
    agent = ucbf.UCBVIf(system, prior_weight=0) if how == "prior_weight=0" else ucbf.UCBVIf(system)
    agent.warm_start([[0], [0], [1], [1]], contexts=[[0, 0]] * 4 if how == "contexts" else None)
    np.testing.assert_allclose(np.sort(agent.law.pmf[0])[-2:], [0.5, 0.5])


def test_the_worth_of_the_guess_is_that_of_a_slow_transcription():
    rng = np.random.default_rng(3)
    for n_rows, n in ((1, 4), (3, 6), (7, 2)):
        pmf = rng.dirichlet(np.ones(n), n_rows)
        rows = [np.bincount(rng.choice(n, 2 + 5 * h, p=pmf[h]), minlength=n) for h in range(n_rows)]
        bins = ucbf.System([[0]] * 9, np.zeros(9), n_rows, "wrap", disturbance_range=(0, n - 1)).bins
        law = Counts()
        law.attach(bins, n_rows)
        law.arrays.counts[:, :n] = rows
        for h, seen in enumerate(rows):
            worth = []
            for table in (np.eye(n), np.triu(np.ones((n, n)))):  # of single disturbances, of those up to each
                spread = bias = 0.0
                for row in rows[h:]:  # of this step and of later ones
                    share = row / row.sum()
                    at = table.T @ share
                    variance = (at * (1 - at)).sum() * row.sum() / (row.sum() - 1)
                    spread, bias = spread + variance, bias + ((at - table.T @ np.full(n, 1 / n)) ** 2).sum()
                    bias -= variance / row.sum()
                worth.append(min(2 * n, spread / bias) if bias > 0 else 2 * n)
            w = min(worth)
            np.testing.assert_allclose(law.believed()[h, :n], (seen + w / n) / (seen.sum() + w), rtol=1e-9)


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


# -- what is recent ------------------------------------------------------------------------------------------------


def test_recent_disturbances_count_more_by_hand(world):
    agent = ucbf.UCBVIf(world.system, law=Recent(half_life=2))
    agent.warm_start([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    # At step 0 the 0 is two episodes old: it counts 1/2, the 1 before the last 2^-1/2, the last 1.
    total = 0.5 + 0.5**0.5 + 1
    np.testing.assert_allclose(agent.law.pmf[0, :2], [0.5 / total, (0.5**0.5 + 1) / total])
    np.testing.assert_allclose(agent.law.pmf[1, 0], 1)


def test_the_half_life_that_predicted_best_is_taken(world):
    law = Recent()
    agent = ucbf.UCBVIf(world.system, law=law)
    assert law.half_life == np.inf
    n = len(law.bins.guess)
    agent.warm_start([[0, 0, 0, 0]])
    np.testing.assert_allclose(list(law.scores.values()), 4 * np.log(1 / n))  # nothing was known of any step
    agent.warm_start([[0, 0, 0, 0]])
    # With a half-life of 4 the first counts 2^0 when the second is predicted: it fades as others come.
    np.testing.assert_allclose(law.scores[4.0], 4 * np.log(1 / n) + 4 * np.log((1 + 1 / n) / 2))
    agent.warm_start([[0, 0, 0, 0]] * 40)
    assert law.half_life == np.inf
    agent.warm_start([[2, 2, 2, 2]] * 12)
    assert law.half_life == 4
    assert agent.law.pmf[0, 2] > 0.85
    steady = Recent()
    ucbf.UCBVIf(world.system, law=steady).warm_start(world.draw(400, 3)[1])
    assert steady.half_life >= 64


def test_a_prior_is_forgotten(world):
    law = Recent(half_life=1, prior=ucbf.Disturbance([1.0], low=2), prior_weight=4)
    agent = ucbf.UCBVIf(world.system, law=law)
    assert agent.law.pmf[0, 2] == 1
    agent.warm_start([[1, 1, 1, 1], [1, 1, 1, 1]])  # 4 fades to 1; 1 to 1/2, and 1 more
    np.testing.assert_allclose(agent.law.pmf[0, 1:3], [1.5 / 2.5, 1 / 2.5])


def test_recent_is_saved_pooled_and_certifies_nothing(world, tmp_path):
    agent = ucbf.UCBVIf(world.system, law={"name": "Recent", "half_life": 8, "stationary": True})
    ucbf.simulate(agent, world, 20, seed=1)
    agent.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz")
    runs = [ucbf.simulate(each, world, 20, seed=2) for each in (agent, again)]
    np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
    assert again.law.pmf.shape == (1, 9)
    with pytest.raises(ValueError, match="nothing is proved of Recent"):
        agent.certificate()
    with pytest.raises(ValueError, match="half_life is 0"):
        Recent(half_life=0)


@pytest.mark.filterwarnings("ignore::ucbf.ModelWarning")
def test_an_agent_that_forgets_follows_a_world_that_changes():
    system = ucbf.systems.Inventory(capacity=20, max_demand=10, horizon=1, holding=1, price=5).system
    before, after = (ucbf.World(system, ucbf.Disturbance([1.0], low=-d)) for d in (9, 2))
    gaps = []
    for law in (None, Recent(half_life=4)):
        agent = ucbf.UCBVIf(system, law=law)
        ucbf.simulate(agent, before, 60, seed=0)
        gaps.append(ucbf.simulate(agent, after, 30, seed=1).gap.sum())
    assert gaps[1] < 0.5 * gaps[0]


# -- levels that drift ----------------------------------------------------------------------------------------


SHOP = ucbf.systems.Inventory(horizon=3, capacity=40, max_demand=30)


def drifting(days, law=None):
    agent = ucbf.UCBVIf(SHOP.system, law=law or Levels())
    agent.warm_start(SHOP.disturbances(np.reshape(days, (-1, 3)).astype(float)))
    return agent


def test_every_step_has_the_forecast_of_so_many_steps_ahead():
    days = [20, 22, 19, 21, 9, 8]
    agent, mixture = drifting(days), LevelMixture()
    for day in days:
        mixture.add(day)
    n = 2048
    draws = np.random.default_rng(0).standard_normal((n, 8))
    paths = mixture.paths((np.arange(n) + 0.5) / n, draws)  # [n, 3]: 1, 2, 3 steps ahead
    for h in range(3):
        shares = np.bincount(np.minimum(np.rint(paths[:, h]), 30).astype(int), minlength=31) / n
        np.testing.assert_allclose(agent.law.pmf[h], shares[::-1])  # W is -30 to 0
    # After one step of the next episode its second step is one ahead, and its first, of the episode after it, three.
    before = agent.knowledge.pmf()
    agent.observe(0, 10, 0, 3, disturbance=-7)
    mixture.add(7)
    paths = mixture.paths((np.arange(n) + 0.5) / n, draws)
    after = agent.knowledge.pmf()
    for h, ahead in ((1, 0), (2, 1), (0, 2)):
        shares = np.bincount(np.minimum(np.rint(paths[:, ahead]), 30).astype(int), minlength=31) / n
        np.testing.assert_allclose(after[h], shares[::-1])
    assert (before != after).any()


def test_levels_follow_a_demand_that_fell_and_counting_does_not():
    days = np.random.default_rng(0).poisson(np.repeat([20, 6], 45)).clip(0, 30)
    fell, counted = drifting(days), drifting(days, Counts())
    assert all(-9 < fell.law.mean(h) < -4 for h in range(3))
    assert counted.law.mean(0) < -12
    assert fell.policy[0, 0] < counted.policy[0, 0]


def test_levels_are_saved_and_go_on_bit_for_bit(tmp_path):
    agent = drifting(np.random.default_rng(1).poisson(9, 30), Levels(discounts=(0.9, 0.5), paths=256))
    agent.observe(0, 20, 0, 12, disturbance=-8)
    agent.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz")
    assert again.knowledge.params == {"discounts": [0.9, 0.5], "paths": 256}
    for each in (agent, again):
        each.observe(1, 12, 0, 3, disturbance=-9)
    np.testing.assert_array_equal(again.knowledge.pmf(), agent.knowledge.pmf())
    np.testing.assert_array_equal(again.policy, agent.policy)


def test_levels_of_either_sign_and_of_both():
    for low, high, came in ((0, 9, 4), (-9, 0, -4), (-3, 6, 2)):
        system = ucbf.System(lambda s, a: s + a, [[0.0, 0.0]] * 20, 2, boundary="clip", disturbance_range=(low, high))
        agent = ucbf.UCBVIf(system, law=Levels(paths=512))
        np.testing.assert_array_equal(agent.law.pmf, np.full((2, 10), 0.1))  # nothing was seen
        agent.warm_start([[came, came]] * 20)
        assert agent.law.pmf[0, came - low] > 0.7
        assert agent.law.mean(0) == pytest.approx(came, abs=0.3)


def test_levels_need_whole_numbers_on_one_axis():
    box = ucbf.System(
        lambda s, a: s, lambda s, a: s[:, 0], 3, low=[0, 0], high=[3, 3], actions=[0, 1], boundary="clip",
        disturbance_range=([-1, -1], [1, 1]),
    )  # fmt: skip
    with pytest.raises(ValueError, match="whole numbers on one axis"):
        ucbf.UCBVIf(box, law=Levels())
    with pytest.raises(ValueError, match="each discount is 0"):
        Levels(discounts=(0.0,))
    with pytest.raises(ValueError, match="nothing is proved of Levels"):
        drifting([1, 2, 3]).certificate()


def test_levels_keep_the_contract_of_agents():
    ucbf.testing.check_agent(partial(ucbf.UCBVIf, law={"name": "Levels", "paths": 128}))
