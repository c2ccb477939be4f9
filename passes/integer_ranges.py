# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The values that the integers of a program can take, and which of them fit int32.

One walk over the top-level graph, ATen or edge dialect, functional or not, in time
linear in its size. ``torch.utils._sympy.value_ranges`` bounds the symbolic sizes here
but not the tensors: its ranges know no dtype that wraps, few tensor ops, and cost a
SymPy object an end.

"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from .index_sources import schema_of
from .integer_range import DTYPE_RANGES, IntegerRange
from .integer_range_rules import (
    Call,
    first_tensor,
    op_name,
    output_of,
    rule_of,
    size_range,
    source_of,
)

__all__ = [
    "IntegerRange",
    "IntegerRanges",
    "integer_ranges",
    "intermediates",
    "why_not",
]

_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}


class IntegerRanges(dict[Node, IntegerRange]):
    """Ranges by node, and the reasons that ``why_not`` has found, by dtype and node."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[torch.dtype, dict[Node, str | None]] = {}


def integer_ranges(
    graph_module: GraphModule,
    value_of: Callable[[Node], torch.Tensor | None],
) -> IntegerRanges:
    """Return a range for every node whose value is an integer or bool tensor, or a size.

    Sound: a value that the node takes for inputs that the program accepts without an
    error lies in the range. What is written in place, anywhere in the graph, has its
    dtype's range; so has an output of a loop or a branch.

    Args:
        graph_module (GraphModule): With ``val`` in the nodes' meta, as exported.
        value_of (Callable[[Node], torch.Tensor | None]): Returns the tensor of a
            placeholder or get_attr that is a constant, None for any other.

    """
    written = _written_in_place(graph_module)
    ranges = IntegerRanges()
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymBool, int)):
            ranges[node] = size_range(value)
        elif isinstance(value, torch.Tensor) and value.dtype in DTYPE_RANGES:
            whole = DTYPE_RANGES[value.dtype]
            known = None if node in written else _known(node, value, ranges, value_of)
            if known is None or not known.within(whole):
                known = whole
            ranges[node] = known
    return ranges


def intermediates(
    node: Node, ranges: Mapping[Node, IntegerRange]
) -> tuple[IntegerRange, ...] | None:
    """Return the ranges of what a node reads and computes on its way to its result.

    Computed in int32 instead of int64, with the operands cast, the node gives
    the same result if all of these fit int32 and the result does, as ``ranges`` says.
    A constant argument counts as read, an input of which only the shape counts does
    not. Of a node that is no integer, only what it reads is given.

    Floor division and remainder are taken to be computed from TOSA's INTDIV. The
    lowering for the FP profile alone and for Ethos-U55 divides in floating point,
    which is not exact: 41 // 41 is 0 there.

    Returns:
        tuple[IntegerRange, ...] | None: None if that is not known, or if the node
        may trap or have no int32 form: ``why_not`` says why.

    """
    call, _ = _call(node, ranges)
    if call is None or call.obstacle is not None:
        return None
    return tuple(step.values for step in call.steps)


def why_not(
    node: Node, ranges: IntegerRanges, dtype: torch.dtype = torch.int32
) -> str | None:
    """Return why a node cannot be computed in ``dtype``, in words, or None if it can.

    Where that comes from an operand, the reason is the operand's: the first op in the
    program that leaves the range of ``dtype``.

    """
    reasons = ranges.reasons.setdefault(dtype, {})
    path = []
    while node not in reasons:
        path.append(node)
        reason = _why_not_alone(node, ranges, DTYPE_RANGES[dtype])
        if isinstance(reason, Node):
            node = reason
        else:
            reasons[node] = reason
    reasons.update(dict.fromkeys(path, reasons[node]))
    return reasons[node]


def _why_not_alone(
    node: Node, ranges: IntegerRanges, limits: IntegerRange
) -> Node | str | None:
    """Return the operand that has the reason, or the node's own reason or None."""
    if node.op != "call_function" or isinstance(node.meta.get("val"), torch.SymInt):
        return _why_not_source(node, ranges, limits)
    call, exact = _call(node, ranges)
    if call is None:
        return f"nothing is known of the values of {_text(node, ranges)}"
    outside = [step for step in call.steps if not step.values.within(limits)]
    for step in outside:
        if isinstance(step.source, Node):
            return step.source
    if call.obstacle is not None:
        return f"in {_text(call.node, ranges)}, {call.obstacle}"
    if outside:
        return (
            f"in {_text(call.node, ranges)}, {outside[0].source} reaches "
            f"{_farthest(outside[0].values, limits)}"
        )
    if node not in ranges or ranges[node].within(limits):
        return None
    if exact in (None, DTYPE_RANGES[node.meta["val"].dtype]):
        return f"nothing is known of the values of {_text(call.node, ranges)}"
    if exact.within(limits):
        return f"{node} is written in place"
    return f"{_text(call.node, ranges)} reaches {_farthest(exact, limits)}"


def _known(
    node: Node,
    value: torch.Tensor,
    ranges: Mapping[Node, IntegerRange],
    value_of: Callable[[Node], torch.Tensor | None],
) -> IntegerRange | None:
    """Return the values before they wrap, or None."""
    if any(isinstance(size, int) and size == 0 for size in value.shape):
        return IntegerRange.point(0)  # there are none
    if node.op in ("placeholder", "get_attr"):
        return _of_constant(value_of(node))
    return _call(node, ranges)[1]


