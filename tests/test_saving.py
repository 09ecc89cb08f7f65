import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

import forging
import ucbf
from ucbf import saving
from worlds import VARIANTS, any_world, bertsekas_inventory, make_variant


def make(name, world):
    if name in VARIANTS:
        return make_variant(name, world.system)
    return ucbf.make_agent(name, world.system, **({"law": world.law} if name == "optimal" else {}))


def assert_same(one, other):
    assert one.params.keys() == other.params.keys()
    assert one.state.keys() == other.state.keys()
    for key, array in one.state.items():
        np.testing.assert_array_equal(array, other.state[key])
    np.testing.assert_array_equal(one.policy, other.policy)


@pytest.mark.parametrize("name", [*sorted(ucbf.AGENTS), *VARIANTS])
@given(world=any_world())
@settings(max_examples=8)
def test_saving_and_going_on_twice_is_never_having_stopped(name, world, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "agent.npz"
    straight, stopped = make(name, world), make(name, world)
    assume(straight is not None)
    for part in range(3):
        one = ucbf.simulate(straight, world, 6, seed=part)
        other = ucbf.simulate(stopped, world, 6, seed=part)
        np.testing.assert_array_equal(one.gap, other.gap)
        np.testing.assert_array_equal(one.reward, other.reward)
        stopped.save(path)
        stopped = ucbf.load(path)
        assert_same(straight, stopped)


def test_it_can_stop_in_the_middle_of_an_episode(tmp_path):
    world = ucbf.random_world(seed=1)
    for name in [*sorted(ucbf.AGENTS.keys() - {"optimal"}), *VARIANTS]:
        straight, stopped = make(name, world), make(name, world)
        if straight is None:
            continue
        ucbf.simulate(straight, world, 20)
        ucbf.simulate(stopped, world, 20)
        for agent in (straight, stopped):
            agent.act(0, 3)
            agent.observe(0, 3, 1, 4)
        stopped.save(tmp_path / name)
        stopped = ucbf.load(tmp_path / name)
        for agent in (straight, stopped):
            agent.observe(1, 4, agent.act(1, 4), 9)
        assert_same(straight, stopped)


def test_the_file_is_called_as_asked_and_nothing_else_is_left(tmp_path):
    agent = ucbf.UCBf(bertsekas_inventory().system)
    agent.save(tmp_path / "agent.bin")
    agent.save(str(tmp_path / "agent.bin"))
    assert os.listdir(tmp_path) == ["agent.bin"]


def test_a_failed_save_leaves_the_earlier_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "agent"
    agent = ucbf.UCBf(bertsekas_inventory().system)
    agent.save(path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(saving.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        agent.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["agent"]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "agent.npz"
    ucbf.UCBf(bertsekas_inventory().system).save(path)
    return path


def rewrite(path, change, sealed=False):
    """Change arrays and header of a file as somebody with a text editor would, or (sealed) as another version might."""
    header, arrays = forging.contents(path)
    change(arrays, header)
    path.write_bytes(forging.sealed(header, arrays) if sealed else forging.packed(header, arrays))


def test_every_truncation_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 97):
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a saved ucbf agent, or is damaged"):
            ucbf.load(saved)


def test_a_flipped_byte_never_gives_another_agent(saved):
    whole = saved.read_bytes()
    original = ucbf.load(saved)
    refused = 0
    for place in range(0, len(whole), 53):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert_same(original, ucbf.load(saved))  # a byte of the zip's dates, say
        except ValueError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 but no zip", b"\x80\x04\x95"])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved ucbf agent, or is damaged"):
        ucbf.load(path)


def test_what_a_file_of_ones_own_agent_gets_wrong_is_one_error_too(saved):
    rewrite(saved, lambda arrays, header: header["params"].update(colour="red"), sealed=True)
    with pytest.raises(ValueError, match="does not hold this agent: .*unexpected keyword argument 'colour'; save the"):
        ucbf.load(saved)


def test_foreign_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    with pytest.raises(ValueError, match="is not a saved ucbf agent"):
        ucbf.load(tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.arange(3))
    with pytest.raises(ValueError, match="is not a saved ucbf agent"):
        ucbf.load(tmp_path / "b.npy")


def test_pickled_objects_are_refused_unopened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "trap.npz", header=np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="is not a saved ucbf agent"):
        ucbf.load(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_newer_format_is_refused_with_the_remedy(saved):
    rewrite(saved, lambda arrays, header: header.update(version=5))
    with pytest.raises(ValueError, match="has format version 5, newer than 4; upgrade ucbf"):
        ucbf.load(saved)
    rewrite(saved, lambda arrays, header: header.update(version=3))
    with pytest.raises(ValueError, match="has format version 3, older than 4, and is not read any more"):
        ucbf.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, header: arrays["state.value"].__iadd__(1),
        lambda arrays, header: header["params"].update(c=9.0),
        lambda arrays, header: arrays.pop("state.bonus"),
        lambda arrays, header: arrays.pop("digest"),
        lambda arrays, header: arrays.update({"state.extra": np.zeros(2)}),
    ],
)
def test_a_tampered_file_is_refused(saved, change):
    rewrite(saved, change)
    with pytest.raises(ValueError, match="was changed after it was written: its digest does not match"):
        ucbf.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays, header: header.update(agent="UCB-g"), "holds a 'UCB-g', none of ucbf's agents"),
        (lambda arrays, header: arrays.pop("state.bonus"), "holds no bonus of shape"),
        (lambda arrays, header: header["system"].pop("horizon"), "does not describe an agent"),
        (lambda arrays, header: header["system"].update(horizon=0), "does not describe an agent: horizon is 0"),
        (lambda arrays, header: header.update(format="other"), "is not a saved ucbf agent"),
    ],
)
def test_a_well_sealed_file_that_makes_no_sense_is_refused(saved, change, message):
    rewrite(saved, change, sealed=True)
    with pytest.raises(ValueError, match=message):
        ucbf.load(saved)


