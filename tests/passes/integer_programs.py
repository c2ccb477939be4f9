# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Random programs of integer ops, built node by node and executed on the way."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Graph, GraphModule, Node

DTYPES = (torch.int64, torch.int64, torch.int64, torch.int32, torch.int8, torch.bool)
SHAPES = ((), (1,), (3,), (2, 3), (2, 1), (1, 3), (0,), (4, 2, 3))
ENDS = (0, 1, 2, 3, 7, 64, 127, 128, 255, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1)


def integer(random: Random) -> int:
    """A small number, or one at the end of an interval that dtypes have."""
    value = random.choice((random.randint(0, 9), random.choice(ENDS)))
    return random.choice((value, value, -value, -value - 1))


def within(random: Random, lo: int, hi: int, shape: tuple, dtype: torch.dtype) -> Any:
    """A tensor of values in ``[lo, hi]``, both of which are likely in it."""
    count = int(torch.Size(shape).numel())
    values = [random.choice((lo, hi, random.randint(lo, hi))) for _ in range(count)]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def floats(random: Random, shape: tuple) -> torch.Tensor:
    count = int(torch.Size(shape).numel())
    return torch.tensor([random.gauss(0, 1) for _ in range(count)]).reshape(shape)


@dataclass
class Input:
    """A placeholder, and the values that it may have; ``known`` to the analysis."""

    node: Node
    lo: int
    hi: int
    known: bool

    def value(self, random: Random) -> torch.Tensor:
        example = self.node.meta["val"]
        if example.dtype.is_floating_point:
            return floats(random, example.shape)
        return within(random, self.lo, self.hi, example.shape, example.dtype)


@dataclass
class Program:
    """A graph, its inputs and what its nodes were at the first execution."""

    graph: Graph = field(default_factory=Graph)
    inputs: list[Input] = field(default_factory=list)
    values: dict[Node, Any] = field(default_factory=dict)

    def value_of(self, node: Node) -> torch.Tensor | None:
        given = next((i for i in self.inputs if i.node is node), None)
        return torch.tensor([given.lo, given.hi]) if given and given.known else None

    def module(self) -> GraphModule:
        self.graph.output(tuple(self.values))
        return GraphModule(torch.nn.Module(), self.graph)


class NothingToDraw(Exception):
    """No value of the program is an operand of the op."""


class Trap(Exception):
    """The op would divide the smallest integer by -1, which ends the process."""


def call(target: Any, args: Any, kwargs: Any) -> Any:
    schema = getattr(target, "_schema", None)
    if schema is not None and any(d in schema.name for d in ("div", "rem", "fmod")):
        dtype = torch.result_type(*args[:2])
        x, y = (torch.as_tensor(arg).to(dtype) for arg in args[:2])
        if not dtype.is_floating_point and dtype != torch.bool:
            smallest = x == torch.iinfo(dtype).min
            if bool(smallest.any()) and bool((y == -1).any()):
                raise Trap
    return target(*args, **kwargs)


def execute(program: Program, random: Random) -> dict[Node, list[torch.Tensor]]:
    """Run with new inputs; return what each node was when computed, and at the end."""
    values: dict[Node, Any] = {i.node: i.value(random) for i in program.inputs}
    seen = {node: [value.clone()] for node, value in values.items()}
    for node in program.values:
        if node in values:
            continue
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.get)
        try:
            values[node] = call(node.target, args, kwargs)
        except (RuntimeError, Trap, ZeroDivisionError, IndexError):
            break  # an error in eager, too
        if isinstance(values[node], torch.Tensor):
            seen[node] = [values[node].clone()]
    for node, copies in seen.items():
        copies.append(values[node])
    return seen


# The ops -----------------------------------------------------------------------------

Arguments = Callable[["Draw"], tuple]


