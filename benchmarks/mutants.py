"""Do the tests notice a bug? Small bugs are put into the package one at a time, and tests run until one fails.

``make mutants`` takes the same number of bugs from every module, at random but always the same ones, and prints those
that no test noticed. First all tests run once (twice: compiled, and interpreted for the kernels) to see which lines
each of them reaches; a bug is then shown to the tests that reach its line, the quickest first, for half a minute at
most.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ucbf"
KERNELS = "kernels"  # the folder of what is interpreted: compiled, a mutant would take a minute
ROOMS = sorted(path.stem for path in (PACKAGE / KERNELS).glob("[a-z]*.py") if path.stem != "jit")
ABOUT_KERNELS = (  # tests that are worth their time where all is interpreted
    "agents", "censoring", "certificates", "estimators", "grid", "informed", "kernels", "planning", "recordings",
    "references", "simulation", "system",
)  # fmt: skip
LEFT_OUT = ("figures", "ray_engine", "__init__")  # pictures are looked at; a cluster is slow; names
SLOWEST = 4.0  # seconds of an interpreted test
PATIENCE = 15.0  # seconds of tests for one mutant
WARM = (  # imported once, for all mutants
    "numpy", "numba", "scipy.stats", "scipy.special", "pyarrow.parquet", "pydantic", "cyclopts", "rich.progress",
    "gymnasium", "hypothesis.strategies", "hypothesis.extra.numpy", "matplotlib.pyplot", "pandas",
)  # fmt: skip

Reach = dict[str, dict[int, set[str]]]  # of a module: line -> tests


# -- the bugs -----------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """A change of one place in one file."""

    path: str  # within the package
    line: int
    scope: tuple[int, int]  # lines whose tests may notice: in a function its own, else those that it speaks for
    start: int  # bytes
    end: int
    new: str

    @property
    def interpreted(self) -> bool:
        """Whether tests are interpreted for it."""
        return _is_interpreted(Path(self.path))


def _is_interpreted(path: Path) -> bool:
    return path.parent.name == KERNELS and path.stem in ROOMS


SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


def mutants_of(path: Path) -> list[Mutant]:
    """Every place of a file that can be changed, with the change."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(node: Any, end: bool = False) -> int:
        if end:
            return starts[int(node.end_lineno) - 1] + int(node.end_col_offset)
        return starts[int(node.lineno) - 1] + int(node.col_offset)

    found: list[Mutant] = []

    def add(node: Any, start: int, end: int, new: str, scope: tuple[int, int] | None) -> None:
        line = source.count(b"\n", 0, start) + 1
        found.append(Mutant(str(path.relative_to(PACKAGE)), line, scope or (line, line), start, end, new))

    def between(left: Any, right: Any, kind: type[ast.AST], scope: tuple[int, int] | None) -> None:
        if kind in SWAPS:
            old, new = SWAPS[kind]
            first = at(left, end=True)
            offset = source[first : at(right)].decode().find(old)
            if offset >= 0:
                add(left, first + offset, first + offset + len(old), new, scope)

    def visit(node: Any, scope: tuple[int, int] | None) -> None:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            return  # words for people; for the type checker
        if isinstance(node, ast.Compare):
            for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                between(left, right, type(op), scope)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                between(left, right, type(node.op), scope)
        elif isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
            between(node.left, node.right, type(node.op), scope)
        elif isinstance(node, ast.AugAssign):
            between(node.target, node.value, type(node.op), scope)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            add(node, at(node), at(node) + (3 if isinstance(node.op, ast.Not) else 1), "", scope)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            new = repr(not node.value if isinstance(node.value, bool) else node.value + 1)
            add(node, at(node), at(node, end=True), new, scope)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in NAMES:
            add(node, at(node), at(node, end=True), NAMES[node.id], scope)
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            add(node, at(node, end=True) - len(node.attr), at(node, end=True), NAMES[node.attr], scope)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            add(node, at(node), at(node, end=True), "pass", scope)
        elif isinstance(node, ast.Break | ast.Continue):
            new = "continue" if isinstance(node, ast.Break) else "break"
            add(node, at(node), at(node, end=True), new, scope)
        for child, inside in _parts(node, scope):
            visit(child, inside)

    visit(ast.parse(source), (1, len(starts)))
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _parts(node: ast.AST, scope: tuple[int, int] | None) -> Iterator[tuple[ast.AST, tuple[int, int] | None]]:
    """What is inside a node and does something: no annotations, no decorators, no depth of a warning's caller."""
    for name, value in ast.iter_fields(node):
        inside = scope
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            inside = (node.lineno, node.end_lineno or node.lineno) if name == "args" else None
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "stacklevel":
                continue
            if isinstance(child, ast.AST):
                yield child, inside