def test_a_well_sealed_file_with_an_impossible_policy_or_value_is_refused(saved):
    rewrite(saved, lambda arrays, header: arrays["state.policy"].__iadd__(10**6), sealed=True)
    with pytest.raises(ValueError, match=r"its policy\[0, 0\] is 1000000; it must be 0 to 2; save the agent again"):
        ucbf.load(saved)
    ucbf.UCBf(bertsekas_inventory().system).save(saved)
    rewrite(saved, lambda arrays, header: arrays["state.value"].__imul__(np.nan), sealed=True)
    with pytest.raises(ValueError, match="holds a value that is not a number"):
        ucbf.load(saved)


def test_python_objects_are_not_saved(tmp_path):
    agent = ucbf.UCBf(bertsekas_inventory().system)
    agent.params["callback"] = print
    with pytest.raises(TypeError, match="parameter callback is .*cannot be saved"):
        agent.save(tmp_path / "agent")
    assert not os.listdir(tmp_path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nodir is no folder; create it before saving"):
        ucbf.UCBf(bertsekas_inventory().system).save(tmp_path / "nodir" / "agent")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist; save an agent there first"):
        ucbf.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is not a saved ucbf agent"):
        ucbf.load(tmp_path)


def test_a_number_of_numpy_is_saved_as_a_number():
    assert saving._plain("c", np.float64(0.5)) == 0.5
    assert isinstance(saving._plain("c", np.float64(0.5)), float)


# -- files that somebody forged --------------------------------------------------------------------------

NAMES = [*sorted(ucbf.AGENTS), *VARIANTS]


def told(boundary):
    """Five states of which some lack actions, W from -1 to 1; no f leads out of a strict space."""
    rng, inner = np.random.default_rng(1), boundary == "strict"
    f = np.clip(np.arange(5)[:, None] + np.array([-1, 0, 1]), int(inner), 4 - inner) - 2
    allowed = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1]], bool)
    more = {"terminal": rng.random(5), "allowed": allowed, "disturbance_range": (-1, 1), "state_offset": -2}
    return ucbf.World(
        ucbf.System(f, rng.random((3, 5, 3)), 3, boundary, **more), ucbf.Disturbance([0.3, 0.4, 0.3], low=-1)
    )


def learned(name, boundary, path):
    """An agent that has seen something, saved."""
    world = told(boundary)
    agent = make(name, world)
    ucbf.simulate(agent, ucbf.World(agent.system, world.law), 40)
    agent.save(path)
    return agent


def assert_refused_or_works(files, path, **more):
    """Every forgery is refused in one way, or gives an agent with which everything can be done."""
    outcomes = {"refused": 0, "works": 0}
    for name, content in files:
        path.write_bytes(content)
        try:
            loaded, _ = forging.load(path, **more)
            if loaded is not None:
                forging.use(loaded)
        except BaseException as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        outcomes["refused" if loaded is None else "works"] += 1
    return outcomes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "every"), [("UCB-f", 3), ("UCBVI-f, offsets", 15), ("UCBVI", 3), ("random", 2)])
def test_forged_arrays_are_refused_or_harmless(name, every, tmp_path):
    learned(name, "wrap", tmp_path / "agent")
    files = itertools.islice(forging.forged_arrays(tmp_path / "agent"), 0, None, every)
    outcomes = assert_refused_or_works(files, tmp_path / "forged")
    assert min(outcomes.values()) > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("boundary", ["wrap", "clip", "strict"])