def _of_constant(value: torch.Tensor | None) -> IntegerRange | None:
    if value is None or isinstance(value, FakeTensor) or value.is_meta:
        return None
    if value.dtype in (torch.bool, torch.uint16, torch.uint32):
        value = value.to(torch.int64)
    elif value.dtype == torch.uint64:
        return None
    lo, hi = torch.aminmax(value)
    return IntegerRange(int(lo), int(hi))


def _call(
    node: Node, ranges: Mapping[Node, IntegerRange]
) -> tuple[Call | None, IntegerRange | None]:
    """Apply the rule of the op that ``node`` calls; return its notes and its result.

    A result that is no integer is not computed, so all is read as it is.

    """
    rule = rule_of(node)
    if rule is None:
        return None, None
    call = Call(source_of(node), ranges)
    if first_tensor(node.meta["val"]).dtype not in DTYPE_RANGES:
        call.reads_tensors()
        return call, None
    return call, output_of(rule(call), node)


def _why_not_source(
    node: Node, ranges: Mapping[Node, IntegerRange], limits: IntegerRange
) -> str | None:
    values = ranges[node]
    if values.within(limits):
        return None
    value = node.meta["val"]
    if isinstance(value, torch.Tensor) and values == DTYPE_RANGES[value.dtype]:
        return f"{node} may hold any value of its dtype"
    return f"{node} reaches {_farthest(values, limits)}"


def _farthest(values: IntegerRange, limits: IntegerRange) -> int:
    return values.hi if values.hi > limits.hi else values.lo


def _text(node: Node, ranges: Mapping[Node, IntegerRange]) -> str:
    """Return a call as one would write it: ``x * 3`` or ``sum(x, [1])``."""

    def operand(value: Any) -> Any:
        constant = isinstance(value, Node) and value.op in ("placeholder", "get_attr")
        known = ranges.get(value) if constant else None
        return known.lo if known is not None and known.is_point else value

    symbol, args = _OPERATORS.get(op_name(node) or ""), map_arg(node.args, operand)
    if symbol is not None and len(args) == 2:
        return f"{args[0]} {symbol} {args[1]}"
    schema = getattr(node.target, "_schema", None)
    name = (
        getattr(node.target, "__name__", node.target) if schema is None else schema.name
    )
    return f"{str(name).split('::')[-1]}({', '.join(str(arg) for arg in args)})"


# In place ----------------------------------------------------------------------------


def _written_in_place(graph_module: GraphModule) -> set[Node]:
    """Return the nodes that may share memory with one that an op writes."""
    nodes = graph_module.graph.nodes
    written = [
        argument
        for node in nodes
        for argument in _written_arguments(node, graph_module)
    ]
    if not written:
        return set()
    neighbours: dict[Node, list[Node]] = {}
    for node in nodes:
        for argument in _aliases(node):
            neighbours.setdefault(node, []).append(argument)
            neighbours.setdefault(argument, []).append(node)
    found = set(written)
    while written:
        for neighbour in neighbours.get(written.pop(), ()):
            if neighbour not in found:
                found.add(neighbour)
                written.append(neighbour)
    return found


def _written_arguments(node: Node, owner: GraphModule) -> list[Node]:
    schema = getattr(node.target, "_schema", None)
    if schema is None:  # a call of bodies, or of no op
        writes = any(_writes(body) for body in _bodies(node, owner))
        return node.all_input_nodes if writes else []
    if schema.name == "aten::detach_":  # writes no value
        return []
    return [
        argument
        for argument, formal in _arguments(node)
        if formal.alias_info is not None and formal.alias_info.is_write
    ]


def _bodies(node: Node, owner: GraphModule) -> list[GraphModule]:
    """Return the graphs that a node calls, as a block without gradients does."""
    names = [str(n.target) for n in node.all_input_nodes if n.op == "get_attr"]
    if node.op == "call_module":
        names.append(str(node.target))
    called = (operator.attrgetter(name)(owner) for name in names)
    return [body for body in called if isinstance(body, GraphModule)]


def _writes(body: GraphModule) -> bool:
    """Whether an op in a body, or in one that it calls, writes in place."""
    return any(
        getattr(getattr(node.target, "_schema", None), "is_mutable", False)
        for module in body.modules()
        if isinstance(module, GraphModule)
        for node in module.graph.nodes
    )


def _aliases(node: Node) -> list[Node]:
    """Return the arguments whose memory the result may be in."""
    if node.op != "call_function":
        return []
    schema = getattr(node.target, "_schema", None)
    if schema is None or _is_composite(schema):
        return node.all_input_nodes
    return [
        argument
        for argument, formal in _arguments(node)
        if formal.alias_info is not None
    ]


def _is_composite(schema: torch._C.FunctionSchema) -> bool:
    """Whether an op is made of others, whose aliases its schema need not tell."""
    overload = f".{schema.overload_name}" if schema.overload_name else ""
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        schema.name + overload, "CompositeImplicitAutograd"
    )


def _arguments(node: Node) -> list[tuple[Node, torch._C.Argument]]:
    formals = schema_of(node).arguments
    named = {formal.name: formal for formal in formals}
    given = [*zip(node.args, formals), *((a, named[k]) for k, a in node.kwargs.items())]
    return [
        (argument, formal)
        for arguments, formal in given
        for argument in (
            arguments if isinstance(arguments, (list, tuple)) else (arguments,)
        )
        if isinstance(argument, Node)
    ]
