"""The words of pages/glossary.md, linked where a page first says them, and their letters."""

import itertools
import re

from nbformat import NotebookNode

from tools.lesson import lessons

# What is no running text: headings, the box, tables, code, links, roles, HTML, classes of a block.
LEFT_ALONE = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)|^#+ .*?$|^>.*?$|^\|.*?$|^\{\..*?$|\{\w+\}`[^`]*`|(`+).*?\1"
    r"|!?\[[^\]]*\]\([^)]*\)|<(\w+)[^>]*>.*?</\2>|<[^>]+>",
    re.MULTILINE | re.DOTALL,
)

# Words of the glossary that pages say in other senses too, such as an element of an array.
OF_SEVERAL_SENSES = {"element", "gather", "stamp", "step", "stream"}
ABBREVIATION = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]+(?=s?(?![\w-]))")
# Products, units and kinds of files, which readers of any page here know by these letters.
KNOWN = {
    *("JAX", "MNIST", "NNX", "TFDS", "NVIDIA", "A100", "CUDA", "DALI", "FFCV", "SPDL", "MPI", "S3"),
    *("CPU", "GPU", "KB", "MB", "GB", "TB", "API", "URL", "GET", "PUT", "README", "CC", "BY"),
    *("CSV", "HDF5", "HEIC", "JPEG", "JSON", "LMDB", "PNG", "RGB", "AAC", "FLAC", "MKV", "MP3"),
    *("MP4", "WAV", "LLVM"),
}


def unexplained(markdown: str) -> list[str]:
    """The abbreviations in the text of a page that neither it nor the glossary explains.

    A page explains one where it stands in parentheses, behind the words that it is short for, or
    before them.
    """
    found = {*ABBREVIATION.findall(LEFT_ALONE.sub("", markdown))}
    told = {short for short in found if f"({short})" in markdown or f"{short} (" in markdown}
    return sorted(found - told - KNOWN - {word.upper() for word in entries()})


def entries() -> dict[str, str]:
    """For each word, in small letters, its entry. An entry of several words has them by commas."""
    page = (lessons.ROOT / "pages" / "glossary.md").read_text()
    listed = page.split("```{glossary}")[1].partition("```")[0]
    found = re.findall(r"^(\S.*)$", listed, re.MULTILINE)
    return {word.lower(): entry for entry in found for word in entry.split(", ")}


def link(notebook: NotebookNode) -> None:
    """Link each word to the glossary where the text of the page first says it."""
    words, linked = entries(), {*OF_SEVERAL_SENSES}
    any_word = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))  # the longest first
    wanted = re.compile(rf"(?<![\w`.-])({any_word})(?:s|es)?(?![\w`-])", re.IGNORECASE)

    def with_role(found: re.Match) -> str:
        entry = words[found[1].lower()]
        if entry in linked:
            return found[0]
        linked.add(entry)
        return f"{{term}}`{found[0]} <{entry}>`"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            kept, at = [], 0
            for alone in LEFT_ALONE.finditer(cell.source):
                kept += [wanted.sub(with_role, cell.source[at : alone.start()]), alone[0]]
                at = alone.end()
            cell.source = "".join([*kept, wanted.sub(with_role, cell.source[at:])])


def letters() -> str:
    """A line of links, by each letter to the first entry that begins with it."""
    in_order = dict.fromkeys(entries().values())
    by_letter = itertools.groupby(in_order, key=lambda entry: entry[0].upper())
    return " · ".join(f"{{term}}`{letter} <{next(of_it)}>`" for letter, of_it in by_letter)
