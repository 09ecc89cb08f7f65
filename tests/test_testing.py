"""The contract checks: for every rule something that breaks it is caught, and what is registered passes.

Agents that are registered are checked in test_agents.py.
"""

import itertools
import re
from functools import partial

import numpy as np
import pytest

import ucbf
from ucbf.estimators import ESTIMATORS, Estimate, Estimator, PartialFit
from ucbf.systems import PRESETS, Inventory, Shower
from ucbf.testing import (
    AGENT_RULES,
    ESTIMATOR_RULES,
    PRESET_RULES,
    ContractError,
    check_agent,
    check_estimator,
    check_preset,
    leaning_worlds,
    small_worlds,
)


def breaks(check, rule, make, **given):
    with pytest.raises(ContractError) as caught:
        check(make, **given)
    assert caught.value.rule == rule, caught.value
    text = str(caught.value)
    assert f"breaks the rule {rule}" in text
    assert text.count(";") >= 1  # what to do
    return text


# -- agents ---------------------------------------------------------------------------------------


class Counting(ucbf.Agent):
    """Counts W and plans with the frequencies; each step for itself."""

    name = "counting"

    def __init__(self, system):
        super().__init__(system)
        self.counts = np.zeros((system.horizon, len(system.residuals)))
        self.counts[:, 0] = 1e-3

    @property
    def plan(self):
        law = self.counts / self.counts.sum(axis=1, keepdims=True)
        return ucbf.Optimal(self.system, law=ucbf.Disturbance(law, low=self.system.residuals[0]))

    @property
    def policy(self):
        return self.plan.policy

    @property
    def state(self):
        return {"counts": self.counts}

    def update(self, seen):
        self.counts[seen.h, seen.low] += 1


class LastAction(Counting):
    @property
    def policy(self):
        return np.full(self.system.allowed.shape[:2], self.system.n_actions - 1)


class Fractions(Counting):
    @property
    def policy(self):
        return super().policy.astype(float)


class Transposed(Counting):
    @property
    def policy(self):
        return super().policy.T


class ForgetsNames(Counting):
    def act(self, h, s):
        return int(self.policy[h, s % self.system.n_states])


class ActsInText(Counting):
    def act(self, h, s):
        return str(super().act(h, s))


class LetsOthersIn(Counting):
    def __init__(self, system):
        super().__init__(system)
        self.table = super().policy

    @property
    def policy(self):
        return self.table

    def update(self, seen):
        super().update(seen)
        self.table = super().policy


class FlatQ(Counting):
    q = property(lambda self: self.plan.q[0])


class EndlessQ(Counting):
    q = property(lambda self: np.full(self.system.allowed.shape, np.inf))


class PaysForNothing(Counting):
    q = property(lambda self: np.zeros(self.system.allowed.shape))


class Whimsical(Counting):
    def __init__(self, system):
        super().__init__(system)
        self.rng = np.random.default_rng()

    def update(self, seen):
        self.counts[seen.h, self.rng.integers(len(self.counts[0]))] += 1


class Shared(Counting):
    """All agents of one size have their counts in common."""

    kept: dict = {}  # noqa: RUF012

    def __init__(self, system):
        super().__init__(system)
        self.counts = self.kept.setdefault(self.counts.shape, self.counts)


class Lends(Counting):
    """Raises what every action pays while its policy is judged, and takes it back."""

    def __init__(self, system):
        super().__init__(system)
        self.pays = system.mechanics.reward
        self.pays.flags.writeable = True

    def renew(self):
        self.pays += 1

    def act(self, h, s):
        self.pays -= h == 0
        return super().act(h, s)

    def update(self, seen):
        super().update(seen)
        self.pays -= seen.h == 0


class Rewards(Counting):
    """Believes that costs are less if one writes them down so."""

    def update(self, seen):
        super().update(seen)
        self.system.terminal.flags.writeable = True
        self.system.terminal[...] -= 1


class LearnsInObserve(Counting):
    def observe(self, h, s, a, next_s, disturbance=None):
        super().observe(h, s, a, next_s, disturbance)
        self.counts[h] += 1


class Unsaved(Counting):
    state = property(lambda self: {})


class KeepsParameters(Counting):
    def __init__(self, system, weight):
        super().__init__(system)
        self.weight = weight