# -- who would notice ---------------------------------------------------------------------------------


class Traced(NamedTuple):
    """What a run of all tests reached."""

    reach: Reach
    seconds: dict[str, float]  # of the tests that passed


def traced(folder: Path, interpreted: bool) -> Traced:
    """Run all tests and note which lines each reaches; kept in ``folder``."""
    kept = folder / "traced.json"
    if not kept.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        env = {**os.environ, "MUTANTS_FOLDER": str(folder), "NUMBA_DISABLE_JIT": str(int(interpreted))}
        env["PYTHONPATH"] = os.pathsep.join([str(folder), str(PACKAGE.parent), str(Path(__file__).parent)])
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "mutants", "-m", "not slow"]
        if interpreted:
            command += ["--tb=no", *(f"tests/test_{name}.py" for name in ABOUT_KERNELS)]
        else:  # coverage begins with every process, those that tests start too
            (folder / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
            settings = ["[run]", f"source = {PACKAGE}", f"data_file = {folder}/.coverage", "parallel = true"]
            settings += ["context = ${PYTEST_CURRENT_TEST-none}", "disable_warnings = no-data-collected"]
            (folder / "coveragerc").write_text("\n".join(settings) + "\n")
            env["COVERAGE_PROCESS_START"] = str(folder / "coveragerc")
            command += ["tests"]
        subprocess.run(command, cwd=ROOT, env=env, stdout=sys.stderr)
        seconds, reach = {}, dict[str, dict[int, list[str]]]()
        for path in folder.glob("seconds-*.json"):
            seconds.update(json.loads(path.read_text()))
        for module, line, tests in _entered(folder) if interpreted else _covered(folder):
            reach.setdefault(module, {})[line] = sorted(tests & seconds.keys())
        kept.write_text(json.dumps([reach, seconds]))
    lines, seconds = json.loads(kept.read_text())
    return Traced({name: {int(line): set(tests) for line, tests in of.items()} for name, of in lines.items()}, seconds)


def _covered(folder: Path) -> Iterator[tuple[str, int, set[str]]]:
    """Lines that coverage saw, and the tests."""
    combined = coverage.Coverage(data_file=str(folder / ".coverage"), config_file=str(folder / "coveragerc"))
    combined.combine([str(folder)])
    data = combined.get_data()
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            tests = {context.removeprefix("none|").rsplit(" (", 1)[0] for context in contexts}
            yield str(Path(file).relative_to(PACKAGE)), line, tests


def _entered(folder: Path) -> Iterator[tuple[str, int, set[str]]]:
    """Lines of the kernels that tests entered."""
    tests = defaultdict[str, set[str]](set)
    for path in folder.glob("entered-*.json"):
        for test, names in json.loads(path.read_text()).items():
            for name in names:
                tests[name].add(test)
    for room in ROOMS:
        path = PACKAGE / KERNELS / f"{room}.py"
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    yield str(path.relative_to(PACKAGE)), line, tests[node.name]


class TooSlow(BaseException):  # no error that a test, or hypothesis, may catch and try again
    """A test takes too long where it is interpreted."""


class Plugin:
    """Notes what each test reaches, and how long it takes. For pytest."""

    def __init__(self, folder: str) -> None:
        self.folder, self.seconds, self.entered = folder, dict[str, float](), defaultdict[str, set[str]](set)
        self.test, self.interpreted = "", os.environ["NUMBA_DISABLE_JIT"] == "1"
        if self.interpreted:
            signal.signal(signal.SIGALRM, self.too_slow)
            for module in [importlib.import_module(f"ucbf.{KERNELS}.{room}") for room in ROOMS]:
                self.follow(module)

    def follow(self, module: Any) -> None:
        """Note who enters the functions that a room has, or has from another, in its tables of functions too."""
        for table in [vars(module), *(value for value in vars(module).values() if isinstance(value, dict))]:
            for key, value in list(table.items()):
                of = getattr(value, "__module__", "").removeprefix(f"ucbf.{KERNELS}.")
                if isinstance(value, FunctionType) and of in ROOMS:
                    table[key] = self.noting(value)

    def noting(self, function: FunctionType) -> Any:
        """The function, which says that it is entered."""

        @functools.wraps(function)
        def noted(*given: Any) -> Any:
            self.entered[self.test].add(function.__name__)
            return function(*given)

        return noted

    def too_slow(self, number: int, frame: Any) -> None:
        """It has taken too long."""
        raise TooSlow

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Round a test."""
        self.test = item.nodeid
        current = coverage.Coverage.current()
        if current is not None:
            current.switch_context(item.nodeid)
        signal.setitimer(signal.ITIMER_REAL, SLOWEST if self.interpreted else 0)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test has ended."""
        passed = report.passed and (report.when == "setup" or report.nodeid in self.seconds)
        if passed:
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        else:
            self.seconds.pop(report.nodeid, None)

    def pytest_unconfigure(self, config: Any) -> None:
        """The run has ended."""
        name = os.environ.get("PYTEST_XDIST_WORKER", "all")
        Path(self.folder, f"seconds-{name}.json").write_text(json.dumps(self.seconds))
        Path(self.folder, f"entered-{name}.json").write_text(json.dumps(self.entered, default=sorted))


def pytest_configure(config: Any) -> None:
    """Where this file is loaded as a plugin of pytest."""
    config.pluginmanager.register(Plugin(os.environ["MUTANTS_FOLDER"]))


def witnesses(mutant: Mutant, seen: Traced) -> tuple[list[str], float]:
    """Tests that reach the mutant, the quickest first, and the seconds they take."""
    lines = seen.reach.get(mutant.path, {})
    first, last = mutant.scope
    tests = set[str]().union(*(lines.get(line, set()) for line in range(first, last + 1)))
    tests = tests or set[str]().union(*lines.values())
    chosen, total = list[str](), 0.0
    for test in sorted(tests, key=lambda test: (seen.seconds[test], test)):
        total += seen.seconds[test]
        if chosen and total > PATIENCE:
            return chosen, total - seen.seconds[test]
        chosen.append(test)
    return chosen, total


# -- the trial ----------------------------------------------------------------------------------------


class Bench:
    """A copy of the package of its own, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.src = folder / "src"
        shutil.copytree(PACKAGE, self.src / "ucbf", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        self.pid, self.deadline = 0, 0.0
        self.mutant: Mutant | None = None

    def begin(self, mutant: Mutant, tests: list[str], seconds: float) -> None:
        """Put the bug in and run the tests, in a process of their own."""
        self.mutant = mutant
        source = (PACKAGE / mutant.path).read_bytes()
        changed = source[: mutant.start] + mutant.new.encode() + source[mutant.end :]
        (self.src / "ucbf" / mutant.path).write_bytes(changed)
        self.deadline = time.monotonic() + 20 + 5 * seconds
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setpgid(0, 0)
                code = _judge(self.src, tests, mutant.interpreted)
            finally:
                os._exit(code)

    def ended(self) -> bool | None:
        """Whether a test failed; None while they run. Tests that never end have failed."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        late = time.monotonic() > self.deadline
        if pid == 0 and not late:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if pid == 0:
            os.waitpid(self.pid, 0)
        assert self.mutant is not None
        shutil.copy2(PACKAGE / self.mutant.path, self.src / "ucbf" / self.mutant.path)
        return late or status != 0


def _judge(src: Path, tests: list[str], interpreted: bool) -> int:
    """In the child: the exit code of pytest, its words left out."""
    import numba

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    config: Any = numba.config
    config.DISABLE_JIT = int(interpreted)
    os.environ.update(NUMBA_DISABLE_JIT=str(int(interpreted)), PYTHONPATH=str(src), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(src))
    os.chdir(ROOT)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests]))


