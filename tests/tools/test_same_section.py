"""The same question in each loader's lesson leads to a section that is there."""

import re

import pytest

from tools import as_text, lessons, same_section, site_pages


def anchors(name: str) -> set[str]:
    cells = lessons.read_notebook(name).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {site_pages.slug(heading) for _, heading in site_pages.HEADING.findall(prose)}


@pytest.mark.parametrize("question", same_section.SECTIONS)
def test_each_section_is_there(question):
    found = same_section.SECTIONS[question]
    assert len(found) == len(same_section.LOADERS) and sum(map(bool, found)) >= 3
    for name, anchor in zip(same_section.LOADERS, found, strict=True):
        assert not anchor or anchor in anchors(name), f"{name}#{anchor}"


def test_a_section_names_those_of_the_other_loaders_and_not_itself():
    said = same_section.others("grain", "stay-ahead-of-the-device")
    assert said.startswith("{.also}\nAlso with: [PyTorch<span")
    assert "pytorch_dataloader.ipynb#stay-one-batch-ahead-of-the-device" in said
    assert "grain.ipynb" not in said and said.count(": One batch ahead</span>") == 4
    assert same_section.others("grain", "what-you-learned") == ""
    assert same_section.others("many_devices", "the-short-answer") == ""


def test_each_section_of_a_question_gets_the_line_once():
    for place, name in enumerate(same_section.LOADERS):
        shown = site_pages.with_others(lessons.notebook_path(name).read_text(), name)
        count = sum(bool(found[place]) for found in same_section.SECTIONS.values())
        assert shown.count("Also with: ") == count


def test_llms_txt_lists_every_lesson_in_its_group_with_what_one_learns():
    page = as_text.index("https://example.org/feed-jax/")
    found = re.findall(
        r"^- \[(.+)\]\(https://example.org/feed-jax/notebooks/(\w+)\.md\): (.+)$", page, re.M
    )
    assert [name for _, name, _ in found] == lessons.in_order()
    assert all(learned.endswith(".") and "\n" not in learned for *_, learned in found)
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