class LearnsAtTheEnd(Counting):
    """Keeps the transitions of an episode for its end, where no file sees them."""

    def __init__(self, system):
        super().__init__(system)
        self.kept = []

    def update(self, seen):
        self.kept.append(seen)
        if seen.h == self.system.horizon - 1:
            for each in self.kept:
                super().update(each)
            self.kept = []


class Single(Counting):
    def __deepcopy__(self, memo):
        return self


class HalfCopied(Counting):
    def __deepcopy__(self, memo):
        other = Counting(self.system)
        other.counts = self.counts
        return other


class Lenient(Counting):
    def act(self, h, s):
        return super().act(min(h, self.system.horizon - 1), s)


class RefusesOtherwise(Counting):
    def act(self, h, s):
        try:
            return super().act(h, s)
        except ValueError as error:
            raise KeyError(h) from error


class Gullible(Counting):
    """Counts a transition before it is checked."""

    def observe(self, h, s, a, next_s, disturbance=None):
        try:
            super().observe(h, s, a, next_s, disturbance)
        except ValueError:
            self.counts[0] += 1
            raise


class LooksAway(Counting):
    def warm_start(self, disturbances):
        pass


class Silent(Counting):
    def warm_start(self, disturbances):
        raise TypeError


class Certain(Counting):
    """Claims to be optimal, and to know what that is worth."""

    def certificate(self, p=0.05):
        zero = np.zeros(self.system.n_states)
        return ucbf.Certificate(zero + 1e6, zero - 1e6, zero, p)


class TooWide(Counting):
    def certificate(self, p=0.05):
        zero = np.zeros(self.system.n_states)
        return ucbf.Certificate(zero + 1e6, zero - 1e6, zero + 1e7, p)


class TooLow(Counting):
    def certificate(self, p=0.05):
        zero = np.zeros(self.system.n_states)
        return ucbf.Certificate(zero - 1e6, zero - 1e7, zero + 1e5, p)


class TooHigh(Counting):
    def certificate(self, p=0.05):
        zero = np.zeros(self.system.n_states)
        return ucbf.Certificate(zero + 1e7, zero + 1e6, zero + 1e5, p)


class Vague(Counting):
    def certificate(self, p=0.05):
        return ucbf.Certificate(*(np.full(1, np.nan),) * 3, p)


class Wordless(Counting):
    def certificate(self, p=0.05):
        raise ValueError


class SaysWhyNot(Counting):
    def certificate(self, p=0.05):
        raise ValueError("nothing is proved of it")


class Curt(Counting):
    def act(self, h, s):
        if h < 0:
            raise ValueError
        return super().act(h, s)


