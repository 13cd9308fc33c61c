"""How pages look: readable in light, in dark and on paper, with nothing loaded from anywhere."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# Okabe and Ito's colours, told apart by colour-blind readers; lighter ones on dark paper.
# https://jfly.uni-koeln.de/color/
LIGHT = {
    "ink": "#1b1f23",
    "soft": "#5f6870",
    "line": "#d5dadf",
    "paper": "#ffffff",
    "tile": "#f4f6f8",
    "c1": "#0072b2",
    "c2": "#d55e00",
    "c3": "#e69f00",
    "c4": "#009e73",
    "c5": "#cc79a7",
    "c6": "#56b4e9",
    "c7": "#7d868e",
}
DARK = {
    "ink": "#e7eaee",
    "soft": "#a3adb6",
    "line": "#394149",
    "paper": "#14181c",
    "tile": "#1e242a",
    "c1": "#4fb0ea",
    "c2": "#ff8b4a",
    "c3": "#f2c14b",
    "c4": "#35c79b",
    "c5": "#e6a0c8",
    "c6": "#9ad4f7",
    "c7": "#98a2ab",
}

_STYLE = """
:root {{ color-scheme: light dark; {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC",
  "PingFang SC", "Microsoft YaHei", sans-serif; }}
main {{ max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.2rem; margin: 2.6rem 0 .5rem; }}
h3 {{ font-size: 1rem; margin: 0; }}
p {{ margin: .5rem 0; max-width: 46rem; }}
.sub, figcaption, .note {{ color: var(--soft); font-size: .9rem; }}
.lead {{ font-size: 1.15rem; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .75rem;
  margin: 1.25rem 0; }}
.tile {{ background: var(--tile); border-radius: .5rem; padding: .8rem 1rem; }}
.tile b {{ display: block; font-size: 1.5rem; line-height: 1.2;
  font-variant-numeric: tabular-nums; }}
.tile span {{ color: var(--soft); font-size: .88rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums;
  margin: .5rem 0; }}
th, td {{ padding: .35rem .7rem; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }}
th {{ color: var(--soft); font-weight: 600; vertical-align: bottom; line-height: 1.25; }}
.n {{ text-align: right; white-space: nowrap; }}
th.n {{ white-space: normal; }}
td:first-child {{ min-width: 6rem; }}
tr.ours td {{ font-weight: 650; }}
figure {{ margin: 1.6rem 0; }}
figure svg {{ width: 100%; min-width: 34rem; height: auto; display: block; }}
figure svg text {{ font-family: inherit !important; }}
.key {{ display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .88rem; margin: .2rem 0; }}
.key i {{ display: inline-block; width: 1.6rem; height: 0; border-top: 3px solid;
  vertical-align: middle; margin-right: .4rem; }}
.key i.area {{ height: .75rem; width: .75rem; border: 0; border-radius: 2px; }}
pre {{ background: var(--tile); padding: .8rem 1rem; border-radius: .5rem; overflow-x: auto;
  font-size: .85rem; }}
li {{ margin: .25rem 0; max-width: 46rem; }}
@media print {{
  :root {{ color-scheme: light; {light} }}
  body {{ font-size: 11pt; }} main {{ max-width: none; padding: 0; }}
  .tile {{ border: 1px solid var(--line); }} .wide {{ overflow: visible; }}
  figure svg {{ min-width: 0; }} table {{ font-size: 7.5pt; }} th, td {{ padding: .2rem .35rem; }}
  figure, tr, .tile {{ break-inside: avoid; }} h2 {{ break-after: avoid; }}
}}
"""


def esc(text: object) -> str:
    """Return text that means nothing to a browser but itself."""
    return html.escape(str(text))


def document(title: str, lang: str, body: Iterable[str]) -> str:
    """Return a whole page."""
    light, dark = (
        " ".join(f"--{name}: {value};" for name, value in paint.items()) for paint in (LIGHT, DARK)
    )
    style = _STYLE.format(light=light, dark=dark)
    code = "zh-CN" if lang == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{code}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{esc(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def tiles(rows: Iterable[tuple[str, str]]) -> str:
    """Return figures side by side, each with what it says."""
    inside = "".join(
        f'<div class="tile"><b>{esc(figure)}</b><span>{esc(what)}</span></div>'
        for figure, what in rows
    )
    return f'<div class="tiles">{inside}</div>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers_from: int = 1,
    marked: Iterable[str] = (),
) -> str:
    """Return a table.

    Args:
        head: Names of the columns.
        rows: Cells.
        numbers_from: The first column that is set to the right.
        marked: Rows with one of these in their first cell stand out.
    """
    marks = set(marked)

    def cell(tag: str, place: int, content: object) -> str:
        kind = ' class="n"' if place >= numbers_from else ""
        return f"<{tag}{kind}>{esc(content)}</{tag}>"

    top = "".join(cell("th", place, name) for place, name in enumerate(head))
    body = "".join(
        f"<tr{' class=ours' if str(row[0]) in marks else ''}>"
        + "".join(cell("td", place, content) for place, content in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def key(entries: Iterable[tuple[str, str, bool]]) -> str:
    """Return what the colours of a plot mean.

    Args:
        entries: Name of the colour, what it stands for, and whether it fills an area.
    """
    inside = "".join(
        f'<span><i class="area" style="background:var(--{colour})"></i>{esc(what)}</span>'
        if is_area
        else f'<span><i style="border-color:var(--{colour})"></i>{esc(what)}</span>'
        for colour, what, is_area in entries
    )
    return f'<div class="key">{inside}</div>'


def figure(title: str, unit: str, legend: str, svg: str, note: str = "") -> str:
    """Return a plot with its title, its unit and what its colours mean."""
    below = f"<figcaption>{esc(note)}</figcaption>" if note else ""
    return (
        f'<figure><h3>{esc(title)}</h3><div class="sub">{esc(unit)}</div>{legend}'
        f'<div class="wide">{svg}</div>'
        f"{below}</figure>"
    )
