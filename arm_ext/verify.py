# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Run a lowered program in Python, its delegates on the TOSA reference model.

The TOSA graph of a delegate is built again from the delegate's own edge
program and compile specs, exactly as its backend builds it; the nodes left on
the CPU run eagerly. So the numbers of a VGF or Ethos-U program can be compared
with eager PyTorch on any machine. Compiled VGFs can also be executed on a
Vulkan driver (:mod:`arm_ext.vulkan`).

"""

import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from arm_ext import vulkan
from arm_ext.patcher import Patcher
from executorch.backends.arm.constants import NHWC_ORDER, NNHWC_ORDER
from executorch.backends.arm.ethosu import EthosUBackend, EthosUCompileSpec
from executorch.backends.arm.test.runner_utils import (
    numpy_to_torch_tensor,
    run_tosa_graph,
    torch_tensor_to_numpy,
)
from executorch.backends.arm.tosa.backend import TOSABackend
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.vgf import VgfBackend, VgfCompileSpec
from executorch.exir import EdgeProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

__all__ = ["executable", "run", "tosa_of"]


@dataclass(frozen=True)
class _Backend:
    """A backend that goes through TOSA, and the call that compiles its TOSA."""

    details: Any
    compile_spec: Any
    compiler: str = ""
    parameters: tuple[str, ...] = ()


_BACKENDS = {
    "TOSABackend": _Backend(TOSABackend, TosaCompileSpec),
    "VgfBackend": _Backend(
        VgfBackend,
        VgfCompileSpec,
        "executorch.backends.arm.vgf.backend:VgfBackend._compile_tosa_flatbuffer",
        ("tosa_flatbuffer", "compile_spec", "tag_name"),
    ),
    "EthosUBackend": _Backend(
        EthosUBackend,
        EthosUCompileSpec,
        "executorch.backends.arm.ethosu.backend:"
        "EthosUBackend._compile_tosa_flatbuffer",
        ("tosa_flatbuffer", "compile_spec"),
    ),
}
_rebuilding = threading.Lock()


def _backend_of(delegate: LoweredBackendModule) -> _Backend:
    try:
        return _BACKENDS[delegate.backend_id]
    except KeyError:
        raise ValueError(
            f"cannot run a delegate of {delegate.backend_id!r}; "
            f"only {', '.join(_BACKENDS)} produce TOSA"
        ) from None


class _Flatbuffer(Exception):
    """Carries the flatbuffer out of a backend's ``preprocess``."""

    def __init__(self, tosa: bytes) -> None:
        super().__init__("stopped before the backend's compiler")
        self.tosa = tosa