BROKEN_AGENTS = [
    ("is_an_agent", lambda system: 3, "it is 3; return an instance of a subclass of ucbf.Agent"),
    ("is_an_agent", type("Nameless", (Counting,), {"name": ""}), "its name is ''"),
    ("policy_is_a_table_of_allowed_actions", LastAction, r"takes action 3; choose among the allowed \[0"),
    ("policy_is_a_table_of_allowed_actions", Fractions, "policy is of type float64"),
    ("policy_is_a_table_of_allowed_actions", Transposed, r"policy has shape \(5, 3\)"),
    ("act_follows_the_policy", ForgetsNames, "look up the index of the state"),
    ("act_follows_the_policy", ActsInText, r"act\(0, -1\) is '\d'; answer with a whole number"),
    ("what_it_returns_is_a_copy", LetsOthersIn, "return a copy"),
    ("q_is_a_value_for_every_allowed_action", FlatQ, r"q has shape \(5, 4\)"),
    ("q_is_a_value_for_every_allowed_action", EndlessQ, "q is not finite where an action is allowed"),
    ("q_is_a_value_for_every_allowed_action", PaysForNothing, "q is a number where an action does not exist"),
    ("same_seed_same_run", Whimsical, "draw random numbers from a generator with a seed"),
    ("same_seed_same_run", Shared, "share nothing between agents"),
    ("gap_is_never_negative", Lends, "its gap fell to -"),
    ("system_is_not_changed", Rewards, "terminal of the system before and after: at"),
    ("observe_teaches_what_simulate_does", LearnsInObserve, "learn in update"),
    ("saved_and_loaded_it_goes_on", Unsaved, "list every array that learning changes in state"),
    ("saved_and_loaded_it_goes_on", partial(KeepsParameters, weight=1), "missing 1 required positional argument"),
    ("saved_in_the_middle_of_an_episode_it_goes_on", LearnsAtTheEnd, "saved and loaded before step 1: at"),
    ("copies_learn_apart", Single, "copy.deepcopy gives the agent itself"),
    ("copies_learn_apart", HalfCopied, "hold all that learning changes in arrays of the agent's own"),
    ("refuses_what_does_not_exist", Lenient, r"act\(3, 0\) was accepted; raise a ValueError"),
    ("refuses_what_does_not_exist", RefusesOtherwise, r"act\(-1, 0\) raised KeyError: -1"),
    ("refuses_what_does_not_exist", Curt, r"act\(-1, 0\) was refused without a word; say the value"),
    ("refuses_what_does_not_exist", Gullible, "check first, then learn"),
    ("warm_start_teaches_or_is_refused", LooksAway, "after a warm_start with 500 episodes its gap is"),
    ("warm_start_teaches_or_is_refused", Silent, "without a word"),
    ("certificate_holds", Certain, "after 0 episodes, at p = 1e-06, gap.s. is below the exact gap by"),
    ("certificate_holds", TooWide, "is above upper.s. - lower.s. by"),
    ("certificate_holds", TooLow, r"upper\(s\) is below V\*\(s\) by"),
    ("certificate_holds", TooHigh, r"lower\(s\) is above V\(s\) of its policy by"),
    ("certificate_holds", Wordless, "say why nothing can be certified"),
    ("certificate_holds", Vague, "give finite numbers"),
    ("learns", ucbf.Greedy, r"its gap is 0.\d+, where choosing at random loses 0.6"),
    ("learns", ucbf.Random, "skip=.'learns'."),
]


def test_an_agent_of_ones_own_passes():
    check_agent(Counting)
    check_agent(SaysWhyNot, small_worlds()[0], skip=["learns"])


@pytest.mark.parametrize(("rule", "make", "message"), BROKEN_AGENTS)
def test_an_agent_that_breaks_a_rule_is_caught(rule, make, message):
    Shared.kept.clear()
    somewhere = {} if rule in ("warm_start_teaches_or_is_refused", "learns") else {"world": small_worlds()[0]}
    assert re.search(message, breaks(check_agent, rule, make, **somewhere))


def test_every_rule_for_agents_is_shown_to_fail():
    assert {rule for rule, *_ in BROKEN_AGENTS} == {rule.__name__ for rule in AGENT_RULES}


def test_no_policy_that_was_not_learned_there_is_good_in_both_leaning_worlds():
    lost = []
    for world in leaning_worlds():
        pays = world.system.reward[0, :, 0]
        chances = np.zeros((3, 5, 5))  # [A, S, S'] of every next state
        for a, s, (w, p) in itertools.product(range(3), range(5), zip((-1, 0, 1), world.law.pmf[0], strict=True)):
            chances[a, s, world.system.advance(0, s, a, w)[0]] += p
        policies = np.array(list(itertools.product(range(3), repeat=5)))  # of a step; the last step pays alike
        moves = chances[policies, np.arange(5)]  # [243, S, S']
        second = pays + moves @ pays  # [243, S]
        value = (pays + np.einsum("ist,jt->ijs", moves, second)).mean(axis=2)  # [243, 243]
        assert value.max() == pytest.approx(world.best)
        at_random = (pays + chances.mean(axis=0) @ (pays + chances.mean(axis=0) @ pays)).mean()
        lost.append((world.best - value) / (world.best - at_random))
    assert np.maximum(*lost).min() == pytest.approx(0.595, abs=0.001)


def test_rules_to_skip_are_named():
    with pytest.raises(ValueError, match="unknown rule 'learn'; did you mean 'learns'"):
        check_agent(Counting, skip=["learn"])


def test_an_error_in_an_agent_is_the_cause_of_what_is_said():
    class Unfinished(Counting):
        def update(self, seen):
            raise NotImplementedError("later")

    with pytest.raises(ContractError, match="it raised NotImplementedError: later; see the traceback above") as caught:
        check_agent(Unfinished)
    assert isinstance(caught.value.__cause__, NotImplementedError)
    assert isinstance(caught.value, AssertionError)