@dataclass
class Draw:
    """What the arguments of the next op are drawn from."""

    random: Random
    values: dict[Node, Any]

    def tensor(self, *, rank: int = 0, dtypes: tuple = ()) -> Node:
        fitting = [
            node
            for node, value in self.values.items()
            if isinstance(value, torch.Tensor)
            and value.dim() >= rank
            and (not dtypes or value.dtype in dtypes)
        ]
        if not fitting:
            raise NothingToDraw
        # Of the last ones rather than of the first, so that programs are deep.
        return self.random.choice(fitting[-self.random.choice((3, 8, 99)) :])

    def integer(self) -> int:
        return integer(self.random)

    def small(self, lo: int, hi: int) -> int:
        return self.random.randint(lo, hi)

    def bounds(self) -> list[int]:
        return sorted((self.integer(), self.integer()))

    def dtype(self) -> torch.dtype:
        return self.random.choice(DTYPES)

    def dim(self, node: Node) -> int:
        rank = max(self.values[node].dim(), 1)
        return self.random.randint(-rank, rank - 1)


def _one(draw: Draw) -> tuple:
    return (draw.tensor(),)


def _two(draw: Draw) -> tuple:
    return draw.tensor(), draw.tensor()


def _scalar(draw: Draw) -> tuple:
    return draw.tensor(), draw.integer()


def _along(draw: Draw) -> tuple:
    tensor = draw.tensor()
    return tensor, draw.dim(tensor)


def _shift(draw: Draw) -> tuple:
    return draw.tensor(), draw.small(-1, 66)


def _mode(arguments: Arguments) -> Arguments:
    return lambda draw: (
        *arguments(draw),
        {"rounding_mode": draw.random.choice(("floor", "trunc"))},
    )


def _alpha(arguments: Arguments) -> Arguments:
    return lambda draw: (*arguments(draw), {"alpha": draw.integer()})


def _index(draw: Draw) -> Node:
    """An int64 tensor whose values are places in most dimensions."""
    places = [
        node
        for node, value in draw.values.items()
        if isinstance(value, torch.Tensor)
        and value.dtype == torch.int64
        and bool(((value == 0) | (value == 1)).all())
    ]
    if not places:
        raise NothingToDraw
    return draw.random.choice(places)


def _maybe(draw: Draw, value: Any) -> Any:
    return draw.random.choice((value, value, None))


def _arange(draw: Draw) -> tuple:
    start, step = draw.small(-9, 9), draw.random.choice((1, 2, 5, -1, -3))
    return start, start + step * draw.small(0, 4) + draw.small(-1, 1), step


def _dims(draw: Draw) -> tuple:
    tensor = draw.tensor(rank=1)
    return tensor, [draw.dim(tensor)], draw.random.choice((True, False))


def _where(draw: Draw) -> tuple:
    return draw.tensor(dtypes=(torch.bool,)), draw.tensor(), draw.tensor()


def _gather(draw: Draw) -> tuple:
    source = draw.tensor()
    return source, draw.dim(source), _index(draw)


