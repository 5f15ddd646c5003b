"""How long the pages are, and how soon they answer: measured in a real browser, every fold open."""

import pytest

from tools.lesson import lessons

WINDOW = {"width": 1366, "height": 768}  # a screen of a laptop: the unit of the measure
# In screens: where the answer and the first result of training may end. A page is as long as a
# newcomer needs to read it once.
LIMITS = {"answer": 1, "trained": 3}


def measured(tab) -> dict[str, float | None]:
    """The length of the page in screens, and where both of these end.

    `answer`: the first line of the short answer's code or, where it has none, of its list, and
    `trained`: the output of the cell that first shows a trained model or, of a lesson on one step
    before the training, what it gains; in screens from the top of the page as it is opened. None
    where the page has no such cell.
    """
    tab.set_viewport_size(WINDOW)
    found = {
        "answer": end_of(tab, ".cell.tag_short-answer .cell_input pre", of_a_line=True)
        or end_of(tab, "#the-short-answer :is(ol > li, tbody tr)", of_a_line=True),
        "trained": end_of(tab, ".cell:is(.tag_trained, .tag_gained-by-a-step) .cell_output"),
    }
    tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    height = tab.locator("article.bd-article").evaluate("page => page.scrollHeight")
    return found | {"screens": height / WINDOW["height"]}


def end_of(tab, selector: str, of_a_line: bool = False) -> float | None:
    first = tab.locator(selector).first
    if not first.count():
        return None
    height = "parseFloat(getComputedStyle(e).lineHeight)" if of_a_line else "e.clientHeight"
    end = first.evaluate(f"e => e.getBoundingClientRect().top + scrollY + {height}")
    return end / WINDOW["height"]


def faults(of_page: dict[str, float | None]) -> list[str]:
    """What of the measure a page alone does not keep."""
    found = [(what, of_page[what], limit) for what, limit in LIMITS.items()]
    return [what for what, end, limit in found if end is None or end > limit]


@pytest.mark.parametrize("name", lessons.listed())
def test_a_lesson_answers_on_the_first_screen_and_trains_by_the_third(open_page, name):
    assert faults(measured(open_page(f"notebooks/{name}.html"))) == []


PAGE = """<article class="bd-article" style="margin: 0; line-height: 20px">
<div style="height: {before}px"></div>
<div class="cell tag_short-answer"><div class="cell_input"><pre>1<br>2<br>3</pre></div></div>
<details><summary>more</summary><div style="height: {folded}px"></div></details>
<div class="cell tag_trained"><div class="cell_output">99 %</div></div></article>"""


def test_the_measure_counts_what_is_folded_and_sees_a_late_answer(browser):
    tab, height = browser.new_page(), WINDOW["height"]
    for before, folded, found in (
        (100, height, []),
        (height, 0, ["answer"]),
        (3 * height, 0, ["answer", "trained"]),
        (0, 10 * height, []),
    ):
        tab.set_content(PAGE.format(before=before, folded=folded))
        of_page = measured(tab)
        assert faults(of_page) == found
        assert of_page["answer"] == pytest.approx(before / height, abs=0.1)
        assert of_page["screens"] == pytest.approx((before + folded) / height, abs=0.4)
    tab.close()
