# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Keep every reason for which a partitioner rejects a node."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from arm_ext.fixes._hooks import wrap_tag_module
from arm_ext.partitioner.reject_words import in_words
from arm_ext.partitioner.source import Source, source_of
from arm_ext.patcher import Patcher
from torch.fx import Node
from torch.fx.passes.operator_support import create_op_support, OperatorSupportBase

_META_KEY = "arm_ext.reject_reasons"
_LINE_KEY = "arm_ext.reject_line"
_CHAINED_IN = (
    "executorch.backends.arm.operator_support.tosa_supported_operators",
    "arm_ext.fixes._support",
)


def reasons_of(node: Node) -> tuple[str, ...]:
    """Return what :func:`reject_reasons` kept for a node, in the order of checks."""
    return node.meta.get(_META_KEY, ())


def line_of(node: Node) -> Source | None:
    """Return the line of the model that a node comes from.

    What :func:`reject_reasons` kept is better: it saw what reads the node, which is
    in a delegate later.

    """
    return node.meta.get(_LINE_KEY) or source_of(node)


@contextmanager
def reject_reasons() -> Iterator[None]:
    """Keep every reason for which a partitioner rejects a node.

    Stock's reporter keeps the first reason a node and throws it away with the
    partitioner's other state. Inside the ``with`` block each check of the
    support chain runs, also behind the first that says no, and the reasons stay
    on the rejected nodes, where :func:`coverage` finds them::

        with reject_reasons():
            edge = to_edge_transform_and_lower(program, partitioner=[...])
        print(coverage(edge).left)

    What is delegated does not change. Not for several threads at once.

    """
    patcher = Patcher()
    try:
        _observe(patcher)
        yield
    finally:
        patcher.undo()


def _observe(patcher: Patcher) -> None:
    rejects: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def report_reject(wrapped: Any, reporter: Any, args: tuple, kwargs: dict) -> None:
        node, reason = _node_and_reason(*args, **kwargs)
        reasons = rejects.setdefault(reporter, {}).setdefault(node, [])
        reasons.append(in_words(node, reason))
        wrapped(node, reason)

    def tag_module(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        # Only this reporter speaks for the partitioner; others try out nodes.
        tags = wrapped(*args, **kwargs)
        for node, reasons in rejects.get(_reporter(*args, **kwargs), {}).items():
            known = node.meta.get(_META_KEY, ())
            node.meta[_META_KEY] = tuple(dict.fromkeys((*known, *reasons)))
            node.meta[_LINE_KEY] = source_of(node)
        return tags

    patcher.wrap(
        "executorch.exir.backend.utils:WhyNoPartitionReporter.report_reject",
        report_reject,
        parameters=("self", "node", "reason"),
    )
    wrap_tag_module(patcher, tag_module)
    for module in _CHAINED_IN:
        patcher.set(f"{module}:chain", _chain_without_shortcut, everywhere=False)


def _node_and_reason(node: Node, reason: str) -> tuple[Node, str]:
    return node, reason


def _reporter(
    module: Any, containing_program: Any, reporter: Any, tag_iterator: Any = None
) -> Any:
    return reporter


def _chain_without_shortcut(*checks: OperatorSupportBase) -> OperatorSupportBase:
    """``torch.fx``'s ``chain``, but every check runs and so gives its reason."""

    def is_node_supported(submodules: Any, node: Node) -> bool:
        supported = True
        for check in checks:
            supported &= _answer(check.is_node_supported, submodules, node, supported)
        return supported

    return create_op_support(is_node_supported)


def _answer(
    check: Callable[..., bool], submodules: Any, node: Node, supported: bool
) -> bool:
    try:
        return check(submodules, node)
    except Exception:
        # A check may rely on those before it; behind a "no" its failure means
        # nothing, and in stock's chain it would not have run.
        if supported:
            raise
        return False
