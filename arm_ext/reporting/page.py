# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A report as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from arm_ext.reporting.data import CpuOp, Op, Report
from arm_ext.reporting.text import text

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 22, 14, 20  # of an op in the drawing, in px

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 90rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre { overflow-x: auto; }
table { border-collapse: collapse; }
td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
td:first-child, th:first-child { text-align: left; }
.bar { display: inline-block; height: .8rem; background: #c0392b; margin-right: .5rem; }
.drawing { overflow: auto; max-height: 80vh; border: 1px solid #8884; }
svg text { font: 11px system-ui, sans-serif; fill: #111; pointer-events: none; }
svg path { fill: none; stroke: #888; }
svg rect { stroke: #0004; rx: 4px; }
svg .cpu { fill: #e74c3c; } svg .qdq { fill: #bbb; }
svg rect:hover { stroke: #000; stroke-width: 2px; }
"""


def page(reports: Sequence[Report]) -> str:
    """Return reports, such as stock's and the patched one's, as an HTML page."""
    title = html.escape(f"{reports[0].model} for {reports[0].target}")
    body = "".join(part for report in reports for part in _sections(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1>{body}</body></html>\n"
    )


def _sections(report: Report) -> Iterator[str]:
    yield f"<h2>{report.side}</h2><pre>{html.escape(text(report))}</pre>"
    if report.cpu_ops:
        yield f"<h2>{report.side}: why ops stay on the CPU</h2>{_bars(report.cpu_ops)}"
    for index, delegate in enumerate(report.delegates):
        if delegate.estimate and delegate.estimate.layers:
            yield f"<h2>{report.side}: delegate {index}, layer by layer</h2>"
            yield _table(delegate.estimate.layers)
    if report.ops:
        yield f'<h2>{report.side}: graph</h2><div class="drawing">{_drawing(report)}</div>'


def _bars(ops: Iterable[CpuOp]) -> str:
    counts = Counter(
        reason for op in ops for reason in op.reasons or ("no reason said",)
    )
    most = max(counts.values())
    rows = (
        f'<div><span class="bar" style="width:{20 * count / most:.1f}rem"></span>'
        f"{count} × {html.escape(reason)}</div>"
        for reason, count in counts.most_common()
    )
    return "".join(rows)


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        texts = (f"<{tag}>{html.escape(cell or '')}</{tag}>" for cell in cells)
        return f"<tr>{''.join(texts)}</tr>"

    lines = [line(rows[0], "th"), *(line(row.values(), "td") for row in rows)]
    return f'<div class="drawing"><table>{"".join(lines)}</table></div>'


def _drawing(report: Report) -> str:
    places = _layout(report.ops)
    reasons = {op.name: op for op in report.cpu_ops}
    width = max(x for x, _ in places.values()) + _WIDTH + _GAP_X
    height = max(y for _, y in places.values()) + _HEIGHT + _GAP_Y
    edges = (
        _edge(places[source], places[op.name])
        for op in report.ops
        for source in op.inputs
        if source in places
    )
    boxes = (_box(op, places[op.name], reasons.get(op.name)) for op in report.ops)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f"{''.join(edges)}{''.join(boxes)}</svg>"
    )


def _layout(ops: Sequence[Op]) -> dict[str, tuple[int, int]]:
    """Put each op below those that it reads, near the middle of them."""
    row: dict[str, int] = {}
    rows: dict[int, list[Op]] = defaultdict(list)
    for op in ops:
        row[op.name] = 1 + max((row[s] for s in op.inputs if s in row), default=-1)
        rows[row[op.name]].append(op)
    places: dict[str, tuple[int, int]] = {}
    for number, members in sorted(rows.items()):
        free = 0
        for wish, op in sorted(
            ((_wish(op, places), op) for op in members), key=lambda pair: pair[0]
        ):
            free = max(free, wish)
            places[op.name] = (free, number * (_HEIGHT + _GAP_Y))
            free += _WIDTH + _GAP_X
    return places


def _wish(op: Op, places: Mapping[str, tuple[int, int]]) -> int:
    columns = [places[source][0] for source in op.inputs if source in places]
    return sum(columns) // len(columns) if columns else 0


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x0, y0 = start[0] + _WIDTH // 2, start[1] + _HEIGHT
    x1, y1 = end[0] + _WIDTH // 2, end[1]
    bend = _GAP_Y // 2
    return f'<path d="M{x0} {y0}C{x0} {y0 + bend} {x1} {y1 - bend} {x1} {y1}"/>'


def _box(op: Op, place: tuple[int, int], left: CpuOp | None) -> str:
    x, y = place
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" {_fill(op)}>'
        f"<title>{html.escape(_details(op, left))}</title></rect>"
        f'<text x="{x + 6}" y="{y + 15}">{html.escape(_short(op.op))}</text>'
    )


def _fill(op: Op) -> str:
    if op.delegate is not None:
        # The golden angle keeps neighbouring delegates apart.
        return f'style="fill:hsl({140 + 137 * op.delegate % 360} 55% 70%)"'
    return 'class="cpu"' if op.computes else 'class="qdq"'


def _short(op: str) -> str:
    name = op.partition(".")[2].removesuffix(".default") or op
    return name if len(name) <= 28 else name[:27] + "…"


def _details(op: Op, left: CpuOp | None) -> str:
    where = "CPU" if op.delegate is None else f"delegate {op.delegate}"
    lines = [op.name, op.op, where, f"{op.macs:,} MACs", op.source or ""]
    if left:
        lines += [*left.reasons, *left.remedies]
    return "\n".join(line for line in lines if line)