# -- estimators -----------------------------------------------------------------------------------


class ByAction(Estimator):
    """The mean residual of each action, less that of all."""

    name = "by action"
    sign = 1

    def start(self, system):
        self.shape, self.half = (1, system.n_states, system.n_actions), system.slack
        self.seen = np.zeros((2, system.n_actions))
        self.news = np.zeros(1, np.int64)
        return 1

    def observe(self, h, s, a, residual):
        self.seen[:, a] += 1, residual
        self.news[0] = 1

    def estimate(self):
        if not self.news[0]:
            return None
        self.news[0] = 0
        count, total = self.seen
        mean = total / np.maximum(count, 1)
        error = self.half / np.sqrt(1 + count / 3)
        return Estimate(*(np.broadcast_to(row, self.shape) for row in (self.sign * (mean - mean.mean()), error)))

    @property
    def state(self):
        return {"seen": self.seen, "news": self.news}


class ManyRows(ByAction):
    def start(self, system):
        return super().start(system) + 1


class OneRow(ByAction):
    def estimate(self):
        found = super().estimate()
        return found and Estimate(found.correction[0], found.error)


class Undefined(ByAction):
    def estimate(self):
        found = super().estimate()
        return found and Estimate(found.correction * np.nan, found.error)


class Overconfident(ByAction):
    def estimate(self):
        found = super().estimate()
        return found and Estimate(found.correction, -found.error)


class Mute(ByAction):
    def estimate(self):
        return None


class Repeats(ByAction):
    def estimate(self):
        self.news[0] = 1
        return super().estimate()


class Jittery(ByAction):
    def observe(self, h, s, a, residual):
        super().observe(h, s, a, residual + np.random.default_rng().normal())


class Forgetful(ByAction):
    state = property(lambda self: {})


class TakesAnything(ByAction):
    def restore(self, state):
        for name, array in self.state.items():
            array[...] = state.get(name, 0)


class ForEveryone(ByAction):
    started = property(lambda self: False, lambda self, value: None)


class Numbered(ByAction):
    numbers = itertools.count()

    def __init__(self):
        super().__init__(number=next(self.numbers))


class WrongWay(ByAction):
    sign = -1


BROKEN_ESTIMATORS = [
    ("is_an_estimator", lambda: 3, "the estimator breaks .* it is 3; return an instance of ucbf.estimators.Estimator"),
    ("is_an_estimator", lambda only=ByAction(): only, "two calls gave the same object; make a new one"),  # noqa: B008
    ("is_an_estimator", type("Nameless", (ByAction,), {"name": None}), "its name is None"),
    ("estimates_are_finite_tables", ManyRows, "start gave 2 rows; give 1, or H = 4"),
    ("estimates_are_finite_tables", OneRow, r"correction has shape \(31, 5\); give .* = \(1, 31, 5\)"),
    ("estimates_are_finite_tables", Undefined, "correction is not finite"),
    ("estimates_are_finite_tables", Overconfident, "an error is below 0"),
    ("estimates_are_finite_tables", Mute, "after 60 observations estimate gave None"),
    ("none_if_nothing_changed", Repeats, "return None until something is observed"),
    ("same_observations_same_estimate", Jittery, r"at \[0, 0, 0, 0\] they are"),
    ("restored_it_goes_on", Forgetful, "list every array that observe or estimate changes in state"),
    ("restored_it_goes_on", TakesAnything, r"restore\({}\) was accepted"),
    ("belongs_to_one_agent", ForEveryone, "a second agent with it was accepted"),
    ("its_agent_is_saved_and_goes_on", Numbered, "pass one with the same parameters"),
    ("does_no_harm", WrongWay, "check the sign"),
]


def test_an_estimator_of_ones_own_passes():
    check_estimator(ByAction)


@pytest.mark.parametrize(("rule", "make", "message"), BROKEN_ESTIMATORS)
def test_an_estimator_that_breaks_a_rule_is_caught(rule, make, message):
    assert re.search(message, breaks(check_estimator, rule, make))


def test_every_rule_for_estimators_is_shown_to_fail():
    assert {rule for rule, *_ in BROKEN_ESTIMATORS} == {rule.__name__ for rule in ESTIMATOR_RULES}


