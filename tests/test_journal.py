"""The journal and its lock: nothing that was acknowledged is lost, nothing counts twice, damage is named."""

import errno
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from ucbf import locks
from ucbf.errors import UserError
from ucbf.journal import Journal, _line
from ucbf.locks import LockFile

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from attack.kills import Disk, calls_of, fault, in_child, killed

ABOUT = {"preset": "inventory", "spacing": "day"}


def journal(folder, **about):
    return Journal(Path(folder) / "journal.jsonl", {**ABOUT, **about})


def add(here, *records):
    with here.writing() as writing:
        writing.append(records)


def add_once(here, record):
    """As those do who take in a step: only what is not there yet."""
    with here.writing() as writing:
        if record not in writing.contents.records:
            writing.append([record])


def days(n):
    return [{"date": f"2024-03-{i + 1:02d}", "demand": float(i), "note": "größer"} for i in range(n)]


def test_lines_are_json_with_a_checksum_and_come_back_in_their_order(tmp_path):
    here = journal(tmp_path)
    assert here.read() == (None, (), 0, 0, True, "")
    add(here, *days(2))
    add(here, days(3)[2])
    found = journal(tmp_path).read()
    assert found.records == tuple(days(3))
    assert found.about == {"format": "ucbf journal", "version": 1, **ABOUT}
    lines = here.path.read_text().splitlines()
    assert [json.loads(line)["demand"] for line in lines[1:]] == [0.0, 1.0, 2.0]
    assert len({json.loads(line)["check"] for line in lines}) == 4
    assert found.whole == here.path.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]


def test_a_line_that_was_cut_short_anywhere_is_ignored_and_written_over(tmp_path):
    here = journal(tmp_path)
    add(here, *days(2))
    kept = here.path.read_bytes()
    add(here, days(3)[2])
    whole = here.path.read_bytes()
    for end in range(len(kept), len(whole) - 1):
        here.path.write_bytes(whole[:end])
        found = here.read()
        assert found.records == tuple(days(2))
        assert found.unfinished == end - len(kept)
        add(here, days(3)[2])
        assert here.path.read_bytes() == whole
    here.path.write_bytes(whole[:-1])  # only its end of line is missing: it counts
    assert here.read().records == tuple(days(3))
    add(here, days(4)[3])
    assert here.read().records == tuple(days(4))
    for end in range(whole.index(b"\n")):  # the first line too
        here.path.write_bytes(whole[:end])
        assert here.read()[:2] == (None, ())
        add(here, days(1)[0])
        assert here.read().records == tuple(days(1))


def test_zeros_that_a_power_cut_leaves_at_the_end_are_an_unfinished_line(tmp_path):
    here = journal(tmp_path)
    add(here, *days(1))
    with here.path.open("ab") as file:
        file.write(bytes(1000))
    assert here.read().records == tuple(days(1))
    add(here, days(2)[1])
    found = here.read()
    assert (found.records, found.unfinished) == (tuple(days(2)), 0)


def test_lines_are_on_the_disk_before_they_are_acknowledged(tmp_path, monkeypatch):
    here, settled, real = journal(tmp_path), [], os.fsync

    def fsync(number):
        settled.append(here.path.read_bytes())
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    add(here, *days(2))
    assert settled[-1] == here.path.read_bytes()
    assert len(settled) == 2  # the name of the new file first
    add(here, days(3)[2])
    assert settled[-1] == here.path.read_bytes()
    assert len(settled) == 3


def test_damage_is_refused_by_the_number_of_its_line(tmp_path):
    here = journal(tmp_path)
    add(here, *days(4))
    lines = here.path.read_bytes().splitlines(keepends=True)
    for damaged, number in [
        ([*lines[:2], lines[2].replace(b"1.0", b"7.0"), *lines[3:]], 3),
        ([*lines[:2], b"\n", *lines[2:]], 3),
        ([*lines[:2], *lines[3:]], 3),  # one is missing
        ([*lines[:2], lines[3], lines[2], lines[4]], 3),  # two changed places
        ([*lines[:4], lines[3], lines[4]], 5),  # one is there twice
        ([lines[0].replace(b"inventory", b"inventorz"), *lines[1:]], 1),
        ([*lines[:4], lines[4].replace(b"3.0", b"8.0")], 5),  # the last, but finished: it was acknowledged
    ]:
        here.path.write_bytes(b"".join(damaged))
        with pytest.raises(UserError, match=rf"line {number} is damaged.*keep its first {number - 1} lines"):
            here.read()
        with pytest.raises(UserError, match=f"line {number} is damaged"):
            add(here, days(5)[4])
        assert here.path.read_bytes() == b"".join(damaged)
    here.path.write_bytes(b"".join(lines[:2]))  # the remedy
    assert here.read().records == tuple(days(1))


def test_any_bit_that_is_turned_is_noticed(tmp_path):
    here = journal(tmp_path)
    add(here, *days(2))
    whole = here.path.read_bytes()
    for place in range(len(whole) - 1):
        here.path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(UserError):
            here.read()


def test_a_journal_of_something_else_is_refused(tmp_path):
    add(journal(tmp_path), *days(1))
    with pytest.raises(
        UserError, match="is of spacing 'day', and what was learned is of 'hour'; move the journal away"
    ):
        journal(tmp_path, spacing="hour").read()
    for first, message in [
        ({"format": "diary", "version": 1}, "is not a journal of ucbf"),
        ({"format": "ucbf journal", "version": 9}, "format version 9, this ucbf knows 1"),
    ]:
        (tmp_path / "journal.jsonl").write_bytes(_line(first, "")[0])
        with pytest.raises(UserError, match=message):
            journal(tmp_path).read()


