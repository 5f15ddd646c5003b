"""What the tests would miss: one change after the other in what readers copy, and the tests on it.

    python tests/mutants.py [--function F] [NAME ...]

Of a lesson NAME (else of each that has tests) every function in its modules is changed in one
place at a time, in the process, and the tests run that call it. Printed is what survives: a change
that no test refuses. Exit code 1: one is not in accepted_survivors.toml, with a reason. Of a
lesson that has no entry there yet, survivors are only printed.
"""

import argparse
import ast
import contextlib
import importlib
import itertools
import re
import signal
import subprocess
import sys
import time
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol

TESTS = Path(__file__).resolve().parent
ACCEPTED = TESTS / "accepted_survivors.toml"
CASES = 50  # of hypothesis, for a mutant
PATIENCE_S = 10  # beside ten times what its tests take unchanged
PAIRS = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),  # codespell:ignore
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.FloorDiv, ast.Mod),
    (ast.BitAnd, ast.BitOr),
]
SWAPPED = dict([*PAIRS, *(pair[::-1] for pair in PAIRS)])
LEFT_ALONE = ast.JoinedStr, ast.Raise  # what a message says
NO_CODE = {"annotation", "decorator_list", "returns"}


class Mutant(NamedTuple):
    """A change of a line. `function` may be a method: Class.name."""

    module: str
    function: str
    old: str
    new: str


class TooLong(BaseException):
    """A mutant hangs. No test catches it."""


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Raise():
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Slice():
            for name, bound in ast.iter_fields(node):
                if bound:
                    yield ast.Slice(**dict(ast.iter_fields(node)) | {name: None})
        case _ if type(node) in SWAPPED:
            yield SWAPPED[type(node)]()


def places(node: ast.AST, line: int) -> Iterator[tuple[dict | list, str | int, ast.AST, int]]:
    """Each node below this one: what holds it, under which key, itself, and its line."""
    for field, value in ast.iter_fields(node):
        of_list = isinstance(value, list)
        holder = value if of_list else vars(node)
        for key, child in enumerate(value) if of_list else [(field, value)]:
            if isinstance(child, ast.AST) and field not in NO_CODE:
                below = getattr(child, "lineno", line)
                yield holder, key, child, below
                if not isinstance(child, LEFT_ALONE):
                    yield from places(child, below)


def mutants(module: str, name: str, function: ast.FunctionDef) -> Iterator[tuple[Mutant, int]]:
    """Each mutant of a function, and its line. While it is the current one, `function` is it."""
    before = ast.unparse(function).splitlines()
    for holder, key, child, line in places(function, function.lineno):
        for new in replacements(child):
            holder[key] = new
            after = ast.unparse(function).splitlines()
            lines = itertools.zip_longest(before, after, fillvalue="")
            changed = next((pair for pair in lines if pair[0] != pair[1]), None)
            if changed:
                yield Mutant(module, name, *(text.strip() for text in changed)), line
            holder[key] = child


def functions(top: ast.stmt) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that a statement of a module defines: itself, or the methods of a class."""
    if isinstance(top, ast.FunctionDef):
        yield top.name, top
    elif isinstance(top, ast.ClassDef):
        methods = (node for node in top.body if isinstance(node, ast.FunctionDef))
        yield from ((f"{top.name}.{node.name}", node) for node in methods)


@contextlib.contextmanager
def in_module(module: types.ModuleType, top: ast.stmt, name: str):
    """The function as its tree is now, wherever it is known; then as it was."""
    names = vars(module)
    old = names[top.name]
    exec(compile(ast.fix_missing_locations(ast.Module([top], [])), "mutant", "exec"), names)
    new, names[top.name] = names[top.name], old
    holders = [m for m in sys.modules.values() if vars(m).get(top.name) is old]
    if "." in name:
        holders = [old]
        old, new = (vars(kind)[name.partition(".")[2]] for kind in (old, new))
    if isinstance(old, types.FunctionType) and not hasattr(old, "__wrapped__"):
        swap(old, new)  # in place: others may hold it under another name
        yield
        swap(old, new)
        return
    for value in (new, old):
        for holder in holders:
            setattr(holder, name.rpartition(".")[2], value)
        if value is new:
            yield


def swap(one: types.FunctionType, other: types.FunctionType) -> None:
    for part in ("__code__", "__defaults__", "__kwdefaults__"):
        was = getattr(one, part)
        setattr(one, part, getattr(other, part))
        setattr(other, part, was)


def too_long(*_) -> None:
    raise TooLong


def forget_traces() -> None:
    """What JAX compiled has the functions in it as they were."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


