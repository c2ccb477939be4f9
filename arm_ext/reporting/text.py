# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A report as text."""

from __future__ import annotations

from collections.abc import Iterator

from arm_ext._table import render
from arm_ext.reporting.data import Delegate, Report


def text(report: Report) -> str:
    """Return the report as it is printed."""
    title = f"{report.model} for {report.target} ({report.side})"
    if report.error is not None:
        return f"{title}: {report.error}"
    return "\n".join([title, *_summary(report), *_delegates(report), *_left(report)])


def _summary(report: Report) -> Iterator[str]:
    compute = len(report.compute)
    delegated = compute - len(report.cpu_ops)
    yield (
        f"  {len(report.delegates)} delegates run {delegated} of {compute} ops "
        f"({report.op_share:.1%}), {report.mac_share:.1%} of the MACs; "
        f"{report.boundary_bytes:,} bytes cross their boundaries"
    )
    yield from (f"  warning: {warning}" for warning in report.warnings)


def _delegates(report: Report) -> Iterator[str]:
    if report.delegates:
        head = ("delegate", "backend", "ops", "MACs", "payload", "cycles", "SRAM")
        rows = [_row(report, *pair) for pair in enumerate(report.delegates)]
        yield render(head, rows)


def _row(report: Report, index: int, delegate: Delegate) -> tuple[str, ...]:
    ops = [op for op in report.compute if op.delegate == index]
    cost = delegate.estimate
    return (
        str(index),
        delegate.backend,
        str(len(ops)),
        f"{sum(op.macs for op in ops):,}",
        f"{delegate.payload_bytes:,} B",
        f"{cost.cycles:,}" if cost else "",
        f"{cost.sram_bytes:,} B" if cost else "",
    )


def _left(report: Report) -> Iterator[str]:
    if not report.cpu_ops:
        yield "  nothing is left on the CPU"
    for op in report.cpu_ops:
        yield f"  on the CPU: {op.name} ({op.op})"
        if op.source:
            yield f"    at {op.source}"
        yield from (f"    because: {reason}" for reason in op.reasons)
        yield from (f"    to do: {remedy}" for remedy in op.remedies)
