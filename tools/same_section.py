"""The sections of the loaders' lessons that answer the same question.

The site links them with each other, and the front page has them as a table. A section that is not
there fails the build, as every link does that leads nowhere.
"""

LOADERS = {
    "pytorch_dataloader": "PyTorch",
    "grain": "Grain",
    "huggingface_datasets": "Hugging Face",
    "tensorflow_datasets": "TFDS",
    "tf_data_to_numpy": "tf.data",
}
PADDED = "lose-nothing-in-evaluation-pad-the-last-batch"
AHEAD = "stay-one-batch-ahead-of-the-device"
CAST = "keep-the-dtypes-send-uint8-cast-on-the-device"
RESUMED = "resume-at-any-step-on-any-number-of-processes"
# For each question the anchors, in the order of LOADERS. "" where a lesson has no answer.
SECTIONS = {
    "The short answer": ["the-short-answer"] * len(LOADERS),
    "Your own arrays": [
        "change-the-arrays-not-the-code",
        "change-the-arrays-not-the-code",
        "change-the-arrays-not-the-code",
        "change-the-dataset-not-the-code",
        "change-the-dataset-not-the-code",
    ],
    "A folder of photographs": [*["read-a-folder-of-photographs"] * 4, ""],
    "The last short batch": [PADDED] * len(LOADERS),
    "Dtypes": [CAST, CAST, "know-what-each-format-does-to-a-dtype", CAST, ""],
    "One batch ahead": [AHEAD, "stay-ahead-of-the-device", AHEAD, AHEAD, AHEAD],
    "Is a faster loader worth it?": [*["know-when-a-faster-loader-buys-nothing"] * 4, ""],
    "More than memory holds": [
        "",
        "read-records-from-disk",
        "stream-more-than-fits-in-memory",
        "stream-a-dataset-that-is-larger-than-memory",
        "hold-one-batch-never-a-list",
    ],
    "Resume at any step": [*[RESUMED] * 4, "resume-at-any-step-without-skip"],
    "The library's own state": [
        "save-the-loaders-state-with-statefuldataloader",
        "keep-the-position-in-an-orbax-checkpoint",
        "stream-shards-and-resume-exactly",
        "save-an-iterator-with-its-buffer",
        "save-the-iterator-where-no-number-names-the-place",
    ],
}


def links(anchors: list[str], folder: str = "", but: str = "") -> list[str]:
    """For each loader a link to its section, or "" where it has none. `but`: this lesson itself."""
    return [
        f"[{title}](<{folder}{name}.ipynb#{anchor}>)" if anchor and name != but else ""
        for (name, title), anchor in zip(LOADERS.items(), anchors, strict=True)
    ]


def others(name: str, anchor: str) -> str:
    """A line of Markdown with the same section of the other loaders, or nothing."""
    if name not in LOADERS:
        return ""
    place = [*LOADERS].index(name)
    for question, anchors in SECTIONS.items():
        if anchors[place] == anchor:
            hidden = f'<span class="visually-hidden">: {question}</span>'
            found = [link.replace("](", f"{hidden}](") for link in links(anchors, but=name) if link]
            return f"{{.also}}\nAlso with: {' · '.join(found)}"
    return ""


def table() -> str:
    """All of them, as a table of Markdown."""
    rows = [
        f"| {' | '.join(['question', *LOADERS.values()])} |",
        f"| --- |{' --- |' * len(LOADERS)}",
    ]
    for question, anchors in SECTIONS.items():
        cells = [
            link.replace("](", f'<span class="visually-hidden">: {question}</span>](')
            for link in links(anchors, folder="notebooks/")
        ]
        rows.append(f"| {question} | {' | '.join(cells)} |")
    return "\n".join(rows)