@pytest.mark.parametrize("name", NAMES)
def test_every_forgery_of_every_agent_is_refused_or_harmless(name, boundary, tmp_path):
    learned(name, boundary, tmp_path / "agent")
    assert_refused_or_works(forging.forgeries(tmp_path / "agent"), tmp_path / "forged")


@pytest.mark.slow
def test_no_forgery_reads_or_writes_out_of_bounds(tmp_path):
    """The arrays of repairing agents once more, by compiled functions that check every index."""
    names = ["UCB-f, offsets", "UCBVI-f, offsets", "UCBVI-f, linear", "UCB-f", "UCBVI-f", "UBEV", "UCBVI-BF"]
    program = "; ".join(
        [
            "import pathlib, sys, warnings; warnings.simplefilter('ignore')",
            "import forging, test_saving as t; p = pathlib.Path(sys.argv[1])",
            "files = lambda name: t.learned(name, 'clip', p / 'agent') and forging.forged_arrays(p / 'agent')",
            "[t.assert_refused_or_works(files(name), p / 'forged') for name in sys.argv[2:]]",
        ]
    )
    settings = {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *names],
        env={**os.environ, **settings}, capture_output=True, text=True, cwd=Path(__file__).parent, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", NAMES)
def test_every_array_of_every_agent_has_limits(name):
    agent = make(name, told("clip"))
    state = agent.state
    assert agent.limits(state).keys() == {array for array in state if not array.startswith("estimator.")}


@pytest.mark.parametrize(
    ("name", "array", "value", "message"),
    [
        ("UCBVI-f, offsets", "model.f", 2**31 - 1, r"its model.f\[0, 0, 0\] is 2147483647; it must be 0 to 6"),
        ("UCBVI-f, offsets", "model.low", -5, r"its model.low\[0, 0, 0\] is -5; it must be -1 to 1"),
        ("UCBVI-f, offsets", "model.amount", 0.0, r"its model.amount\[0\] is 0.0; it must be 0.003 to 1.0"),
        ("UCBVI-f, offsets", "model.visits", -1, r"its model.visits\[0\] is -1; it must be 0 to 9007199254740992"),
        ("UCBVI-f, offsets", "watch.length", 0, r"its watch.length\[0\] is 0; it must be 1 to"),
        ("UCB-f", "watch.steps", np.inf, r"its watch.steps\[0, 0, 0\] is inf; it must be 0.0 to "),
        ("UCB-f", "visits", 2**62, r"its visits\[0, 0\] is 4611686018427387904; it must be 0 to 3002399751580330"),
        ("UCB-H", "q", 0.0, r"its q\[0, 1, 1\] is 0.0; it must be -inf to -inf"),
        ("UCB-f, linear", "estimator.inverse", -1.0, "its inverse is not that of least squares"),
        ("UCB-f, linear", "estimator.news", 2, r"its news\[0\] is 2; it must be 0 to 1"),
        ("random", "count", -1, r"its count\[0\] is -1; it must be 0 to 9007199254740992"),
    ],
)
def test_what_an_array_may_hold_is_said(name, array, value, message, tmp_path):
    path = tmp_path / "agent"
    learned(name, "clip", path)
    rewrite(path, lambda arrays, header: arrays[f"state.{array}"].fill(value), sealed=True)
    with pytest.raises(ValueError, match=f"{path} does not hold this agent: {message}.*; save the agent again"):
        ucbf.load(path)


def test_a_residual_is_dated_to_a_period_that_there_is(tmp_path):
    learned("UCB-f", "clip", tmp_path / "agent")
    for change in (lambda steps: steps.__iadd__([1e6, 0, 0, 0]), lambda steps: steps.__imul__([0, 1, 1, 1])):
        learned("UCB-f", "clip", tmp_path / "agent")
        rewrite(
            tmp_path / "agent",
            lambda arrays, header: arrays["state.watch.periods"][:, 0].fill(50) or change(arrays["state.watch.steps"]),  # noqa: B023
            sealed=True,
        )
        with pytest.raises(ValueError, match=r"its watch.steps\[0, 0, 0\] is"):
            ucbf.load(tmp_path / "agent")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["UCB-H", "UCBVI-f, offsets, few"])
def test_forged_headers_and_containers_are_refused_or_harmless(name, tmp_path):
    learned(name, "clip", tmp_path / "agent")
    headers = itertools.islice(forging.forged_headers(tmp_path / "agent"), 0, None, 5)
    files = itertools.chain(headers, forging.forged_containers(tmp_path / "agent"))
    assert assert_refused_or_works(files, tmp_path / "forged")["refused"] > 50


