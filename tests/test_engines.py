"""Tasks are sent as workers become free, and results come back as they are done."""

import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from ucbf.engines.running import AHEAD, Engine, Threads, results_of


class Later(Engine):
    """Computes nothing until it is told to, last in first out."""

    def __init__(self, width):
        self.waiting, self.most, self.ended, self.cores = [], 0, [], width

    @property
    def width(self):
        return self.cores

    def submit(self, fn, /, *args):
        future = Future()
        self.waiting.append((future, fn, args))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == AHEAD * self.cores:
            self.work()
        return future

    def work(self):
        future, fn, args = self.waiting.pop()
        future.set_result(fn(*args))

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.ended.append(cancel_futures)


def test_tasks_are_taken_as_workers_become_free():
    engine, taken = Later(3), []

    def tasks():
        for i in range(50):
            taken.append(i)
            yield i

    results = results_of(engine, lambda task, cancelled: (task * task, cancelled), tasks())
    assert next(results) == (5, (25, None))
    assert len(taken) == 6 + 1  # one is at hand
    found = []
    for task, (square, _) in results:
        assert square == task * task
        found.append(task)
        if engine.waiting and taken[-1] == 49:
            engine.work()
    assert sorted([5, *found]) == list(range(50))
    assert engine.most == 6
    assert engine.ended == [False]


def test_a_machine_that_joins_gets_tasks_too():
    engine = Later(1)
    results = results_of(engine, lambda task, _: task, iter(range(100)))
    next(results)
    assert len(engine.waiting) == 1
    engine.cores = 10
    engine.work()
    next(results)
    assert len(engine.waiting) == 19
    results.close()
    assert engine.ended == [True]


@pytest.mark.parametrize("how", ["fails", "stops", "is left"])
def test_what_is_not_finished_is_cancelled(how):
    stop, begun, told = threading.Event(), [], []

    def work(task, cancelled):
        begun.append(task)
        if task == 3:
            if how == "fails":
                raise RuntimeError("boom")
            stop.set()
        if task > 3:
            cancelled.wait()
            told.append(task)
        return task

    results = results_of(Threads(2), work, iter(range(1000)), stop if how == "stops" else None)
    if how == "is left":
        for task, _ in results:
            if task == 3:
                break
        results.close()
    else:
        with pytest.raises(RuntimeError if how == "fails" else KeyboardInterrupt):
            list(results)
    for thread in [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPool")]:
        thread.join(5)
    assert len(begun) <= 3 + 1 + 2 * AHEAD
    assert sorted(told) == [task for task in sorted(begun) if task > 3]


CLUSTER = """
import os, sys, threading, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from ucbf.studies import runner
from ucbf.studies.reading import make_study

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
runner.MOST_WORLDS_PER_SHARD = 1
study = make_study({
    "name": "small", "episodes": 3000, "worlds": 30, "record": 5,
    "world": {"n_states": 10, "n_actions": 2, "horizon": [2, 3], "max_disturbance": 2, "lipschitz": 0.25},
    "agents": [{"name": "UCB-f"}],
})
folder, killed = Path(sys.argv[1]), []

def progress(done, total):
    if done >= 5 and not killed:
        killed.append(done)
        cluster.remove_node(nodes[1], allow_graceful=False)

outcome = runner.run_study(study, folder, engine="ray", ray_address=cluster.address, progress=progress)
assert killed and outcome.computed == 60, (killed, outcome)
assert len([node for node in ray.nodes() if node["Alive"]]) == 2 if ray.is_initialized() else True
cluster.shutdown()
runner.run_study(study, sys.argv[2])
"""


@pytest.mark.slow
def test_a_cluster_that_loses_a_node_gives_the_same_bytes_as_threads(tmp_path):
    folders = [tmp_path / "ray", tmp_path / "threads"]
    subprocess.run([sys.executable, "-c", CLUSTER, *map(str, folders)], check=True, capture_output=True, timeout=600)
    found = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")} for folder in folders
    ]
    assert len(found[0]) == 120
    assert found[0] == found[1]
