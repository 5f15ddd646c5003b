"""What a reader copies from a lesson, in a process of its own, on data that is not the lesson's.

A lesson that hands out more than pipelines has a module NAME_checks.py beside this one. Each check
in it is seen to refuse a copy that is broken in one place.
"""

import importlib
import itertools
import tempfile
import types
from pathlib import Path
from unittest import mock

import hypothesis_cases
import numpy as np
import pytest

from benchmarks import contract
from benchmarks import lesson as in_process
from benchmarks.contract import Refused
from tools.lesson import lessons


class CopiedCells(in_process.Lesson):
    """A lesson with its setup, its pipelines and all else that a reader copies."""

    run = in_process.PIPELINES | {"copy"}

    def check_pipelines(self) -> None:
        """Raises Refused if a pipeline breaks a promise, on as many inputs as hypothesis tries."""
        super().check_pipelines()
        if self.has_short_answer():
            for case in contract.CASES:
                if case.count >= case.batch_size:
                    contract.check_idiom(self.names["batches"], case, self.dataset_of)
        if tuned := self.names.get("tuned_batches"):
            hypothesis_cases.run(tuned, self.dataset_of, rows_each=self.rows_each)
            if contract.takes_dataset(tuned):
                some_of = contract.some_of(self.dataset_of)
                contract.check_case(tuned, contract.CASES[-2], some_of, self.rows_each)
            self.ask_checker(tuned)
        if "decode_crop" in self.names:  # not the library's decoder, but the lesson's
            with tempfile.TemporaryDirectory() as folder:
                make = self.names["file_batches"]
                contract.check_file_errors(make, Path(folder, "strict"), strict=True)

    def ask_checker(self, tuned) -> None:
        """Raises Refused if the checker of the lesson on silent bugs finds a fault."""
        steps, rows = 12, 24
        examples = contract.examples(steps * rows + 12, (4, 4), "uint8")
        given = contract.given(tuned, examples, self.dataset_of)

        def loader(epoch, start, process, processes):
            size = rows // processes if self.rows_each else rows
            split = {"process": process, "processes": processes} if processes > 1 else {}
            stream = tuned(*given, batch_size=size, seed=0, start=epoch * steps + start, **split)
            return itertools.islice(stream, steps - start)

        for sentence in checker()(loader, examples):
            raise Refused(f"the checker of silent bugs says: {sentence}.")


class CheckedCells(CopiedCells):
    """The same, with the checks in NAME_checks.py: functions check_…(names).

    `names`: what the cells define. A check asserts, with a sentence that says what is wrong.
    """

    def __init__(self, name: str, copies: int = 1):
        super().__init__(name, copies)
        self.checks = importlib.import_module(f"{name}_checks")
        if hasattr(self.checks, "prepare"):
            self.checks.prepare(self.names)

    def attempt(self, check: str) -> None:
        """Call a check. Raises Refused, whatever is raised, with the input that was found."""
        try:
            getattr(self.checks, check)(self.names)
        except Exception as error:
            says = isinstance(error, Refused | AssertionError)
            said = f"{error}" if says else f"{check} raises {type(error).__name__}: {error}"
            raise Refused(" ".join([said, *getattr(error, "__notes__", ())])) from error

    def attempt_broken(self, check: str, old: str, new: str) -> None:
        """Call a check while the one copied cell that says `old` says `new` in its place.

        The first input that is refused will do: no smaller one is looked for.
        """
        cells = lessons.subject_cells(self.name)
        copied = {
            cell.source
            for cell in cells
            if self.run.intersection(lessons.tags(cell)) or lessons.shared_tag(cell)
        }
        times = sum(source.count(old) for source in copied)
        if times != 1:
            raise Refused(f"the copied cells say {old!r} {times} times, not once.")
        [source] = [source for source in copied if old in source]
        self.define(source.replace(old, new))
        try:
            with mock.patch.object(hypothesis_cases, "SHRINK", False):
                self.attempt(check)
        finally:
            self.define(source)

    def define(self, source: str) -> None:
        """Run the cell. Of one that writes a module, put what it defines into that module."""
        if not source.startswith("%%writefile"):
            self.run_cell(source)
            return
        magic, _, text = source.partition("\n")
        exec(text, vars(importlib.import_module(Path(magic.split()[1]).stem)))


def refusal(said, call, kind=ValueError) -> str:
    """The sentence of this kind of error that `call()` raises. Raises Refused if it raises none."""
    try:
        call()
    except kind as error:
        message = str(error)
    except Exception as error:
        found = f"raises {type(error).__name__}, no {kind.__name__}"
        raise Refused(f"{said}: {found}: {error}") from error
    else:
        raise Refused(f"{said}: goes through.")
    if "\n" in message:
        raise Refused(f"{said}: says more than a sentence: {message}")
    return message


def same(one, other) -> bool:
    """Whether two pytrees have equal arrays."""
    import jax  # most tests beside the checks need none of it

    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


def refuses_lost_arrays(names) -> None:
    """Arrays whose mask, names or lengths would be lost are refused before TensorFlow has them."""
    numbers, labels = np.ma.masked_equal(np.arange(8.0), 3), np.arange(8)
    for images in (numbers, labels.astype(str), labels[1:]):
        refusal("arrays", lambda images=images: names["dataset_of"](images, labels))


def checks_of(module: types.ModuleType) -> list[str]:
    return [name for name in vars(module) if name.startswith("check_")]


def assert_refused(lesson, check: str, old: str, new: str, sentence: str) -> None:
    """The check refuses, with this sentence, a copy that has `new` in place of `old`."""
    with pytest.raises(Refused, match=sentence):
        lesson.call("attempt_broken", check, old, new)


def source_with(text: str, name: str) -> str:
    """The source of the one code cell of the page NAME that has this text.

    Of a cell that writes a module, it is the module's.
    """
    cells = lessons.code_cells(lessons.read_md(name))
    [source] = [cell.source for cell in cells if text in cell.source]
    return source.partition("\n")[2] if source.startswith("%%writefile") else source


def checker():
    """The function of the lesson on silent bugs that says what a loader does wrong."""
    names = {}
    for text in ("def wrong_with", "def rows(batch)"):
        exec(source_with(text, "silent_data_bugs"), names)
    return names["wrong_with"]


def write_modules(name: str, folder: Path) -> None:
    """Write the modules of a lesson, as its cells with %%writefile do."""
    for cell in lessons.code_cells(lessons.read_md(name)):
        first, _, source = cell.source.partition("\n")
        if first.startswith("%%writefile "):
            (folder / first.split()[1]).write_text(source)
