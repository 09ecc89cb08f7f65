"""How files are written: whole or not at all, and nothing is left behind."""

import os
import time

import pytest

from ucbf import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def part_of(path, letter, hours):
    """What a writer that was killed so many hours ago left beside ``path``."""
    part = path.with_name(f".{path.name}.{letter * 32}.part")
    part.write_bytes(b"half")
    then = time.time() - 3600 * hours
    os.utime(part, (then, then))
    return part


def test_old_parts_of_the_same_file_are_removed_and_no_others(tmp_path):
    target, other = tmp_path / "agent[1].npz", tmp_path / "agent1.npz"
    old, new, others = part_of(target, "a", 1.1), part_of(target, "b", 0.9), part_of(other, "c", 1.1)
    files.write_whole(target, b"whole")
    assert names(tmp_path) == sorted([target.name, new.name, others.name])
    files.remove_parts(tmp_path)
    assert names(tmp_path) == sorted([target.name, new.name])
    assert not old.exists()


def test_what_was_written_wrongly_never_takes_the_place_of_an_earlier_file(tmp_path, monkeypatch):
    target = tmp_path / "agent.npz"
    files.write_whole(target, b"earlier")

    def fail(number):
        os.pwrite(number, b"?", 0)  # a disk that keeps something else

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="agent.npz does not read back as it was written; an earlier file is kept"):
        files.write_whole(target, b"later")
    assert target.read_bytes() == b"earlier"
    assert names(tmp_path) == ["agent.npz"]
