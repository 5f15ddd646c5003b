"""The table of the other loaders: what each is, its licence, where it installs, or why it does not.

Imports none of them. Each but the last is a module beside this one, with the functions of the
contract that the library can keep; its docstring says what it cannot.
"""

import dataclasses

COLLECTION = "requirements.txt"  # installs beside the collection: `tox run -e others`
APART = "requirements-apart.txt"  # does not: `tox run -e others-apart`


@dataclasses.dataclass(frozen=True)
class Loader:
    title: str
    distribution: str
    licence: str
    module: str  # what a program imports
    requirements: str | None  # the file that pins its version
    reason: str = ""  # why it stands apart, or in no file
    # By function, the promises of which the check refuses some: the results have its sentences.
    breaks: dict[str, set[str]] = dataclasses.field(default_factory=dict)


LOADERS = {
    "torchdata_nodes": Loader(
        "torchdata.nodes", "torchdata", "BSD-3-Clause", "torchdata.nodes", COLLECTION
    ),
    "spdl_pipelines": Loader(
        "SPDL",
        "spdl",
        "BSD-2-Clause",
        "spdl.pipeline",
        COLLECTION,
        breaks={"tuned_batches": {"refuses"}, "file_batches": {"refuses", "errors of workers"}},
    ),
    "webdataset_tars": Loader(
        "WebDataset",
        "webdataset",
        "BSD-3-Clause",
        "webdataset",
        COLLECTION,
        breaks={
            "file_batches": {"splits batches", "workers"},
            "stored_batches": {"splits batches"},
        },
    ),
    "litdata_chunks": Loader(
        "LitData",
        "litdata",
        "Apache-2.0",
        "litdata",
        COLLECTION,
        breaks={"file_batches": {"splits batches", "refuses", "errors of workers"}},
    ),
    "ray_data": Loader(
        "Ray Data",
        "ray",
        "Apache-2.0",
        "ray.data",
        COLLECTION,
        breaks={
            "tuned_batches": {"splits batches"},
            "file_batches": {"splits batches", "refuses"},
            "stored_batches": {"splits batches"},
        },
    ),
    "jax_dataloader_arrays": Loader(
        "jax-dataloader",
        "jax-dataloader",
        "Apache-2.0",
        "jax_dataloader",
        COLLECTION,
        breaks={"tuned_batches": {"splits batches"}},
    ),
    "cyreal_arrays": Loader(
        "cyreal",
        "cyreal",
        "MIT",
        "cyreal.loader",  # `import cyreal` alone brings nothing
        COLLECTION,
        breaks={"tuned_batches": {"keeps dtypes", "splits batches", "refuses"}},
    ),
    "mosaicml_shards": Loader(
        "MosaicML streaming",
        "mosaicml-streaming",
        "Apache-2.0",
        "streaming",
        APART,
        "It asks for NumPy before 2.2, and for a transformers that the tokenizers of the lessons "
        "are too new for.",
        {"file_batches": {"splits batches"}, "stored_batches": {"splits batches"}},
    ),
    "datarax_arrays": Loader(
        "datarax",
        "datarax",
        "MIT",
        "datarax",
        APART,
        "It asks for JAX before 0.12 and protobuf before 6.",
        {"tuned_batches": {"keeps dtypes"}},
    ),
    "ffcv": Loader(
        "FFCV",
        "ffcv",
        "Apache-2.0",
        "ffcv",
        None,
        "Its last release, 1.0.2 of 2023, has no wheel: pip builds it, and that needs the headers "
        "of OpenCV and libturbojpeg.",
    ),
}
