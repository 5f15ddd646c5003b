"""The pipelines of a lesson, in a process of its own, on data that is not the lesson's."""

import itertools
import tempfile
from pathlib import Path

import hypothesis_cases

from benchmarks import contract, in_process
from benchmarks.contract import Refused


class CarriedOver(in_process.Lesson):
    """A lesson whose pipelines are tried on many inputs."""

    def check_pipelines(self) -> None:
        """Raises Refused if a pipeline breaks a promise, on as many inputs as hypothesis tries."""
        super().check_pipelines()
        if hasattr(self.code, "batches"):
            for case in contract.CASES:
                if case.count >= case.batch_size:
                    contract.check_idiom(self.code.batches, case, self.dataset_of)
        if tuned := getattr(self.code, "tuned_batches", None):
            hypothesis_cases.run(tuned, self.dataset_of)
            if contract.takes_dataset(tuned):
                some_of = contract.some_of(self.dataset_of)
                contract.check_case(tuned, contract.CASES[-2], some_of)
            self.ask_checker(tuned)
        if hasattr(self.code, "decode_crop"):  # not the library's decoder, but the lesson's
            with tempfile.TemporaryDirectory() as folder:
                make = self.code.file_batches
                contract.check_file_errors(make, Path(folder, "strict"), strict=True)

    def ask_checker(self, tuned) -> None:
        """Raises Refused if the checker of the lesson on silent bugs finds a fault."""
        steps, rows = 12, 24
        examples = contract.examples(steps * rows + 12, (4, 4), "uint8")
        given = contract.given(tuned, examples, self.dataset_of)

        def loader(epoch, start, process, processes):
            split = {"process": process, "processes": processes} if processes > 1 else {}
            stream = tuned(
                *given, batch_size=rows // processes, seed=0, start=epoch * steps + start, **split
            )
            return itertools.islice(stream, steps - start)

        for sentence in in_process.imported("silent_data_bugs").wrong_with(loader, examples):
            raise Refused(f"the checker of silent bugs says: {sentence}.")
