# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Count the multiply-accumulates of an op."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry


def macs(node: Node) -> int:
    """Return the multiply-accumulates of a node; symbolic sizes count with their hint.

    ``torch.utils.flop_counter`` knows the formulas; ops that are not in it, such as
    additions and activations, count as none.

    """
    overload = getattr(node.target, "_op", node.target)
    out = _shapes(node.meta.get("val"))
    if overload is torch.ops.aten.linear.default:
        weight = cast(Node, node.args[1])
        return math.prod(out) * _shapes(weight.meta["val"])[-1]
    formula = flop_registry.get(getattr(overload, "overloadpacket", None))
    if formula is None:
        return 0
    args, kwargs = map_arg(
        (node.args, node.kwargs), lambda arg: _shapes(arg.meta.get("val"))
    )
    return int(formula(*args, **kwargs, out_val=out)) // 2


def _shapes(value: Any) -> Any:
    """Put shapes in the place of tensors, as the formulas take them."""
    return tree_map(
        lambda x: _sizes(x.shape) if isinstance(x, torch.Tensor) else x, value
    )


def _sizes(shape: torch.Size) -> tuple[int, ...]:
    return tuple(s if isinstance(s, int) else int(s.node.hint or 1) for s in shape)