def taken(call):
    """Bytes that a call took at most, all at once."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_more_is_unpacked_than_a_file_may_take(tmp_path):
    path = tmp_path / "bomb"
    for claimed, message in (
        (None, "bomb asks for 33554.* bytes, more than 1000000; if you trust it, load it with largest=33554"),
        (2**10, "bomb is not a saved ucbf agent, or is damaged"),
        (2**32 - 2, "bomb asks for 4294967294 bytes, more than 1000000"),
    ):
        path.write_bytes(forging.bomb(2**25, claimed))
        with pytest.raises(ValueError, match=message):
            ucbf.load(path, largest=10**6)
        assert taken(lambda: forging.load(path, largest=10**6)) < 4e6
    path.write_bytes(forging.bomb(2**20, 2**30 + 1))
    with pytest.raises(ValueError, match="asks for 1073741825 bytes, more than 1073741824"):
        ucbf.load(path)


def test_what_is_allowed_is_loaded(saved):
    size = sum(entry.file_size for entry in zipfile.ZipFile(saved).infolist())
    assert isinstance(ucbf.load(saved, largest=size), ucbf.UCBf)
    with pytest.raises(ValueError, match=f"asks for {size} bytes, more than {size - 1}"):
        ucbf.load(saved, largest=size - 1)


@pytest.mark.parametrize("name", ["UCB-f", "UCB-H", "random", "greedy"])
def test_a_forged_horizon_is_refused_before_room_is_made_for_it(name, tmp_path):
    path, world = tmp_path / "agent", bertsekas_inventory()
    ucbf.make_agent(name, world.system).save(path)
    rewrite(path, lambda arrays, header: header["system"].update(horizon=10**6), sealed=True)

    def load():
        with pytest.raises(
            ValueError, match=r"does not hold this agent: it holds no (policy|count) of shape \(1000000,"
        ):
            ucbf.load(path)

    assert taken(load) < 1e7


def test_a_system_that_takes_too_much_room_is_refused(saved):
    # Three steps of 10**7 + 1 raw next states, and eight tables over them.
    ucbf.UCBVIf(ucbf.System(np.zeros((4, 1)), 0.0, 3, "clip", disturbance_range=(-1, 0))).save(saved)
    rewrite(saved, lambda arrays, header: header["system"].update(disturbance_range=[-(10**7), 0]), sealed=True)

    def load():
        with pytest.raises(ValueError, match="asks for 1920000192 bytes, more than 1073741824; if you trust it"):
            ucbf.load(saved)

    assert taken(load) < 1e7


def test_the_header_must_not_be_longer_than_what_is_read(tmp_path):
    agent = ucbf.UCBf(bertsekas_inventory().system)
    agent.params["note"] = "x" * saving.LARGEST_HEADER
    with pytest.raises(ValueError, match="the parameters take 16777.* bytes, more than 16777216; shorten them"):
        agent.save(tmp_path / "agent")
    agent.params["note"] = "x" * (saving.LARGEST_HEADER - 2000)
    agent.save(tmp_path / "agent")
    rewrite(tmp_path / "agent", lambda arrays, header: header["params"].pop("note"), sealed=True)
    ucbf.load(tmp_path / "agent")


# -- several threads, and copies --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::ucbf.ModelWarning")
@pytest.mark.parametrize("name", ["UCBVI-f, offsets", "UCB-H", pytest.param("UCB-f, linear", marks=pytest.mark.slow)])
def test_an_agent_that_learns_while_it_is_saved_is_saved_whole(name, tmp_path):
    world, path = told("clip"), tmp_path / "agent"
    agent = make(name, world)
    same = ucbf.World(agent.system, world.law)
    ucbf.simulate(agent, same, 5)
    stop = threading.Event()

    def learn():
        for seed in itertools.takewhile(lambda _: not stop.is_set(), itertools.count(1)):
            ucbf.simulate(agent, same, 30, seed)
            agent.observe(0, 0, 1, 0)
            agent.act(0, 0)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(100):
            agent.save(path)
            state = ucbf.load(path).state
            visits = next(array for key, array in state.items() if key.endswith("visits") and len(array) == 3)
            # Every episode visits every step; only step 0 is observed alone.
            assert visits.reshape(3, -1).sum(axis=1)[1] == visits.reshape(3, -1).sum(axis=1)[2]
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", ["UCB-f", "UCBVI-f, offsets", "UCBVI"])
def test_agents_are_copied_and_pickled_with_a_lock_of_their_own(name):
    agent = make(name, told("clip"))
    for other in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert other.lock is not agent.lock
        for key, array in agent.state.items():
            np.testing.assert_array_equal(array, other.state[key])
    assert copy.copy(agent).lock is agent.lock  # the arrays are the same too
