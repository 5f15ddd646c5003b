"""What leads from lesson to lesson follows from lessons.toml, and leads to what is there."""

import nbformat
import pytest

from offline.problem import Problem
from tools.lesson import facts, lessons
from tools.site import as_text, navigation, records, site_pages


def test_the_catalogue_has_each_lesson_once_and_says_all_of_it():
    listed = [entry["name"] for entry in lessons.catalogue()["lesson"]]
    assert sorted({*listed, *filter(None, map(lessons.depth_of, listed))}) == lessons.names()
    assert len({*listed}) == len(listed)


def test_an_entry_that_lacks_something_is_one_sentence(repository):
    file = repository / "lessons.toml"
    file.write_text(file.read_text().replace('question = "In which', 'asks = "In which'))
    with pytest.raises(Problem, match=r"lessons\.toml says no `question` of grain: "):
        lessons.listed()
    file.write_text("[[lesson")
    with pytest.raises(Problem, match=r"lessons\.toml is not TOML: "):
        lessons.listed()


def test_a_section_names_those_of_the_other_loaders_and_not_itself():
    anchor = "stay-one-batch-ahead-of-the-device"
    said = navigation.others("pytorch_dataloader_in_depth", anchor)
    assert said.startswith("{.also}\nAlso with: [Grain<span")
    assert "grain.ipynb#copy-batches-to-the-device-in-advance" in said and "pytorch" not in said
    assert said.count(": One batch ahead</span>") == 3
    of_grain = navigation.others("grain", "copy-batches-to-the-device-in-advance")
    assert f"pytorch_dataloader_in_depth.ipynb#{anchor}" in of_grain and "grain" not in of_grain
    assert navigation.others("pytorch_dataloader", anchor) == ""
    assert navigation.others("grain", "what-to-remember") == ""
    assert navigation.others("many_devices", "the-short-answer") == ""


def test_each_section_of_a_question_gets_the_line_once():
    for name, sections in navigation.loaders().items():
        found = 0
        for page in filter(None, (name, lessons.depth_of(name))):
            notebook = lessons.read_notebook(page)
            site_pages.link_to_others(notebook, page)
            found += nbformat.writes(notebook).count("Also with: ")
        assert found == len(sections) - 1  # but its title


def test_a_depth_stands_below_its_lesson_in_every_list(repository):
    files = lessons.md_path("grain_in_depth"), lessons.notebook_path("grain_in_depth")
    texts = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    assert lessons.depth_of("grain") == "" == navigation.tree_of("grain")
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    order = lessons.in_order()
    assert order[order.index("grain") + 1] == "grain_in_depth"
    assert lessons.depth_of("grain_in_depth") == ""
    assert "\ngrain_in_depth\n" in navigation.tree_of("grain")
    notebook = lessons.read_notebook("grain")
    site_pages.add_depth(notebook, "grain")
    assert notebook.cells[-1].source == navigation.tree_of("grain")
    assert ", [in depth](notebooks/grain_in_depth.ipynb) |" in facts.readme_table()
    assert ", [in depth](notebooks/grain_in_depth.ipynb) |" in navigation.tables(
        dict.fromkeys(lessons.listed(), 5)
    )
    proofs = lessons.code_cells(lessons.read_notebook("grain_in_depth"), "proof")
    assert f"[{len(proofs)} claims, proven in depth](grain_in_depth.ipynb)" in records.checked_line(
        "grain"
    )
    assert "notebooks/grain_in_depth.md): the same, in depth" in as_text.index("")


def test_the_way_of_the_bytes_has_each_lesson_that_says_its_place():
    page = navigation.with_places((lessons.ROOT / "index.md").read_text())
    assert "<!-- lessons of" not in page
    for name, entry in lessons.listed().items():
        assert page.count(f'<a href="notebooks/{name}.html">') == ("place" in entry)