class Trial:
    """A plugin of pytest that tries the mutants of modules on the tests that it has collected."""

    def __init__(self, modules: list[str], known: set[str] = frozenset(), only: str = ""):
        self.modules, self.known, self.only = modules, {*known}, only
        self.count, self.survivors = 0, {}

    def pytest_runtestloop(self, session):
        self.files = {}
        for name in self.modules:
            module = importlib.import_module(name)
            self.files[module.__file__] = module
        self.session, self.seconds = session, {}
        cases = sys.modules.get("hypothesis_cases", types.SimpleNamespace(CASES=0, SHRINK=True))
        before = signal.signal(signal.SIGALRM, too_long)
        try:
            with mock.patch.multiple(cases, CASES=CASES, SHRINK=False):
                callers = self.callers()
                for file, module in self.files.items():
                    for top in ast.parse(Path(file).read_text()).body:
                        if ast.dump(top) not in self.known:
                            self.known.add(ast.dump(top))
                            self.try_each(module, top, callers)
        finally:
            signal.signal(signal.SIGALRM, before)
        return True

    def callers(self) -> dict[tuple[str, str], list[pytest.Item]]:
        """The tests that call each function, by its file and name; the fastest first.

        Raises pytest.UsageError where a test fails on what is not changed.
        """
        called, found = set(), {}
        monitoring, tool = sys.monitoring, sys.monitoring.OPTIMIZER_ID

        def note(code, _):
            if code.co_filename not in self.files:
                return monitoring.DISABLE
            called.add((code.co_filename, code.co_qualname.partition(".<locals>")[0]))
            return None

        monitoring.use_tool_id(tool, "mutants")
        monitoring.register_callback(tool, monitoring.events.PY_START, note)
        monitoring.set_events(tool, monitoring.events.PY_START)
        try:
            for item in self.session.items:
                called.clear()
                forget_traces()
                start = time.monotonic()
                if not self.passes([item], 0):
                    raise pytest.UsageError(f"{item.nodeid} fails on what is not changed.")
                self.seconds[item] = time.monotonic() - start
                for key in called:
                    found.setdefault(key, []).append(item)
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)
        return {key: sorted(items, key=self.seconds.get) for key, items in found.items()}

    def try_each(self, module: types.ModuleType, top: ast.stmt, callers: dict) -> None:
        for name, function in functions(top):
            if self.only not in ("", name):
                continue
            items = callers.get((module.__file__, name), [])
            if not items:
                place = f"{module.__file__}:{function.lineno}"
                self.survivors[Mutant(module.__name__, name, "no test calls it", "")] = place
                continue
            limit = PATIENCE_S + 10 * sum(map(self.seconds.get, items))
            for mutant, line in mutants(module.__name__, name, function):
                self.count += 1
                with in_module(module, top, name):
                    forget_traces()
                    if self.passes(items, limit):
                        self.survivors[mutant] = f"{module.__file__}:{line}"
            forget_traces()

    def passes(self, items: list[pytest.Item], limit: float) -> bool:
        """Whether all these tests pass, in these seconds. 0: in any time."""
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                reports = runtestprotocol(item, log=False, nextitem=following)
                if any(report.failed for report in reports):
                    return False
        except TooLong:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            with contextlib.suppress(Exception):
                self.session._setupstate.teardown_exact(None)
        return True


def of_lesson(name: str, only: str) -> int:
    """Try one lesson, in this process."""
    sys.path.insert(0, str(TESTS.parent))
    from tools.lesson import lessons, modules

    modules.renew()
    pages = modules.pages()
    own = [page for page in (name, name + lessons.DEPTH) if page in pages]
    earlier = pages[: pages.index(own[0])]
    known = {
        ast.dump(top)
        for page in earlier
        for top in ast.parse((modules.FOLDER / f"{modules.module_name(page)}.py").read_text()).body
    }
    says = re.compile(rf"^(?:import|from) feed_(?:{'|'.join(own)})\b", re.MULTILINE)
    files = [file for file in tests_of(name) if says.search(file.read_text())]
    trial = Trial([modules.module_name(page) for page in own], known, only)
    start = time.monotonic()
    quiet = "-q", "-m", "not weekly", "-p", "no:cacheprovider", "--no-header", "--no-summary"
    if code := pytest.main([*map(str, files), *quiet], [trial]):
        return code
    entries = tomllib.loads(ACCEPTED.read_text())
    accepted = {
        Mutant(modules.module_name(page), entry["function"], entry["old"], entry["new"])
        for page in own
        for entry in entries.get(page, [])
    }
    left = {m: place for m, place in trial.survivors.items() if m not in accepted}
    for mutant, place in left.items():
        print(f"{place} {mutant.function}\n    {mutant.old}\n  → {mutant.new}")
    for mutant in accepted - {*trial.survivors} if not only else ():
        print(f"accepted, and killed: {mutant}")
    print(
        f"{name}: {trial.count} mutants, {len(trial.survivors)} survive, {len(left)} of them not "
        f"accepted, in {time.monotonic() - start:.0f} s",
        flush=True,
    )
    return int(bool(accepted) and bool(left))


def tests_of(name: str) -> list[Path]:
    return sorted((TESTS / "lessons").glob(f"test_{name}*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--function", default="", metavar="F")
    options = parser.parse_args()
    if len(options.names) == 1:
        return of_lesson(options.names[0], options.function)
    sys.path.insert(0, str(TESTS.parent))
    from tools.lesson import lessons

    names = options.names or [name for name in lessons.listed() if tests_of(name)]
    command = [sys.executable, __file__, "--function", options.function]
    codes = [subprocess.run([*command, name], check=False).returncode for name in names]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
