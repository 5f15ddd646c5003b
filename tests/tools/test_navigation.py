"""What leads from lesson to lesson follows from lessons.toml, and leads to what is there."""

import re
import shutil

import nbformat
import pytest

from tools import as_text, check, lessons, navigation, site_pages


def anchors(name: str) -> set[str]:
    cells = lessons.read_notebook(name).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {site_pages.slug(heading) for _, heading in site_pages.HEADING.findall(prose)}


def test_the_catalogue_has_each_lesson_once_and_says_all_of_it():
    listed = [entry["name"] for entry in lessons.catalogue()["lesson"]]
    assert sorted({*listed, *filter(None, map(lessons.depth_of, listed))}) == lessons.names()
    assert len({*listed}) == len(listed)


def test_an_entry_that_lacks_something_is_one_sentence(repository):
    file = repository / "lessons.toml"
    file.write_text(file.read_text().replace('question = "In which', 'asks = "In which'))
    with pytest.raises(lessons.Problem, match=r"lessons\.toml says no `question` of grain: "):
        lessons.listed()
    file.write_text("[[lesson")
    with pytest.raises(lessons.Problem, match=r"lessons\.toml is not TOML: "):
        lessons.listed()


@pytest.mark.parametrize("question", lessons.catalogue()["questions"])
def test_each_section_is_there(question):
    answers = {name: sections.get(question) for name, sections in navigation.loaders().items()}
    assert len([*filter(None, answers.values())]) >= 3
    for name, anchor in answers.items():
        assert not anchor or anchor in anchors(name), f"{name}#{anchor}"


def test_a_loader_answers_no_question_that_is_not_asked():
    for sections in navigation.loaders().values():
        assert {*sections} <= {"title", *lessons.catalogue()["questions"]}


def test_a_section_names_those_of_the_other_loaders_and_not_itself():
    said = navigation.others("grain", "stay-ahead-of-the-device")
    assert said.startswith("{.also}\nAlso with: [PyTorch<span")
    assert "pytorch_dataloader.ipynb#stay-one-batch-ahead-of-the-device" in said
    assert "grain.ipynb" not in said and said.count(": One batch ahead</span>") == 4
    assert navigation.others("grain", "what-you-learned") == ""
    assert navigation.others("many_devices", "the-short-answer") == ""


def test_each_section_of_a_question_gets_the_line_once():
    for name, sections in navigation.loaders().items():
        notebook = lessons.read_notebook(name)
        site_pages.link_to_others(notebook, name)
        assert nbformat.writes(notebook).count("Also with: ") == len(sections) - 1  # but its title


def test_a_depth_stands_below_its_lesson_in_every_list(repository):
    assert lessons.depth_of("grain") == "" == navigation.tree_of("grain")
    text = lessons.md_path("grain").read_text().replace("# Feed JAX from Grain", "# Grain in depth")
    lessons.md_path("grain_in_depth").write_text(text)
    shutil.copy(lessons.notebook_path("grain"), lessons.notebook_path("grain_in_depth"))
    order = lessons.in_order()
    assert order[order.index("grain") + 1] == "grain_in_depth"
    assert lessons.depth_of("grain_in_depth") == ""
    assert "\ngrain_in_depth\n" in navigation.tree_of("grain")
    notebook = lessons.read_notebook("grain")
    site_pages.add_depth(notebook, "grain")
    assert notebook.cells[-1].source == navigation.tree_of("grain")
    assert ", [in depth](notebooks/grain_in_depth.ipynb) |" in check.readme_table()
    assert ", [in depth](notebooks/grain_in_depth.ipynb) |" in navigation.tables(
        dict.fromkeys(lessons.listed(), 5)
    )
    cells = lessons.code_cells(lessons.read_notebook("grain"))
    proofs = sum("proof" in lessons.tags(cell) for cell in cells)
    assert f"[{proofs} claims, proven in depth](grain_in_depth.ipynb)" in site_pages.line("grain")
    assert "notebooks/grain_in_depth.md): the same, in depth" in as_text.index("")


def test_every_group_has_a_table_a_tree_and_its_lessons():
    tables, trees = navigation.tables(dict.fromkeys(lessons.listed(), 5)), navigation.trees()
    for title, entries in navigation.groups().items():
        assert f"### {title}\n" in tables and f":caption: {title}\n" in trees
        for entry in entries:
            assert f"| {entry['have']} | [](notebooks/{entry['name']}.ipynb) | 5 + " in tables
            assert f"\nnotebooks/{entry['name']}\n" in trees


def test_the_way_of_the_bytes_has_each_lesson_that_says_its_place():
    page = navigation.with_places((lessons.ROOT / "index.md").read_text())
    assert "<!-- lessons of" not in page
    for name, entry in lessons.listed().items():
        assert page.count(f'<a href="notebooks/{name}.html">') == ("place" in entry)


def test_llms_txt_lists_every_lesson_in_its_group_with_what_one_learns():
    page = as_text.index("https://example.org/feed-jax/")
    found = re.findall(
        r"^- \[(.+)\]\(https://example.org/feed-jax/notebooks/(\w+)\.md\): (.+)$", page, re.M
    )
    assert [name for _, name, _ in found] == lessons.in_order()
    assert [answers for *_, answers in found] == [e["question"] for e in lessons.listed().values()]
    assert page.index("## Data in memory") < page.index("feed-jax/notebooks/pytorch_dataloader.md")


@pytest.mark.parametrize("name", lessons.names())
def test_the_markdown_of_a_lesson_has_its_prose_its_code_and_what_it_printed(name, tmp_path):
    notebook = lessons.read_notebook(name)
    text = as_text.markdown(notebook)
    for cell in lessons.code_cells(notebook):
        assert cell.source in text
        for output in cell.outputs:
            assert output.get("text", "").rstrip() in text
    assert text.startswith(notebook.cells[0].source.partition("\n")[0])
    assert ".ipynb" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL).replace("`", "")
    assert "image/png" not in text
