# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Lowering repeats work that changes nothing.

Gap: lowering takes minutes for a graph with many partitions, and half a minute
for one with a single delegate of 76 ops.

Stock: each of about 150 passes that retraces a delegate runs all of its ops on
fake tensors, generates Python code that nobody runs and copies the history of
every node. Cutting out one partition copies all of the rest of the program. The
program is traced for decompositions three times, also if one was enough.

Here: the same passes on the same graphs, with the repetition taken out:

* ``deferred_code``: the code of a module is generated when it is looked at.
* ``graph_order``: nodes are moved where they were copied.
* ``fake_results``: what an op returns for the same arguments is computed once.
* ``node_record``: an op is recorded in one walk over its arguments.
* ``decompositions``: a program with nothing left to decompose is not traced again.
* ``deferred_init``: a pass makes its tracer and interpreter when it retraces.
* The history of a node (``from_node``) is shared, as nothing changes it.
* The garbage collector runs less often, and only over what is new.

The order of nodes and the shared history are the same wherever they are asked
for; the rest happens inside a lowering to an Arm backend only. Context variables
keep other threads out of it, and it ends however the lowering ends.

With many partitions a progress bar is shown on a terminal.

Refused: nothing; what the parts cannot tell to be the same runs as in stock.

"""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import torch
from arm_ext import fix
from arm_ext.lowering import (
    decompositions,
    deferred_code,
    deferred_init,
    fake_results,
    graph_order,
    node_record,
    progress,
)
from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.pass_base import (
    _ExportPassBase,
    ExportPass,
    NodeMetadata,
    ProxyValue,
)
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.traceback import NodeSource

# New objects between two garbage collections; Python's default is 700.
_YOUNG_OBJECTS = 50_000

# The attributes that a pass is made with.
_SET_BY_PASS = frozenset(vars(ExportPass()))

# Whether the C++ ops were already listed in this lowering; empty if they were not.
_ops_listed: ContextVar[list[bool] | None] = ContextVar(
    "arm_ext_ops_listed", default=None
)


@contextmanager
def _less_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector to what the lowering makes, and call it less often.

    It would walk over a million objects of the imported packages, and over each
    thousand new ones, most of which are gone a moment later without its help.
    What somebody else froze or set, or another lowering, is left alone.

    """
    thresholds = gc.get_threshold()
    if gc.get_freeze_count() or not 0 < thresholds[0] < _YOUNG_OBJECTS:
        yield
        return
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def _lowering() -> Iterator[None]:
    token = _ops_listed.set([])
    try:
        with (
            _less_garbage_collection(),
            deferred_code.deferred(),
            fake_results.remembered(),
            decompositions.skipping(),
        ):
            yield
    finally:
        _ops_listed.reset(token)


