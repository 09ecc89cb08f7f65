import json
import os

import numpy as np
import pytest
from hypothesis import assume, given, settings

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
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    change(arrays, header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    if sealed:
        del arrays["digest"]
        arrays["digest"] = saving._digest(arrays)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


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
    rewrite(saved, lambda arrays, header: header.update(version=3))
    with pytest.raises(ValueError, match="has format version 3, newer than 2; upgrade ucbf"):
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
    with pytest.raises(ValueError, match="policy takes action 1000000"):
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
