"""What is kept of compiled kernels: never an old one, never a damaged one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ucbf
from ucbf.kernels import jit

ANSWER = """
import numpy as np
from ucbf.kernels.loop import replace_policy
acted = np.zeros((1, 1), np.int64)
replace_policy(acted, np.ones((1, 1), np.int64), 0)
print(acted[0, 0], sum(replace_policy.alone.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package to edit, and a folder for what it keeps."""
    shutil.copytree(Path(ucbf.__file__).parent, tmp_path / "ucbf", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def answer(copy, first=""):
    """The action that was copied, 1; how often compiled code was found."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(copy / "kept")}
    done = subprocess.run(
        [sys.executable, "-c", first + ANSWER], capture_output=True, text=True, check=True, env=environment, cwd=copy
    )
    return tuple(map(int, done.stdout.split()))


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_edit_in_any_file_of_the_kernels_reaches_their_callers(copy):
    assert answer(copy) == (1, 0)
    assert answer(copy) == (1, 1)
    edit(copy / "ucbf/kernels/backward.py", "    policy[h, s] = a\n", "    policy[h, s] = 0\n")
    assert answer(copy) == (0, 0)  # what keep_best, in another file, writes now


def test_damaged_compiled_code_is_compiled_again(copy):
    assert answer(copy) == (1, 0)
    kept = [path for path in (copy / "kept").rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    for path in kept:  # as after a power cut
        path.write_bytes(path.read_bytes()[:100])
    assert answer(copy) == (1, 0)
    assert answer(copy) == (1, 1)
    for path in kept:
        if path.suffix == ".nbc":
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0x55
            path.write_bytes(content)
    assert answer(copy) == (1, 0)
    assert answer(copy) == (1, 1)


def test_code_that_there_was_no_room_for_is_not_taken_for_older_code(copy):
    assert answer(copy) == (1, 0)
    edit(copy / "ucbf/kernels/backward.py", "    policy[h, s] = a\n", "    policy[h, s] = 0\n")
    index = max(path.stat().st_size for path in (copy / "kept").rglob("*.nbi"))
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({index + 500}, {index + 500}))\n"
    assert answer(copy, limit) == (0, 0)  # there is room for the list, and none for the code
    assert answer(copy) == (0, 0)


def test_without_room_for_compiled_code_it_is_not_kept(copy):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
    assert answer(copy, limit) == (1, 0)
    assert not list((copy / "kept").rglob("*.nb?"))


def test_two_processes_that_compile_at_once_never_exchange_their_code(tmp_path, monkeypatch):
    files = jit._SealedFiles(str(tmp_path), "kernel", "stamp")
    with monkeypatch.context() as blind:
        blind.setattr(files, "_load_index", dict)  # neither sees yet what the other has listed
        files.save("of integers", "one code")
        files.save("of floats", "another")
    files._save_index({"of integers": next(p.name for p in tmp_path.glob("*.nbc") if b"one code" in p.read_bytes())})
    assert files.load("of integers") == "one code"
    assert files.load("of floats") is None
    files.save("of floats", "another")
    assert files.load("of integers") == "one code"
    assert files.load("of floats") == "another"