OPS: dict[str, Arguments] = {
    **{f"{op}.Tensor": _two for op in ("add", "sub", "mul", "rsub", "remainder")},
    **{f"{op}.Scalar": _scalar for op in ("add", "sub", "mul", "rsub", "remainder")},
    **{f"{op}.Tensor": _two for op in ("fmod", "eq", "lt", "ge")},
    **{f"{op}.Scalar": _scalar for op in ("fmod", "floor_divide", "ne", "gt", "le")},
    **{f"bitwise_{op}.Tensor": _two for op in ("and", "or", "xor")},
    **{f"bitwise_{op}.Scalar": _scalar for op in ("and", "or", "xor")},
    **{f"bitwise_{op}_shift.Tensor": _two for op in ("left", "right")},
    **{f"bitwise_{op}_shift.Tensor_Scalar": _shift for op in ("left", "right")},
    **{f"{op}.default": _one for op in ("neg", "abs", "sign", "relu", "bitwise_not")},
    **{f"{op}.default": _two for op in ("maximum", "minimum", "floor_divide")},
    **{f"{op}.default": _one for op in ("sum", "prod", "max", "min", "any", "square")},
    **{f"{op}.default": _along for op in ("cumsum", "cumprod", "argmax", "argmin")},
    **{f"{op}.dim": _along for op in ("max", "min")},
    **{f"{op}.default": _along for op in ("cummax", "sort", "unsqueeze")},
    **{f"{op}.default": _dims for op in ("amax", "amin")},
    "add.Tensor alpha": _alpha(_two),
    "sub.Tensor alpha": _alpha(_two),
    "sub.Scalar alpha": _alpha(_scalar),
    "rsub.Tensor alpha": _alpha(_two),
    "div.Tensor_mode": _mode(_two),
    "div.Scalar_mode": _mode(_scalar),
    "sum.dim_IntList": _dims,
    "prod.dim_int": lambda draw: _along(draw),
    "pow.Tensor_Scalar": lambda draw: (draw.tensor(), draw.small(0, 6)),
    "pow.Tensor_Tensor": _two,
    "pow.Scalar": lambda draw: (draw.small(-3, 3), draw.tensor()),
    "clamp.default": lambda draw: (
        draw.tensor(),
        *(_maybe(draw, bound) for bound in draw.bounds()),
    ),
    "clamp.Tensor": lambda draw: (draw.tensor(), *_two(draw)),
    "where.self": _where,
    "where.ScalarOther": lambda draw: (*_where(draw)[:2], draw.integer()),
    "arange.start_step": _arange,
    "full.default": lambda draw: (
        draw.random.choice(SHAPES),
        draw.integer(),
        {"dtype": torch.int64},
    ),
    "full_like.default": _scalar,
    "zeros_like.default": _one,
    "ones_like.default": _one,
    "scalar_tensor.default": lambda draw: (draw.integer(), {"dtype": torch.int64}),
    "_to_copy.default": lambda draw: (draw.tensor(), {"dtype": draw.dtype()}),
    "cat.default": lambda draw: (list(_two(draw)), 0),
    "stack.default": lambda draw: ([*_two(draw), draw.tensor()],),
    "split_with_sizes.default": lambda draw: (draw.tensor(rank=1), [1, 2], -1),
    "topk.default": lambda draw: (draw.tensor(rank=1), 1),
    "kthvalue.default": lambda draw: (draw.tensor(rank=1), 1),
    "select.int": lambda draw: (draw.tensor(rank=1), -1, draw.small(-3, 2)),
    "slice.Tensor": lambda draw: (draw.tensor(rank=1), -1, draw.small(0, 2)),
    "flip.default": lambda draw: (draw.tensor(rank=1), [-1]),
    "roll.default": lambda draw: (draw.tensor(), [draw.small(-2, 2)]),
    "repeat.default": lambda draw: (draw.tensor(), [2, 1, 1]),
    "expand.default": lambda draw: (draw.tensor(), [2, 3]),
    "view.default": lambda draw: (draw.tensor(), [-1]),
    "view.dtype": lambda draw: (draw.tensor(), torch.int8),
    "permute.default": lambda draw: (draw.tensor(rank=2), [1, 0]),
    "unfold.default": lambda draw: (draw.tensor(rank=1), -1, 2, 1),
    "constant_pad_nd.default": lambda draw: (
        draw.tensor(rank=1),
        [draw.small(-1, 2), 1],
        draw.integer(),
    ),
    "tril.default": lambda draw: (draw.tensor(rank=2), draw.small(-1, 1)),
    "triu.default": lambda draw: (draw.tensor(rank=2), draw.small(-1, 1)),
    "masked_fill.Scalar": lambda draw: (
        draw.tensor(),
        draw.tensor(dtypes=(torch.bool,)),
        draw.integer(),
    ),
    "gather.default": _gather,
    "index_select.default": _gather,
    "scatter.src": lambda draw: (*_gather(draw), draw.tensor()),
    "scatter.value": lambda draw: (*_gather(draw), draw.integer()),
    "scatter_add.default": lambda draw: (*_gather(draw), draw.tensor()),
    "repeat_interleave.self_int": lambda draw: (draw.tensor(), draw.small(0, 2)),
    "count_nonzero.default": _one,
    "index_copy.default": lambda draw: (*_gather(draw), draw.tensor()),
    "masked_scatter.default": lambda draw: (
        draw.tensor(),
        draw.tensor(dtypes=(torch.bool,)),
        draw.tensor(),
    ),
    "select_scatter.default": lambda draw: (*_two(draw), 0, 0),
    "slice_scatter.default": lambda draw: (*_two(draw), 0, draw.small(0, 2)),
    "index.Tensor": lambda draw: (draw.tensor(rank=1), [_index(draw)]),
    "index_put.default": lambda draw: (
        draw.tensor(rank=1),
        [_index(draw)],
        draw.tensor(),
        draw.random.choice((False, True)),
    ),
    "embedding.default": lambda draw: (draw.tensor(rank=2), _index(draw)),
    "bucketize.Tensor": _two,
    "logical_not.default": _one,
}