class Ridge:
    """A regressor with scikit-learn's methods."""

    def __init__(self):
        self.moments = 0.0, 0.0

    def partial_fit(self, X, y):
        self.moments = self.moments[0] + X.T @ X, self.moments[1] + X.T @ y

    def predict(self, X):
        return X @ np.linalg.solve(self.moments[0] + 1e-3 * np.eye(X.shape[1]), self.moments[1])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_registered_estimator_keeps_the_contract(name):
    check_estimator(ESTIMATORS[name] if name != "PartialFit" else lambda: PartialFit(Ridge()))


def test_an_estimator_is_tried_where_it_is_asked():
    world = ucbf.random_world(n_states=12, n_actions=2, horizon=3, max_disturbance=2, lipschitz=None, seed=1)
    told = ucbf.corrupt(world.system.replace(disturbance_range=(0, 2)), 4, seed=1)
    check_estimator(ucbf.estimators.OffsetPosterior, world, told)
    with pytest.raises(ContractError, match="WrongWay breaks the rule does_no_harm in System.12 states"):
        check_estimator(WrongWay, world, told)
    with pytest.raises(TypeError, match="world and told go together"):
        check_estimator(WrongWay, world)


# -- presets --------------------------------------------------------------------------------------


class Unchecked(Inventory):
    def __post_init__(self):
        pass


class Stays(Inventory):
    def replace(self, **changes):
        super().replace(**changes)
        return self


class KeepsToItself(Inventory):
    def parameters(self):
        return {name: value for name, value in super().parameters().items() if name != "price"}


def changed(**arguments):
    """A store with other mechanics: each a function of what it was and of the preset."""

    def mechanics(self):
        given = Inventory.mechanics(self)
        return {**given, **{name: change(self, given[name]) for name, change in arguments.items()}}

    return type("Changed", (Inventory,), {"mechanics": mechanics})


class Narrow(Inventory):
    system = property(lambda self: Inventory(**self.parameters()).system.replace(disturbance_range=(-15, -1)))


class Unbounded(Inventory):
    system = property(lambda self: Inventory(**self.parameters()).system.replace(disturbance_range=None))


class TakesAll(Inventory):
    def disturbance_distribution(self, law):
        return super().disturbance_distribution(self.example_distribution() if law.high > self.max_demand else law)


class Backwards(Inventory):
    def amount_distribution(self, law):
        return law


class TurnsPlain(Inventory):
    def replace(self, **changes):
        return Inventory(**{**self.parameters(), **changes})


class FewAmounts(Inventory):
    @property
    def action_quantities(self):
        return super().action_quantities[:5]

    def mechanics(self):
        return {**Inventory(**self.parameters()).mechanics()}


class BeginsAnywhere(Inventory):
    def world(self, law=None, start=None):
        return super().world(law)


class Speechless(Inventory):
    def policy(self, given, steps=None, step=None):
        return ucbf.Policy(self.system, given.policy)


class Elsewhere(Inventory):
    def world(self, law=None, start=None):
        return Inventory(**self.parameters()).world(law, start)


class Doubled(Inventory):
    def policy(self, given, steps=None, step=None):
        policy = super().policy(given, steps, step)
        return ucbf.Policy(self.system, policy.actions, policy.words._replace(unit=2 * self.unit))


class Raw(Inventory):
    def policy(self, given, steps=None, step=None):
        policy = super().policy(given, steps, step)
        return ucbf.Policy(
            self.system, policy.actions, policy.words._replace(action_quantities=-self.action_quantities - 1)
        )


class Restless(ucbf.World):
    """Begins in another state each time, whatever the seed."""

    begun = itertools.count()
    start = property(lambda self: np.eye(self.system.n_states)[next(self.begun) % self.system.n_states])


class Moves(Inventory):
    def world(self, law=None, start=None):
        world = super().world(law, start)
        return world if start is not None else Restless(world.system, world.law)


class Grown(Inventory):
    """Depends on something that is no parameter."""

    factor = 1

    @property
    def action_quantities(self):
        return self.factor * super().action_quantities


def grown():
    made = Grown()
    object.__setattr__(made, "factor", 2)
    return made


class Reckless(Inventory):
    def own_rules(self, world):
        return {"always the most": np.full(world.system.allowed.shape[:2], world.system.n_actions - 1)}


class OneDay(Inventory):
    def own_rules(self, world):
        return {"nothing": np.zeros(world.system.n_states, int)}


