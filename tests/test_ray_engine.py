"""A cluster that fails, without a cluster."""

import os
import socket
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from ray.exceptions import LocalRayletDiedError, RayTaskError, WorkerCrashedError

from ucbf.engines import ray_engine
from ucbf.errors import FailedError


@pytest.fixture
def cluster(monkeypatch):
    """In place of Ray: ``answers`` is what its head says when it is asked, ``tasks`` are those that were sent."""
    fake = SimpleNamespace(tasks=[], answers="", left=threading.Event())

    def remote(*given):
        fake.tasks.append(Future())
        return SimpleNamespace(future=lambda: fake.tasks[-1])

    monkeypatch.setattr(ray_engine.ray, "init", lambda **options: None)
    monkeypatch.setattr(ray_engine.ray, "shutdown", fake.left.set)
    monkeypatch.setattr(ray_engine.ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="head:1"))
    monkeypatch.setattr(ray_engine.ray, "cluster_resources", lambda: {"CPU": 3.0})
    monkeypatch.setattr(ray_engine.ray, "remote", lambda **options: lambda fn: SimpleNamespace(remote=remote))
    monkeypatch.setattr(ray_engine, "_no_answer", lambda address: fake.answers)
    return fake


def test_a_result_is_handed_over_and_the_cluster_left(cluster):
    executor = ray_engine.RayExecutor(None, 1)
    future = executor.submit(int)
    cluster.tasks[0].set_result(7)
    assert future.result() == 7
    assert executor.width == 3
    executor.shutdown()
    assert cluster.left.is_set()


def test_a_worker_without_memory_is_not_tried_for_ever(cluster, monkeypatch):
    monkeypatch.delenv("RAY_task_oom_retries", raising=False)
    ray_engine.RayExecutor(None, 1).shutdown()
    assert os.environ["RAY_task_oom_retries"] == "3"  # noqa: SIM112


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (WorkerCrashedError(), "^a worker of the Ray cluster died 4 times over the same runs$"),
        (LocalRayletDiedError(), "^the Ray cluster failed: The task's local raylet died"),
        (RayTaskError("f", "a long trace", FailedError("'UCB-f' failed")), "^'UCB-f' failed$"),
    ],
)
def test_an_error_is_said_in_a_line(cluster, error, message):
    executor = ray_engine.RayExecutor(None, 1)
    future = executor.submit(int)
    cluster.tasks[0].set_exception(error)
    with pytest.raises(FailedError, match=message):
        future.result()
    executor.shutdown()


def test_a_head_that_is_gone_fails_all_that_was_sent(cluster, monkeypatch, caplog):
    monkeypatch.setattr(ray_engine, "WATCH_SECONDS", 0.001)
    executor = ray_engine.RayExecutor(None, 1)
    futures = [executor.submit(int), executor.submit(int)]
    cluster.answers = "connection refused"
    for future in futures:
        with pytest.raises(FailedError, match="its head at head:1 does not answer any more .connection refused."):
            future.result()
    cluster.tasks[0].set_result(7)
    assert caplog.text == ""  # too late: it does no harm
    executor.shutdown()


def test_a_cluster_that_never_answers_is_given_up(cluster, monkeypatch):
    never = threading.Event()
    monkeypatch.setattr(ray_engine.ray, "init", lambda **options: never.wait())
    monkeypatch.setattr(ray_engine, "START_SECONDS", 0.01)
    with pytest.raises(FailedError, match="could not be started on this machine: no answer within 0.01 seconds"):
        ray_engine.RayExecutor(None, 1)
    with pytest.raises(FailedError, match="could not be joined at auto: no answer"):
        ray_engine.RayExecutor("auto", 1)
    never.set()


def test_a_cluster_that_cannot_be_started_says_why(cluster, monkeypatch):
    def fails(**options):
        raise RuntimeError("no room\nand much more")

    monkeypatch.setattr(ray_engine.ray, "init", fails)
    with pytest.raises(FailedError, match="a Ray cluster could not be started on this machine: no room$"):
        ray_engine.RayExecutor(None, 1)


def test_an_address_is_asked_before_ray_is():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert ray_engine._no_answer(address) == ray_engine._no_answer(f"ray://{address}") == ""
    assert "refused" in ray_engine._no_answer(address)
    assert ray_engine._no_answer(f"127.0.0.1:{10**20}") != ""
    assert ray_engine._no_answer("auto") == ""
    with pytest.raises(FailedError, match=f"no Ray cluster answers at {address} .*; pass its address as HOST:PORT"):
        ray_engine.RayExecutor(address, 1)
