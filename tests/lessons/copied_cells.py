"""A rewritten lesson in a process of its own: its cells on data that is not its own."""

import tempfile
from pathlib import Path

from benchmarks import contract
from benchmarks import lesson as in_process
from benchmarks.contract import Refused
from tools import lessons

from . import cases


class CarryOver(in_process.Lesson):
    """A lesson with its setup, its pipelines and all else that a reader copies."""

    run = in_process.PIPELINES | {"copy"}

    def check_carry_over(self) -> list[str]:
        """Raises Refused if a pipeline breaks a promise. Returns the tags of those it tried."""
        dataset_of, tried = self.names.get("dataset_of"), []
        if "short-answer" in self.tags and self.has_short_answer():
            for case in contract.CASES:
                if case.count >= case.batch_size:
                    contract.check_idiom(self.names["batches"], case, dataset_of)
            tried.append("short-answer")
        if "tuned-pipeline" in self.tags:
            tuned = self.names["tuned_batches"]
            for case in contract.CASES:
                contract.check_case(tuned, case, dataset_of)
            cases.run(tuned, dataset_of)
            if contract.takes_dataset(tuned):
                contract.check_views(tuned, dataset_of)
            tried.append("tuned-pipeline")
        if "files-pipeline" in self.tags:
            with tempfile.TemporaryDirectory() as folder:
                contract.check_files(self.names["file_batches"], Path(folder))
            tried.append("files-pipeline")
        if "text_batches" in self.names:
            contract.check_text(self.names["text_batches"])
            tried.append("text_batches")
        if "shuffled_stream" in self.names:
            from .huggingface_stream import check_shards

            check_shards(self.names["shuffled_stream"])
            tried.append("shuffled_stream")
        for name in ("decode_crop", "fast_crop"):
            if name in self.names:
                contract.check_decoder(self.names[name])
                tried.append(name)
        if "store_smaller" in self.names:
            contract.check_store_smaller(self.names["store_smaller"], self.names["photographs_in"])
            tried.append("store_smaller")
        return tried

    def break_cell(self, defines: str, old: str, new: str) -> None:
        """Run the cell that defines a function or class again, with one replacement in it."""
        from IPython.core.interactiveshell import InteractiveShell

        cells = lessons.code_cells(lessons.read_notebook(self.name))
        heads = f"def {defines}(", f"class {defines}:"
        [source] = [c.source for c in cells if any(head in c.source for head in heads)]
        assert source.count(old) == 1, f"{defines} has no {old}"
        InteractiveShell.instance().run_cell(source.replace(old, new)).raise_error()


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