BROKEN_PRESETS = [
    ("is_a_preset", lambda: 3, "the preset breaks the rule is_a_preset: it is 3"),
    ("is_a_preset", type("Unnamed", (Inventory,), {"state_name": ""}), "state_name is ''"),
    ("is_a_preset", type("Signless", (Inventory,), {"sign": 0}), "sign is 0; say 1 if the amount adds"),
    ("parameters_are_checked", Unchecked, "horizon=nan was accepted; refuse it in check"),
    ("replace_changes_what_is_named", Stays, "discount is 1.0, not 0.5"),
    ("replace_changes_what_is_named", TurnsPlain, "its type is Inventory; return the same kind"),
    ("replace_changes_what_is_named", KeepsToItself, "make every parameter a field"),
    (
        "actions_exist_everywhere",
        changed(allowed=lambda self, was: lambda s, a: s + a < 0),
        "state 0 has no allowed action",
    ),
    ("actions_exist_everywhere", FewAmounts, "for 21 actions; give a number for each"),
    ("range_of_w_covers_the_amounts", Narrow, "are W from -15 to 0, but -15 to -1 is declared"),
    ("range_of_w_covers_the_amounts", Unbounded, "its system declares no range of W"),
    ("range_of_w_covers_the_amounts", Backwards, "mean amounts of .* came back as"),
    ("range_of_w_covers_the_amounts", TakesAll, "an amount beyond its range was accepted"),
    ("a_profile_only_moves_w", changed(f=lambda self, was: lambda s, a: s + a), "add sign . expected.h. to f"),
    (
        "a_finer_unit_is_the_same_system",
        changed(landing=lambda self, was: lambda z: was(z) / self.unit),
        "a cost of each unit is multiplied by unit",
    ),
    (
        "a_finer_unit_is_the_same_system",
        changed(terminal=lambda self, was: lambda s: 4.0 * s),
        r"the end pays 80 in units of 1 and 400 in units of 0.2",
    ),
    (
        "a_finer_unit_is_the_same_system",
        changed(f=lambda self, was: lambda h, s, a: was(h, s, a) + 1),
        "f leads elsewhere",
    ),
    (
        "a_finer_unit_is_the_same_system",
        changed(allowed=lambda self, was: lambda s, a: (s + a <= self.capacity) | (a == 0)),
        "an action is not allowed where it was",
    ),
    (
        "a_finer_unit_is_the_same_system",
        changed(state_offset=lambda self, was: -3),
        "it has other states; count states in units",
    ),
    ("world_begins_where_asked", Elsewhere, "make it of ``system``"),
    ("world_begins_where_asked", BeginsAnywhere, "the first state as it was asked for"),
    ("policies_are_told_in_its_words", Speechless, r"its columns are \['step', 'state', 'action'\]; call them \['day'"),
    ("policies_are_told_in_its_words", Doubled, "give each state, times unit, at every step"),
    ("policies_are_told_in_its_words", Raw, "use action_quantities"),
    ("its_environment_passes_gymnasiums_check", Moves, "it raised .*Determin"),
    ("saved_controllers_give_the_same_orders", grown, "make all that it depends on a field of the dataclass"),
    ("rules_are_policies", Reckless, "where it is not allowed"),
    ("rules_are_policies", OneDay, r"'nothing' has shape \(21,\); give \[H, S\]"),
]


def test_a_preset_with_parameters_passes():
    check_preset(partial(Inventory, unit=2.5, capacity=20, max_demand=10, backlog=5, order_cost=3, profile=(5.0,) * 7))
    check_preset(lambda: Shower(horizon=2, coldest=-2, hottest=2, target_low=0, target_high=1, discount=0.5))


@pytest.mark.parametrize(("rule", "make", "message"), BROKEN_PRESETS)
def test_a_preset_that_breaks_a_rule_is_caught(rule, make, message):
    assert re.search(message, breaks(check_preset, rule, make))


def test_every_rule_for_presets_is_shown_to_fail():
    assert {rule for rule, *_ in BROKEN_PRESETS} == {rule.__name__ for rule in PRESET_RULES}


@pytest.mark.parametrize("kind", PRESETS)
def test_every_registered_preset_keeps_the_contract(kind):
    check_preset(PRESETS[kind])