def tosa_of(delegate: LoweredBackendModule) -> bytes:
    """Return the TOSA flatbuffer that the delegate's backend compiled.

    Args:
        delegate (LoweredBackendModule): A delegate of the TOSA, VGF or Ethos-U
            backend.

    Raises:
        ValueError: The delegate belongs to another backend.

    """
    backend = _backend_of(delegate)
    if not backend.compiler:
        return delegate.processed_bytes
    this_thread = threading.get_ident()

    def stop(compiler: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        if threading.get_ident() == this_thread:
            raise _Flatbuffer(args[0])
        return compiler(*args, **kwargs)  # another thread lowers meanwhile

    program = copy.deepcopy(delegate.original_module)
    patcher = Patcher()
    with _rebuilding:
        patcher.wrap(backend.compiler, stop, parameters=backend.parameters)
        try:
            backend.details.preprocess(program, delegate.compile_specs)
        except _Flatbuffer as caught:
            return caught.tosa
        finally:
            patcher.undo()
    raise RuntimeError(f"{delegate.backend_id} did not produce a TOSA flatbuffer")


class _Delegate(torch.nn.Module):
    """Stands for a delegate; reads and writes memory in the declared dim orders."""

    def __init__(self, delegate: LoweredBackendModule) -> None:
        super().__init__()
        program = delegate.original_module
        names = set(program.graph_signature.user_inputs)
        placeholders = program.graph.find_nodes(op="placeholder")
        self.inputs = [node for node in placeholders if node.name in names]
        self.output_node = program.graph.output_node()

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        outputs = self.output_node.args[0]
        tensors = self.execute(list(map(_in_memory_order, inputs, self.inputs)))
        _check_dtypes(tensors, outputs)
        return list(map(_out_of_memory_order, tensors, outputs))

    def execute(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        raise NotImplementedError


def _in_memory_order(tensor: torch.Tensor, declared: Node) -> torch.Tensor:
    """Return what the delegate is handed: dimensions as they lie in memory."""
    return tensor.permute(declared.meta["val"].dim_order()).contiguous()


def _out_of_memory_order(tensor: torch.Tensor, declared: Node) -> torch.Tensor:
    """Undo :func:`_in_memory_order` where ``numpy_to_torch_tensor`` does not."""
    value = declared.meta["val"]
    order = value.dim_order()
    if order in (tuple(range(len(order))), NHWC_ORDER, NNHWC_ORDER):
        return tensor
    in_memory = tensor.reshape([value.shape[dim] for dim in order])
    return in_memory.permute([order.index(dim) for dim in range(len(order))])


class CompiledDelegate(_Delegate):
    """Stands for a VGF delegate; executes its compiled VGF on a Vulkan driver."""

    def __init__(self, delegate: LoweredBackendModule) -> None:
        super().__init__(delegate)
        self.vgf = delegate.processed_bytes

    def execute(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        arrays = vulkan.run(self.vgf, list(map(torch_tensor_to_numpy, inputs)))
        return list(map(numpy_to_torch_tensor, arrays, self.output_node.args[0]))


class ReferenceDelegate(_Delegate):
    """Stands for a delegate; runs its TOSA graph on the reference model."""

    def __init__(self, delegate: LoweredBackendModule) -> None:
        super().__init__(delegate)
        backend = _backend_of(delegate)
        self.tosa = tosa_of(delegate)
        self.tosa_spec = backend.compile_spec._from_list(
            delegate.compile_specs
        ).tosa_spec

    def execute(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return run_tosa_graph(self.tosa, self.tosa_spec, inputs, self.output_node)


def _check_dtypes(tensors: Sequence[torch.Tensor], declared: Sequence[Node]) -> None:
    """Raise where the runtime would read an output as another dtype than it has."""
    for tensor, node in zip(tensors, declared):
        dtype = node.meta["val"].dtype
        if tensor.dtype != dtype:
            raise RuntimeError(
                f"the delegate declares its output {node.name!r} as {dtype}, "
                f"but its TOSA graph gives {tensor.dtype}"
            )


def executable(
    program: EdgeProgramManager | ExportedProgram,
    method: str = "forward",
    vgf: str = "reference",
) -> GraphModule:
    """Return the lowered program as a module that can run on this machine.

    Each call of a delegate, in branches and loop bodies too, becomes a call of
    a :class:`ReferenceDelegate` or a :class:`CompiledDelegate`. Mutable buffers
    keep their state between calls of the module, as in a loaded program.

    Args:
        program: What ``to_edge_transform_and_lower`` or ``to_backend`` returned,
            lowered for any Arm backend.
        method (str): The method to run.
        vgf (str): How VGF delegates run, see :func:`run`.

    Raises:
        ValueError: A delegate belongs to a backend that is not Arm's, or ``vgf``
            is unknown.

    """
    if vgf not in ("reference", "run"):
        raise ValueError(f'vgf must be "reference" or "run", not {vgf!r}')

    def stand_in(delegate: LoweredBackendModule) -> torch.nn.Module:
        if vgf == "run" and delegate.backend_id == VgfBackend.__name__:
            return CompiledDelegate(delegate)
        return ReferenceDelegate(delegate)

    module = exported_program_of(program, method).module()
    _own_buffers(module)
    return _replace_delegates(module, stand_in)


def _own_buffers(module: GraphModule) -> None:
    """Give the module buffers of its own: those of the program are shared with it."""
    for owner in module.modules():
        for name, buffer in owner._buffers.items():
            owner._buffers[name] = None if buffer is None else buffer.clone()


def _replace_delegates(
    module: GraphModule, stand_in: Callable[[LoweredBackendModule], torch.nn.Module]
) -> GraphModule:
    """Return a shallow copy of ``module`` with runnable delegates, recursively."""
    copied = GraphModule(module, copy.deepcopy(module.graph))
    for node in list(copied.graph.nodes):
        if node.op == "get_attr":
            branch = getattr(module, node.target, None)
            if isinstance(branch, GraphModule):
                copied.add_submodule(node.target, _replace_delegates(branch, stand_in))
        elif node.target is torch.ops.higher_order.executorch_call_delegate:
            _replace_call(copied, node, stand_in)
    copied.recompile()
    return copied


def _replace_call(
    module: GraphModule,
    call: Node,
    stand_in: Callable[[LoweredBackendModule], torch.nn.Module],
) -> None:
    attribute, *inputs = cast(tuple[Any, ...], call.args)
    name = f"{attribute.target}_stand_in"
    if not hasattr(module, name):
        module.add_submodule(name, stand_in(getattr(module, attribute.target)))
    with module.graph.inserting_before(call):
        replacement = module.graph.call_module(name, tuple(inputs))
    call.replace_all_uses_with(replacement)
    module.graph.erase_node(call)


def exported_program_of(
    program: EdgeProgramManager | ExportedProgram, method: str = "forward"
) -> ExportedProgram:
    """Return the lowered ``ExportedProgram`` of one method."""
    if isinstance(program, ExportedProgram):
        return program
    return program.exported_program(method)


def run(
    program: EdgeProgramManager | ExportedProgram,
    *inputs: Any,
    method: str = "forward",
    vgf: str = "reference",
) -> Any:
    """Execute a lowered program in Python and return its outputs.

    Args:
        program: What ``to_edge_transform_and_lower`` or ``to_backend`` returned,
            lowered for any Arm backend.
        *inputs: The positional inputs of the method, as the eager module takes
            them.
        method (str): The method to run.
        vgf (str): ``"reference"`` runs a VGF delegate on the TOSA reference model;
            ``"run"`` executes its compiled VGF on a Vulkan driver, which is
            lavapipe unless ``VK_DRIVER_FILES`` names another.

    Returns:
        What the eager module returns: a tensor or a nested structure of them.

    Raises:
        ValueError: A delegate belongs to a backend that is not Arm's, or ``vgf``
            is unknown.
        RuntimeError: A delegate gives an output in another dtype than it declares.
        ToolUnavailable: ``vgf="run"`` needs something that is not installed; the
            message says what and how to get it.

    """
    with torch.no_grad():
        return executable(program, method, vgf)(*inputs)