def test_nothing_is_lost_or_doubled_when_a_process_is_killed_at_any_call(tmp_path):
    expected = tuple(days(3))
    calls = calls_of(lambda: add(journal(make(tmp_path / "counted")), *expected[:1]))
    assert calls >= 6  # the lock and its name, the file, the line, its place on the disk, the lock again
    for begun in (0, 2):  # a new journal, and one that is there
        for chosen in range(1, calls + 4):
            folder = make(tmp_path / f"{begun}-{chosen}")
            if begun:
                add(journal(folder), *expected[:begun])
            ended = in_child(partial(add_once, journal(folder), expected[begun]), Disk(chosen, killed))
            assert ended in (0, 9)
            found = journal(folder).read().records
            assert found in ((expected[:begun], expected[: begun + 1]) if ended else (expected[: begun + 1],))
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(locks, "UNSIGNED", 0.0)
                for record in expected[begun:]:  # the same again, and on
                    add_once(journal(folder), record)
            assert journal(folder).read().records == expected
            assert not (folder / "journal.jsonl.lock").exists()


def make(folder):
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_is_said_and_what_was_there_stays(tmp_path, number):
    expected = tuple(days(3))
    for chosen in range(1, 12):
        folder = make(tmp_path / str(chosen))
        add(journal(folder), *expected[:2])
        before = journal(folder).path.read_bytes()
        ended = in_child(partial(add_once, journal(folder), expected[2]), Disk(chosen, fault(number)))
        assert ended in (0, 3)
        if ended == 3 and (folder / "journal.jsonl").read_bytes() != before:  # only the lock could not be removed
            assert journal(folder).read().records == expected
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(locks, "UNSIGNED", 0.0)
            add_once(journal(folder), expected[2])
        assert journal(folder).read().records == expected


WRITER = """
import sys
from pathlib import Path
from ucbf.journal import Journal, _line
here = Journal(Path(sys.argv[1]), {})
for i in range(15):
    with here.writing() as writing:
        writing.append([{"who": int(sys.argv[2]), "i": i, "text": "x" * 5000}])
"""


def test_lines_of_processes_that_write_at_once_do_not_mix(tmp_path):
    path = tmp_path / "journal.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(who)]) for who in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    records = Journal(path, {}).read().records
    assert len(records) == 60
    for who in range(4):
        assert [record["i"] for record in records if record["who"] == who] == list(range(15))
    assert os.listdir(tmp_path) == ["journal.jsonl"]


# -- the lock ------------------------------------------------------------------------------------------------


def test_a_lock_that_a_dead_process_left_is_taken_over_at_once(tmp_path):
    lock = tmp_path / "lock"
    assert in_child(lambda: (LockFile(lock).__enter__(), killed())) == 9
    assert lock.exists()
    begun = time.monotonic()
    with LockFile(lock):
        pass
    assert time.monotonic() - begun < 1
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_held_is_waited_for_and_named(tmp_path):
    lock = tmp_path / "lock"
    with LockFile(lock) as held:
        with pytest.raises(UserError, match=rf"held by another process \({os.getpid()} .*delete the file"):
            LockFile(lock, patience=0.1).__enter__()
        held.check()
    with LockFile(lock, patience=0.1):
        pass


def test_a_lock_without_a_name_is_left_only_after_a_while(tmp_path, monkeypatch):
    lock = tmp_path / "lock"
    lock.write_text("")
    monkeypatch.setattr(locks, "UNSIGNED", 3600)
    with pytest.raises(UserError, match="without a name"):
        LockFile(lock, patience=0.1).__enter__()
    monkeypatch.setattr(locks, "UNSIGNED", 0)
    with LockFile(lock, patience=1):
        pass


def test_a_lock_of_another_machine_is_taken_over_when_it_is_old(tmp_path):
    lock = tmp_path / "lock"
    lock.write_text("1 another-machine 0123")
    with pytest.raises(UserError, match="another-machine"):
        LockFile(lock, patience=0.1).__enter__()
    os.utime(lock, (time.time() - 2 * locks.FORGOTTEN,) * 2)
    with LockFile(lock, patience=1):
        pass


def test_who_lost_the_lock_writes_nothing(tmp_path):
    here = journal(tmp_path)
    add(here, *days(1))
    with here.writing() as writing:
        (tmp_path / "journal.jsonl.lock").write_text("1 another-machine 0123")
        with pytest.raises(UserError, match="taken over by another process; nothing was written"):
            writing.append(days(2)[1:])
    assert here.read().records == tuple(days(1))
    assert (tmp_path / "journal.jsonl.lock").read_text() == "1 another-machine 0123"


def test_of_many_who_find_a_dead_lock_one_holds_it_at_a_time(tmp_path):
    path = tmp_path / "journal.jsonl"
    for round_ in range(3):
        assert in_child(lambda: (LockFile(path.with_name("journal.jsonl.lock")).__enter__(), killed())) == 9
        before = len(Journal(path, {}).read().records)
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(who)]) for who in range(3)]
        assert [writer.wait() for writer in writers] == [0] * 3, round_
        assert len(Journal(path, {}).read().records) == before + 45