# With these the graph is not functional, as a program before decomposition.
IN_PLACE: dict[str, Arguments] = {
    "add_.Tensor": _two,
    "mul_.Scalar": _scalar,
    "copy_.default": _two,
    "fill_.Scalar": _scalar,
    "clamp_.default": lambda draw: (draw.tensor(), *draw.bounds()),
}


def _target(name: str, random: Random) -> Any:
    """The op in the ATen or in the edge dialect."""
    packet, _, overload = name.split()[0].partition(".")
    dialect = random.choice((torch.ops.aten, exir_ops.edge.aten))
    if packet.endswith("_"):
        dialect = torch.ops.aten
    return getattr(getattr(dialect, packet), overload)


def random_program(
    random: Random, length: int, in_place: bool = False
) -> tuple[Program, GraphModule]:
    """Return a program of ``length`` ops at most, and its module."""
    program = Program()
    for number in range(random.randint(1, 4)):
        _add_input(program, random, number)
    table = {**OPS, **(IN_PLACE if in_place else {})}
    names = list(OPS) + 8 * list(IN_PLACE if in_place else {})
    for _ in range(length):
        name = random.choice(names)
        _add_call(program, random, name, table[name])
    return program, program.module()


def _add_input(program: Program, random: Random, number: int) -> None:
    node = program.graph.placeholder(f"input_{number}")
    shape = random.choice(SHAPES)
    if random.random() < 0.15:
        node.meta["val"] = floats(random, shape)
        program.inputs.append(Input(node, 0, 0, False))
    else:
        dtype = random.choice(DTYPES)
        limits = (
            (0, 1)
            if dtype == torch.bool
            else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        )
        known = random.random() < 0.85
        ends = sorted(min(max(integer(random), limits[0]), limits[1]) for _ in "ab")
        lo, hi = ends if known else limits
        node.meta["val"] = within(random, lo, hi, shape, dtype)
        program.inputs.append(Input(node, lo, hi, known))
    program.values[node] = node.meta["val"]


def _add_call(
    program: Program, random: Random, name: str, arguments: Arguments
) -> None:
    """Add the op if eager takes the arguments that are drawn for it."""
    try:
        args = arguments(Draw(random, program.values))
    except NothingToDraw:
        return
    args, kwargs = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    target = _target(name, random)
    given = torch.fx.node.map_arg((args, kwargs), program.values.get)
    try:
        value = call(target, *given)
    except (RuntimeError, TypeError, Trap, ZeroDivisionError, IndexError):
        return
    _add(program, target, args, kwargs, value)
    if isinstance(value, (tuple, list)):
        node = next(reversed(program.values))
        for position, part in enumerate(value):
            _add(program, operator.getitem, (node, position), {}, part)


def _add(program: Program, target: Any, args: Any, kwargs: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor) and value.numel() > 200:
        return
    node = program.graph.call_function(target, args, kwargs)
    node.meta["val"] = program.values[node] = value


def in_int32(node: Node, values: dict[Node, Any]) -> Any:
    """Compute a node anew, with int32 in the place of all int64."""

    def narrow(value: Any) -> Any:
        wide = isinstance(value, torch.Tensor) and value.dtype == torch.int64
        return value.to(torch.int32) if wide else value

    args, kwargs = torch.fx.node.map_arg(
        (node.args, node.kwargs), lambda operand: narrow(values[operand])
    )
    if any(formal.name == "dtype" for formal in node.target._schema.arguments):
        if node.meta["val"].dtype == torch.int64:
            kwargs = {**kwargs, "dtype": torch.int32}
    return call(node.target, args, kwargs)
