# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A report as a graph that Model Explorer opens."""

from __future__ import annotations

from typing import Any

from arm_ext.reporting.data import Op, Report


def model_explorer_graphs(report: Report) -> dict[str, Any]:
    """Return a graph collection: what Model Explorer reads from a JSON file.

    Each delegate is a layer that can be folded; a node's attributes say where it runs,
    what it costs, and why.

    """
    left = {op.name: op for op in report.cpu_ops}
    nodes = [_node(op, left.get(op.name)) for op in report.ops]
    name = f"{report.model} ({report.side})"
    return {"label": name, "graphs": [{"id": name, "nodes": nodes}]}


def _node(op: Op, left: Any) -> dict[str, Any]:
    attributes = {
        "runs on": "CPU" if op.delegate is None else f"delegate {op.delegate}",
        "MACs": str(op.macs),
        "source": op.source or "",
    }
    if left is not None:
        attributes["reasons"] = "\n".join(left.reasons)
        attributes["to do"] = "\n".join(left.remedies)
    return {
        "id": op.name,
        "label": op.op,
        "namespace": "" if op.delegate is None else f"delegate {op.delegate}",
        "attrs": [{"key": k, "value": v} for k, v in attributes.items() if v],
        "incomingEdges": [
            {"sourceNodeId": s, "sourceNodeOutputId": "0", "targetNodeInputId": str(i)}
            for i, s in enumerate(op.inputs)
        ],
    }