def _generate_edge_manager(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    partitioners = args[0] if args else kwargs["partitioner"]
    if not _any_arm(p for method in partitioners.values() for p in method):
        return wrapped(*args, **kwargs)
    with _lowering():
        return wrapped(*args, **kwargs)


def _to_backend(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    partitioner = args[0] if args else kwargs["partitioner"]
    if not _any_arm(
        partitioner.values() if isinstance(partitioner, dict) else [partitioner]
    ):
        return wrapped(*args, **kwargs)
    with _lowering():
        lowered = wrapped(*args, **kwargs)
    for method in lowered.methods:
        _generate_code(lowered.exported_program(method))
    return lowered


def _any_arm(partitioners: Iterable[Any]) -> bool:
    return any(isinstance(partitioner, TOSAPartitioner) for partitioner in partitioners)


def _generate_code(program: ExportedProgram) -> None:
    """Leave modules that go to the caller as stock does: with their code."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            deferred_code.generate_now(module)
        elif isinstance(module, LoweredBackendModule):
            _generate_code(module.original_module)


def _recompile(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    return deferred_code.recompile(instance, wrapped)


def _transform(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    with fake_results.remembered(str(instance.tosa_spec)):
        return wrapped(*args, **kwargs)


def _dispatch(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if kwargs:
        return wrapped(*args, **kwargs)
    op, _, op_args, op_kwargs = args
    return fake_results.call_in(
        instance, op, op_args, op_kwargs, lambda: wrapped(*args)
    )


def _run_decompositions(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if kwargs or len(args) != 1:
        return wrapped(*args, **kwargs)
    return decompositions.run_decompositions(instance, args[0], lambda: wrapped(*args))


def _init_pass(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    if _ops_listed.get() is None:
        wrapped()
    else:
        deferred_init.defer(instance, wrapped.__func__)


def _read_of_pass(instance: ExportPass, name: str) -> Any:
    return deferred_init.read(instance, name, _SET_BY_PASS)


def _fx(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if _ops_listed.get() is None or kwargs or args[0] != "call_function":
        return wrapped(*args, **kwargs)
    recorded = node_record.record(instance, *args[1:])
    return wrapped(*args) if recorded is None else recorded


def _list_ops_once(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    """Look every C++ op up once: torch does it for each of its op namespaces."""
    listed = _ops_listed.get()
    if not listed:
        wrapped()
        if listed is not None:
            listed.append(True)


def _preprocess(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if kwargs or not instance.__module__.startswith("executorch.backends.arm."):
        return wrapped(*args, **kwargs)
    programs, compile_specs = args
    return progress.show(programs, lambda counted: wrapped(counted, compile_specs))


def _share(source: NodeSource, memo: dict[int, Any]) -> NodeSource:
    return source


def _sorts_as_torch() -> bool:
    """Whether torch's sort still is the one that ``graph_order`` reproduces."""
    orders = []
    for sort in (graph_order.legalize_graph, legalize_graph):
        graph = Graph()
        x = graph.placeholder("x")
        late = graph.call_function(torch.neg, (x,))
        early = graph.call_function(torch.abs, (x,))
        both = graph.call_function(torch.add, (early, late))
        graph.output((both, graph.call_function(torch.mul, (late, x))))
        x.append(both)
        late.append(early)
        module = sort(GraphModule(torch.nn.Module(), graph))
        orders.append([(n.name, list(map(str, n.users))) for n in module.graph.nodes])
    return orders[0] == orders[1]


def _records_as_executorch() -> bool:
    """Whether a pass still records an op as ``node_record`` does."""
    recorded = []
    for record in (node_record.record, partial(ExportPass._fx, kind="call_function")):
        export_pass = ExportPass()
        x = export_pass.tracer.create_proxy("placeholder", "x", (), {})
        made = record(
            export_pass,
            target=operator.add,
            args=(ProxyValue(3, x), 2),
            kwargs={},
            meta=NodeMetadata({"stack_trace": "here"}),
        )
        one = cast(ProxyValue, made)
        node = one.node
        recorded.append((one.data, node.name, str(node.args), node.kwargs, node.meta))
    return recorded[0] == recorded[1]


def needs(installed: fix.Installed) -> fix.Need:
    if not _sorts_as_torch():
        return fix.cannot("torch's legalize_graph sorts in another order")
    if not _records_as_executorch():
        return fix.cannot("ExecuTorch's passes record ops in another way")
    if "__deepcopy__" in vars(NodeSource):
        return fix.cannot("torch's NodeSource already decides how it is copied")
    if hasattr(_ExportPassBase, "__getattr__"):
        return fix.cannot("ExecuTorch's passes already look attributes up")
    return fix.apply()


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.exir.program._program:_gen_edge_manager_for_partitioners",
        _generate_edge_manager,
        parameters=(
            "partitioner",
            "aten_programs",
            "config",
            "constant_methods",
            "generate_etrecord",
        ),
    )
    patcher.wrap(
        "executorch.exir.program._program:EdgeProgramManager.to_backend",
        _to_backend,
        parameters=("args", "kwargs"),
    )
    patcher.wrap(
        "torch.fx.graph_module:GraphModule.recompile", _recompile, parameters=("self",)
    )
    patcher.wrap(
        "executorch.backends.arm._passes.arm_pass_manager:ArmPassManager._transform",
        _transform,
        parameters=("self", "exported_program", "graph_module"),
    )
    patcher.wrap(
        "torch._subclasses.fake_tensor:FakeTensorMode._dispatch_impl",
        _dispatch,
        parameters=("self", "func", "types", "args", "kwargs"),
    )
    patcher.wrap(
        "torch.export.exported_program:ExportedProgram.run_decompositions",
        _run_decompositions,
        parameters=("self", "decomp_table", "decompose_custom_triton_ops"),
    )
    patcher.wrap(
        "executorch.exir.pass_base:_ExportPassBase.__init__",
        _init_pass,
        parameters=("self",),
    )
    patcher.wrap(
        "executorch.exir.pass_base:_ExportPassBase._fx",
        _fx,
        parameters=("self", "kind", "target", "args", "kwargs", "meta"),
    )
    patcher.register(
        "executorch.exir.pass_base:_ExportPassBase.__getattr__",
        partial(setattr, _ExportPassBase, "__getattr__", _read_of_pass),
        partial(delattr, _ExportPassBase, "__getattr__"),
    )
    patcher.wrap(
        "torch._export.utils:_materialize_cpp_cia_ops", _list_ops_once, parameters=()
    )
    patcher.wrap(
        "executorch.exir.backend.backend_details:BackendDetails.preprocess_multimethod",
        _preprocess,
        parameters=("cls", "edge_programs", "compile_specs"),
    )
    patcher.set(
        "executorch.exir.lowered_backend_module:legalize_graph",
        graph_order.legalize_graph,
        everywhere=False,
    )
    patcher.register(
        "torch.fx.traceback:NodeSource.__deepcopy__",
        partial(setattr, NodeSource, "__deepcopy__", _share),
        partial(delattr, NodeSource, "__deepcopy__"),
    )
