"""How long the pages are, and how soon they answer: measured in a real browser, every fold open.

A lesson that has not got its short form yet is `long` in lessons.toml, and stays so only as long as
it fails the measure, so that the list shrinks.
"""

from statistics import mean

import pytest

from tools import lessons

WINDOW = {"width": 1366, "height": 768}  # a screen of a laptop: the unit of the measure
SCREENS = 10  # that a lesson may have, on average; a depth has no limit
TRAINED_BY = 3  # the screen on which the first result of training ends

LONG = sorted(lessons.long_ones())
SHORT = [name for name in lessons.listed() if name not in LONG]


def measured(tab) -> dict[str, float | None]:
    """The length of the page in screens, and where both of these end.

    `answer`: the first line of the short answer's code, and `trained`: the output of the cell that
    first shows a trained model; in screens from the top of the page as it is opened. None where the
    page has no such cell.
    """
    tab.set_viewport_size(WINDOW)
    found = {
        "answer": end_of(tab, ".cell.tag_short-answer .cell_input pre", of_a_line=True),
        "trained": end_of(tab, ".cell.tag_trained .cell_output"),
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


def keeps(of_page: dict[str, float | None]) -> bool:
    """Whether a page alone keeps the measure."""
    answers = of_page["answer"] is not None and of_page["answer"] <= 1
    trains = of_page["trained"] is not None and of_page["trained"] <= TRAINED_BY
    return answers and trains and of_page["screens"] <= SCREENS


@pytest.mark.parametrize("name", LONG)
def test_a_long_lesson_still_fails_the_measure(open_page, name):
    of_page = measured(open_page(f"notebooks/{name}.html"))
    assert not keeps(of_page), f"take `long` of {name} out of lessons.toml"


@pytest.mark.parametrize("name", SHORT)
def test_a_lesson_answers_on_the_first_screen_and_trains_by_the_third(open_page, name):
    of_page = measured(open_page(f"notebooks/{name}.html"))
    assert of_page["answer"] is not None and of_page["answer"] <= 1
    assert of_page["trained"] is not None and of_page["trained"] <= TRAINED_BY


@pytest.mark.skipif(not SHORT, reason="no lesson has its short form yet")
def test_the_lessons_are_ten_screens_long_on_average(open_page):
    screens = {name: measured(open_page(f"notebooks/{name}.html"))["screens"] for name in SHORT}
    assert mean(screens.values()) <= SCREENS, screens


PAGE = """<article class="bd-article" style="margin: 0; line-height: 20px">
<div style="height: {before}px"></div>
<div class="cell tag_short-answer"><div class="cell_input"><pre>1<br>2<br>3</pre></div></div>
<details><summary>more</summary><div style="height: {folded}px"></div></details>
<div class="cell tag_trained"><div class="cell_output">99 %</div></div></article>"""


def test_the_measure_counts_what_is_folded_and_sees_a_late_answer(browser):
    tab = browser.new_page()
    tab.set_content(PAGE.format(before=100, folded=WINDOW["height"]))
    early = measured(tab)
    assert early["answer"] < 0.5 and early["trained"] < 1 < early["screens"] < 2 and keeps(early)
    tab.set_content(PAGE.format(before=WINDOW["height"], folded=0))
    late = measured(tab)
    assert 1 < late["answer"] < 1.1 and not keeps(late)
    tab.set_content(PAGE.format(before=0, folded=SCREENS * WINDOW["height"]))
    long = measured(tab)
    assert long["answer"] < 1 and long["screens"] > SCREENS and not keeps(long)
    tab.close()
