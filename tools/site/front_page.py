"""What the site's front page shows of the measurements and of the lessons, as it is built.

Its picture has the loops of the page that compares the loaders, and its program is one of them.
"""

import html
import math
from pathlib import Path
from statistics import median

from tools.lesson import benchmark_results, copies, lessons, modules

COMPARED = "four_loaders"  # the page
SHOWN = "PyTorch"  # the loader whose program stands beside the picture
KINDS = {  # what is drawn, by its key in the results; and how
    "alone_s": (
        "the loader alone",
        '<circle cx="{x:.1f}" cy="{y}" r="5" fill="currentColor" stroke="none"/>',
    ),
    "trained_s": (
        "with training",
        '<circle cx="{x:.1f}" cy="{y}" r="5" fill="none"/>',
    ),
}
LEFT, RIGHT, TOP, ROW = 14, 346, 58, 46  # of a drawing that is 360 wide: a phone's column


def newest(folder: Path = benchmark_results.FOLDER) -> dict:
    """The newest results of a machine that timed the loops; those of a GPU come first."""
    return max(
        (results for results in benchmark_results.stored(folder) if "loops" in results),
        key=lambda results: (results["device"] != "cpu", results["loops"]["date"]),
    )


def speeds(loops: dict) -> dict[str, dict[str, float]]:
    """For each loader that trained the medians, in images per second."""
    return {
        name: {kind: loops["images"] / median(loops[kind][name]) for kind in KINDS}
        for name in loops["trained_s"]
    }


def step(loops: dict) -> float:
    """Images per second that the training step takes when it never waits for data."""
    return loops["images"] / median(loops["step_s"])


def claim(results: dict) -> str:
    """What the picture shows, in a sentence that follows from the numbers."""
    limit, found = step(results["loops"]), speeds(results["loops"])
    faster = [name for name, kinds in found.items() if kinds["alone_s"] > limit]
    return (
        f"Measured with a small model: {len(faster)} of {len(found)} ways to load MNIST deliver "
        "more images than the training step takes."
    )


def picture(results: dict) -> str:
    """The measured speeds as SVG in the colours of the page, and as a folded table."""
    loops = results["loops"]
    found, limit = speeds(loops), step(loops)
    values = [limit, *(value for kinds in found.values() for value in kinds.values())]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (RIGHT - LEFT)

    bottom = TOP + ROW * len(found)
    parts = [legend()]
    for power in range(low, high + 1):
        at = x(10**power)
        anchor = {low: "start", high: "end"}.get(power, "middle")
        parts.append(f'<path d="M{at:.1f} {TOP - 8}V{bottom}" opacity="0.25"/>')
        short = f"{10**power:,}".replace(",000,000", "M").replace(",000", "k")
        parts.append(svg_text(at, bottom + 16, short, anchor))
    parts.append(f'<path d="M{x(limit):.1f} {TOP - 16}V{bottom}" stroke-dasharray="5 3"/>')
    parts.append(svg_text(x(limit), TOP - 21, "the training step alone", "middle"))
    parts.append(svg_text((LEFT + RIGHT) / 2, bottom + 34, "images per second", "middle"))
    for row, (loader, kinds) in enumerate(found.items()):
        y = TOP + ROW * row + 28
        parts.append(svg_text(LEFT, y - 14, f"{loader}: {loops['reads'][loader]}", "start", "over"))
        ends = x(min(kinds.values())), x(max(kinds.values()))
        parts.append(f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" opacity="0.4"/>')
        parts += [KINDS[kind][1].format(x=x(value), y=y) for kind, value in kinds.items()]
    title = (
        "Images per second on a logarithmic axis, for each loader alone and with training, and a "
        "dashed line where the training step alone is. The table below has the figures."
    )
    return (
        f'<figure class="speeds"><svg viewBox="0 0 360 {bottom + 42}" role="img" '
        f'aria-labelledby="speeds-title"><title id="speeds-title">{title}</title>'
        f'<g fill="none" stroke="currentColor" stroke-width="1.5">{"".join(parts)}</g></svg>'
        f"<figcaption>{caption(results)}</figcaption>{figures_table(found, limit)}</figure>"
    )


def svg_text(x: float, y: float, text: str, anchor: str, kind: str = "beside") -> str:
    """`kind`: "over" lines, which then end at the letters, or "beside" them."""
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" class="{kind}" fill="currentColor" '
        'stroke="none">'
        f"{html.escape(text)}</text>"
    )


def legend() -> str:
    """The marks and what they mean, in a row."""
    marks, at = [], LEFT + 4
    for name, mark in KINDS.values():
        marks += [mark.format(x=at, y=10), svg_text(at + 11, 14, name, "start")]
        at += 30 + 7 * len(name)
    return "".join(marks)


def caption(results: dict) -> str:
    """What was measured, where and when."""
    loops = results["loops"]
    return html.escape(
        "The cells of “Four data loaders”: MNIST in batches of 128, an epoch of each loader, "
        "reading what its name says. "
        f"{benchmark_results.label(results)}, version {loops['versions']['jax']}, "
        f"{loops['date']}. Medians of {len(loops['step_s'])} repetitions."
    )


def figures_table(found: dict, limit: float) -> str:
    """The numbers of the picture, folded."""
    head = "".join(f'<th scope="col">{name}</th>' for name, _ in KINDS.values())
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
    """The loop of one loader, with the model and the training: what is copied runs as it is."""
    cells = lessons.code_cells(lessons.read_notebook(COMPARED))
    call = f'train("{SHOWN}"'
    [loader] = [n for n, cell in enumerate(cells) if f"\n{call}" in cell.source]
    [model] = [n for n, cell in enumerate(cells) if "\nclass Model(" in cell.source]
    own, *above = ([*copies.statements_of(n, cells[n])] for n in (loader, *range(model, loader)))
    above = [statement for statements in above for statement in statements]
    used = set().union(*(statement.uses for statement in own))
    settings = [s for s in above if s.binds & used and not s.may_stand_below]
    program = copies.program([*settings, *own, *(s for s in above if s not in settings)])
    [last] = [line for line in cells[loader].source.splitlines() if line.startswith(call)]
    return modules.formatted(f"{program}\n\n\n{last}").strip()