def trial(chosen: list[Mutant], seen: dict[bool, Traced], folder: Path, until: float) -> dict[Mutant, bool]:
    """Whether each mutant was noticed, for those that came to be tried."""
    for name in WARM:
        importlib.import_module(name)
    waiting, verdicts = list(reversed(chosen)), dict[Mutant, bool]()
    idle, busy = [Bench(folder / f"bench{i}") for i in range(2)], list[Bench]()
    for mutant in {mutant.interpreted: mutant for mutant in chosen}.values():  # without a bug all must be well
        tests, seconds = witnesses(mutant, seen[mutant.interpreted])
        idle[0].begin(mutant._replace(end=mutant.start, new=""), tests, 60 + seconds)
        while (failed := idle[0].ended()) is None:
            time.sleep(0.02)
        if failed:
            sys.exit(f"tests fail without a mutant; look why: {' '.join(tests)}")
    while waiting or busy:
        while idle and waiting and time.monotonic() < until:
            mutant, bench = waiting.pop(), idle.pop()
            tests, seconds = witnesses(mutant, seen[mutant.interpreted])
            if not tests:
                verdicts[mutant] = False
                idle.append(bench)
                continue
            bench.begin(mutant, tests, seconds)
            busy.append(bench)
        if not busy:
            break
        time.sleep(0.02)
        for bench in list(busy):
            noticed = bench.ended()
            if noticed is not None:
                assert bench.mutant is not None
                verdicts[bench.mutant] = noticed
                if not noticed:
                    print(f"\r{shown(bench.mutant)}", file=sys.stderr, flush=True)
                busy.remove(bench)
                idle.append(bench)
                print(f"\r{len(verdicts)} of {len(chosen)} mutants", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return verdicts


def shown(mutant: Mutant) -> str:
    """A line on a mutant: where it is, and the line with it."""
    source = (PACKAGE / mutant.path).read_bytes()
    first = source.rfind(b"\n", 0, mutant.start) + 1
    last = source.find(b"\n", mutant.end)
    old = source[mutant.start : mutant.end].decode()
    before, after = source[first : mutant.start].decode().strip(" "), source[mutant.end : last].decode()
    if "\n" in old:
        old, after = old.split("\n")[0] + " ...", ""
    return f"src/ucbf/{mutant.path}:{mutant.line}: {before}[{old} -> {mutant.new or 'nothing'}]{after}"


def main() -> None:
    """Choose, try, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("modules", nargs="*", help="modules, such as kernels/counted or agents/ucb_f; all if none")
    parser.add_argument("--each", type=int, default=12, help="mutants of a module")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--minutes", type=float, default=29.0, help="for everything")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if not {path.stem, path.parent.name} & {*LEFT_OUT}]
    if given.modules:
        paths = [path for path in paths if str(path.relative_to(PACKAGE).with_suffix("")) in given.modules]
    text = b"".join(path.read_bytes() for part in ("src", "tests") for path in sorted((ROOT / part).rglob("*.py")))
    folder = ROOT / "results" / "mutants"
    kept = folder / hashlib.sha256(text).hexdigest()[:16]
    # whether interpreted -> what was reached
    seen = {way: traced(kept / str(int(way)), way) for way in {_is_interpreted(path) for path in paths}}

    draw = random.Random(given.seed)
    by_module = {path: mutants_of(path) for path in paths}
    samples = {path: draw.sample(found, min(given.each, len(found))) for path, found in by_module.items()}
    chosen = [sample[i] for i in range(given.each) for sample in samples.values() if i < len(sample)]
    verdicts = trial(chosen, seen, folder, until)

    counts = defaultdict[str, list[bool]](list)
    for mutant, noticed in verdicts.items():
        counts[mutant.path].append(noticed)
    for mutant in sorted(verdicts):
        if not verdicts[mutant]:
            print(shown(mutant))
    print(f"\n{'module':32} {'of':>6} {'tried':>6} {'noticed':>8}")
    for path, found in by_module.items():
        name = str(path.relative_to(PACKAGE))
        tried, killed = len(counts[name]), sum(counts[name])
        if tried:
            print(f"{name:32} {len(found):6} {tried:6} {killed:8} {killed / tried:6.0%}")
    tried, killed = len(verdicts), sum(verdicts.values())
    print(f"{'all':32} {sum(map(len, by_module.values())):6} {tried:6} {killed:8} {killed / max(1, tried):6.0%}")
    if tried < len(chosen):
        print(f"{len(chosen) - tried} mutants were not tried within {given.minutes:g} minutes")


if __name__ == "__main__":
    main()
