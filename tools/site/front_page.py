"""What the site's front page shows of the measurements and of the lessons, as it is built.

Its figures are those of the lesson that chooses, to three digits.
"""

import html
import math
from pathlib import Path

from tools.lesson import benchmark_results, copies, lessons, result_cells

KINDS = {  # what is drawn, by its key in the lesson; how; and what is said of it
    "first": (
        "first version",
        '<circle cx="{x:.1f}" cy="{y}" r="5" fill="none"/>',
        "what people write first is slower than the training step of a small model",
    ),
    "short": (
        "short answer",
        '<path d="M{x:.1f} {y}m-6 0l6 -6l6 6l-6 6z" fill="none"/>',
        "the short answer is faster than it",
    ),
    "images/s": (
        "tuned",
        '<circle cx="{x:.1f}" cy="{y}" r="5" fill="currentColor" stroke="none"/>',
        "the tuned pipeline is faster than it",
    ),
}
LEFT, RIGHT, TOP, ROW = 14, 346, 58, 46  # of a drawing that is 360 wide: a phone's column
SHOWN = "pytorch_dataloader"  # the lesson whose short answer stands beside the picture


def newest(folder: Path = benchmark_results.FOLDER) -> dict:
    """The newest results of a machine that timed loaders; those of a GPU come first."""
    return max(
        filter(speeds, benchmark_results.stored(folder)),
        key=lambda results: (results["device"] != "cpu", result_cells.summary(results)["date"]),
    )


def speeds(results: dict) -> dict[str, dict[str, float]]:
    """For each loader the medians that were measured, in images per second.

    There are none where the training step was not, beside which they are drawn.
    """
    shown = result_cells.summary(results)
    return {
        loader: {kind: kinds[kind][1] for kind in KINDS if kinds[kind]}
        for loader, kinds in shown["memory"].items()
        if shown["step"] and loader != "NumPy"
    }


def step(results: dict) -> float:
    """Images per second that the training step takes when it never waits for data."""
    return result_cells.summary(results)["step"][1]


def claim(results: dict) -> str:
    """What the picture shows, in a sentence that follows from the numbers."""
    found, limit = speeds(results), step(results)

    said = {}
    for kind, (*_, sentence) in KINDS.items():
        if values := [kinds[kind] for kinds in found.values() if kind in kinds]:
            slower = kind == "first"
            count = sum((value < limit) == slower for value in values)
            of_all = f"all {count} loaders" if count == len(values) else f"{count} of {len(values)}"
            said[sentence] = of_all
    if len({*said.values()}) == 1:
        return f"Measured with {of_all}: {'; '.join(said)}."
    return f"Measured: {'; '.join(f'{what}, with {of_all}' for what, of_all in said.items())}."


def picture(results: dict) -> str:
    """The measured speeds as SVG in the colours of the page, and as a folded table."""
    found, limit = speeds(results), step(results)
    values = [limit, *(value for kinds in found.values() for value in kinds.values())]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (RIGHT - LEFT)

    bottom = TOP + ROW * len(found)
    parts = [legend({kind for kinds in found.values() for kind in kinds})]
    for power in range(low, high + 1):
        at = x(10**power)
        anchor = {low: "start", high: "end"}.get(power, "middle")
        parts.append(f'<path d="M{at:.1f} {TOP - 8}V{bottom}" opacity="0.25"/>')
        short = f"{10**power:,}".replace(",000,000", "M").replace(",000", "k")
        parts.append(words(at, bottom + 16, short, anchor))
    parts.append(f'<path d="M{x(limit):.1f} {TOP - 16}V{bottom}" stroke-dasharray="5 3"/>')
    parts.append(words(x(limit), TOP - 21, "the training step", "middle"))
    parts.append(words((LEFT + RIGHT) / 2, bottom + 34, "images per second", "middle"))
    for row, (loader, kinds) in enumerate(found.items()):
        y = TOP + ROW * row + 28
        parts.append(words(LEFT, y - 14, loader, "start", "over"))
        ends = x(min(kinds.values())), x(max(kinds.values()))
        parts.append(f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" opacity="0.4"/>')
        parts += [KINDS[kind][1].format(x=x(value), y=y) for kind, value in kinds.items()]
    title = (
        "Images per second on a logarithmic axis, for each loader from its first version to the "
        "tuned one, and a dashed line where the training step is. The table below has the figures."
    )
    return (
        f'<figure class="speeds"><svg viewBox="0 0 360 {bottom + 42}" role="img" '
        f'aria-labelledby="speeds-title"><title id="speeds-title">{title}</title>'
        f'<g fill="none" stroke="currentColor" stroke-width="1.5">{"".join(parts)}</g></svg>'
        f"<figcaption>{caption(results)}</figcaption>{figures_table(found, limit)}</figure>"
    )


def words(x: float, y: float, text: str, anchor: str, kind: str = "beside") -> str:
    """`kind`: "over" lines, which then end at the letters, or "beside" them."""
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" class="{kind}" fill="currentColor" '
        'stroke="none">'
        f"{html.escape(text)}</text>"
    )


def legend(kinds: set[str]) -> str:
    """The marks and what they mean, in a row."""
    marks, at = [], LEFT + 4
    for kind, (name, mark, _) in KINDS.items():
        if kind in kinds:
            marks += [mark.format(x=at, y=10), words(at + 11, 14, name, "start")]
            at += 30 + 7 * len(name)
    return "".join(marks)


def caption(results: dict) -> str:
    """What was measured, where and when."""
    timed = [of for of in results["lessons"].values() if "tuned_images_s" in of]
    dates = sorted({figures["date"] for figures in timed})
    versions = {figures["versions"]["jax"] for figures in timed}
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    repetitions = min(len(figures["tuned_images_s"]) for figures in timed)
    return html.escape(
        "Each loader alone: MNIST in memory, batches of 128. "
        f"{benchmark_results.label(results)}, version {' and '.join(sorted(versions))}, {when}. "
        f"Medians of {repetitions} repetitions. The "
        "dashed line: the lessons' small model, trained there on data that it never waits for."
    )


def figures_table(found: dict, limit: float) -> str:
    """The numbers of the picture, folded."""
    head = "".join(f'<th scope="col">{name}</th>' for name, *_ in KINDS.values())
    rows = []
    for loader, kinds in found.items():
        numbers = (f"{kinds[kind]:,.0f}" if kind in kinds else "" for kind in KINDS)
        cells = "".join(f"<td>{number}</td>" for number in numbers)
        rows.append(f'<tr><th scope="row">{html.escape(loader)}</th>{cells}</tr>')
    return (
        "<details><summary>The figures, in images per second</summary>"
        '<div class="pst-scrollable-table-container" tabindex="0"><table class="table"><thead>'
        f'<tr><th scope="col">loader</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p>The training step: {limit:,.0f} images per second.</p></details>"
    )


def code() -> str:
    """The short answer of a lesson, with all that it needs: what is copied runs as it is."""
    notebook = lessons.read_notebook(SHOWN)
    blocks, cells = copies.blocks(notebook), lessons.code_cells(notebook)
    [block] = [blocks[number] for number in blocks if "short-answer" in lessons.tags(cells[number])]
    return block
