# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Record an op in the graph of a pass that retraces, in one walk over its arguments.

A pass calls every op of a graph and records it in a new one. Its arguments are
walked through ten times on the way: to unpack data, to unpack proxies, to turn
proxies into nodes, each with a look-up of every value among the types that an
argument may have. Nearly all ops have tensors and Python scalars in plain tuples and
lists; :func:`record` takes these, and leaves all others to the pass.

"""

from __future__ import annotations

from typing import Any, Optional

import torch
from arm_ext.lowering import fake_results
from executorch.exir.pass_base import _ExportPassBase, NodeMetadata, ProxyValue
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Proxy
from torch.fx.immutable_collections import immutable_dict, immutable_list

_SCALARS = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
    }
)

# Where a tracer keeps which memory its fake tensors have from the old graph.
_TAKEN = "_arm_ext_taken_memory"


class _NotPlain(Exception):
    """An argument that only the pass itself knows how to record."""


def record(
    export_pass: _ExportPassBase,
    target: Any,
    args: tuple,
    kwargs: dict,
    meta: NodeMetadata,
) -> Optional[ProxyValue]:
    """Call an op and record it, as ``export_pass._fx("call_function", ...)`` does.

    Args:
        export_pass (_ExportPassBase): The pass that retraces.
        target (Any): The op.
        args (tuple): Its arguments, with a ``ProxyValue`` for each result of an op.
        kwargs (dict): Its keyword arguments.
        meta (NodeMetadata): Metadata for the new node.

    Returns:
        ProxyValue | None: The result; None, and nothing done, where the arguments
            are not plain.

    """
    try:
        args_data, args_nodes = _unpack(args)
        kwargs_data, kwargs_nodes = _unpack(kwargs)
    except _NotPlain:
        return None
    tracer = export_pass.tracer
    result = fake_results.call(
        target,
        args_data,
        kwargs_data,
        lambda: target(*args_data, **kwargs_data),
        _spare(meta, tracer),
    )
    name = None
    if isinstance(target, OpOverload):
        name = tracer.graph._target_to_str(target.overloadpacket.__name__)
    node = tracer.create_node("call_function", target, args_nodes, kwargs_nodes, name)
    node.meta.update(meta.data)
    if type(result) is FakeTensor:
        node.meta["val"] = result
        node.meta["tensor_meta"] = None
    else:
        tracer.set_metadata(node, result)
    return ProxyValue(result, tracer.proxy(node))


def _spare(meta: NodeMetadata, tracer: Any) -> Any:
    """Return what the op was worth in the graph that is replaced, but only once."""
    value = meta.data.get("val")
    if type(value) is not FakeTensor:
        return None
    taken = vars(tracer).setdefault(_TAKEN, set())
    memory = value.untyped_storage()._cdata
    if memory in taken:
        return None
    taken.add(memory)
    return value


def _unpack(value: Any) -> tuple[Any, Any]:
    """Return an argument with the data, and with the nodes, of its proxy values."""
    kind = type(value)
    if kind is ProxyValue:
        if type(value.proxy_or_node) is not Proxy:
            raise _NotPlain
        return value.data, value.proxy_or_node.node
    if kind in _SCALARS:
        return value, value
    if kind is tuple:
        pairs = list(map(_unpack, value))
        return tuple(data for data, _ in pairs), tuple(node for _, node in pairs)
    if kind is list or kind is immutable_list:
        pairs = list(map(_unpack, value))
        return [data for data, _ in pairs], [node for _, node in pairs]
    if kind is dict or kind is immutable_dict:
        unpacked = {key: _unpack(element) for key, element in value.items()}
        return (
            {key: data for key, (data, _) in unpacked.items()},
            {key: node for key, (_, node) in unpacked.items()},
        )
    raise _NotPlain
