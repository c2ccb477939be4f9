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
* ``fake_results``: an op is run once on fake tensors of one layout.
* ``decompositions``: a trace that would reproduce its input is left out.
* ``graph_order``: nodes are moved where they were copied.
* The history of a node (``from_node``) is shared, as nothing changes it.

All but the last two happen inside a lowering to an Arm backend only; context
variables keep other threads out, and end with it however it ends.

Refused: nothing; what the parts cannot tell to be the same runs as in stock.

"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from arm_ext import fix
from arm_ext.lowering import decompositions, deferred_code, fake_results, graph_order
from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.traceback import NodeSource

# Whether the C++ ops were already listed in this lowering; empty if they were not.
_ops_listed: ContextVar[list[bool] | None] = ContextVar(
    "arm_ext_ops_listed", default=None
)


@contextmanager
def _older_objects_frozen() -> Iterator[None]:
    """Keep the garbage collector to what the lowering makes.

    It would walk over a million objects of the imported packages again and again.
    What somebody else froze, or another lowering, is left alone.

    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _lowering() -> Iterator[None]:
    token = _ops_listed.set([])
    try:
        with (
            _older_objects_frozen(),
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


def _call_function(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    return fake_results.call(*args, lambda: wrapped(*args))


def _dispatch(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    op, _, op_args, op_kwargs = args
    return fake_results.call_in(
        instance, op, op_args, op_kwargs, lambda: wrapped(*args)
    )


def _run_decompositions(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if kwargs or len(args) != 1:
        return wrapped(*args, **kwargs)
    return decompositions.run_decompositions(instance, args[0], lambda: wrapped(*args))


def _list_ops_once(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    """Look every C++ op up once: torch does it for each of its op namespaces."""
    listed = _ops_listed.get()
    if not listed:
        wrapped()
        if listed is not None:
            listed.append(True)


def _share(source: NodeSource, memo: dict[int, Any]) -> NodeSource:
    return source


def needs(installed: fix.Installed) -> fix.Need:
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
        "torch.fx.interpreter:Interpreter.call_function",
        _call_function,
        parameters=("self", "target", "args", "kwargs"),
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
        "torch._export.utils:_materialize_cpp_cia_ops", _list_ops_once, parameters=()
    )
    patcher.set(
        "executorch.exir.lowered_backend_module:legalize_graph",
        graph_order.legalize_graph,
        everywhere=False,
    )
    patcher.register(
        "torch.fx.traceback:NodeSource.__deepcopy__",
        lambda: setattr(NodeSource, "__deepcopy__", _share),
        lambda: delattr(NodeSource, "__deepcopy__"),
    )
