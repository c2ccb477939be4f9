# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Run a lowered program in Python, its delegates on the TOSA reference model.

The TOSA graph of a delegate is built again from the delegate's own edge
program and compile specs, exactly as its backend builds it; the nodes left on
the CPU run eagerly. So the numbers of a VGF or Ethos-U program can be compared
with eager PyTorch on any machine.

"""

import copy
import threading
from collections.abc import Sequence
from typing import Any

import torch
from arm_ext.patcher import Patcher
from executorch.backends.arm.ethosu import EthosUBackend, EthosUCompileSpec
from executorch.backends.arm.test.runner_utils import run_tosa_graph
from executorch.backends.arm.tosa.backend import TOSABackend
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.vgf import VgfBackend, VgfCompileSpec
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

_BACKENDS = {
    "TOSABackend": (TOSABackend, TosaCompileSpec, None),
    "VgfBackend": (
        VgfBackend,
        VgfCompileSpec,
        "executorch.backends.arm.vgf.backend:VgfBackend._compile_tosa_flatbuffer",
    ),
    "EthosUBackend": (
        EthosUBackend,
        EthosUCompileSpec,
        "executorch.backends.arm.ethosu.backend:"
        "EthosUBackend._compile_tosa_flatbuffer",
    ),
}
_rebuilding = threading.Lock()


def tosa_of(delegate: LoweredBackendModule) -> bytes:
    """Return the TOSA flatbuffer that the delegate's backend compiled.

    Args:
        delegate (LoweredBackendModule): A delegate of the TOSA, VGF or Ethos-U
            backend.

    Raises:
        ValueError: The delegate belongs to another backend.

    """
    backend, _, compiler = _backend_of(delegate)
    if compiler is None:
        return delegate.processed_bytes
    program = copy.deepcopy(delegate.original_module)
    with _rebuilding:
        patcher = Patcher()
        patcher.set(compiler, staticmethod(_stop_before_compiling))
        try:
            backend.preprocess(program, delegate.compile_specs)
        except _Flatbuffer as caught:
            return caught.tosa
        finally:
            patcher.undo()
    raise RuntimeError(f"{delegate.backend_id} did not produce a TOSA flatbuffer")


class _Flatbuffer(Exception):
    """Carries the flatbuffer out of a backend's ``preprocess``."""

    def __init__(self, tosa: bytes) -> None:
        super().__init__("stopped before the backend's compiler")
        self.tosa = tosa


def _stop_before_compiling(tosa: bytes, *args: Any, **kwargs: Any) -> None:
    raise _Flatbuffer(tosa)


def _backend_of(delegate: LoweredBackendModule) -> tuple[Any, Any, str | None]:
    try:
        return _BACKENDS[delegate.backend_id]
    except KeyError:
        raise ValueError(
            f"cannot run a delegate of {delegate.backend_id!r}; "
            f"only {', '.join(_BACKENDS)} produce TOSA"
        ) from None


class _ReferenceModel(TorchFunctionMode):
    """Runs ``executorch_call_delegate`` on the TOSA reference model."""

    def __init__(self) -> None:
        super().__init__()
        self._graphs: dict[int, bytes] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):  # noqa: ANN001
        if func is not torch._higher_order_ops.executorch_call_delegate:
            return func(*args, **(kwargs or {}))
        delegate, *inputs = args
        return self._run(delegate, inputs)

    def _run(
        self, delegate: LoweredBackendModule, inputs: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        if id(delegate) not in self._graphs:
            self._graphs[id(delegate)] = tosa_of(delegate)
        _, spec_class, _ = _backend_of(delegate)
        spec = spec_class._from_list(delegate.compile_specs)
        return run_tosa_graph(
            self._graphs[id(delegate)],
            spec.tosa_spec,
            list(inputs),
            delegate.original_module.graph.output_node(),
        )


def exported_program_of(
    program: EdgeProgramManager | ExecutorchProgramManager | ExportedProgram,
    method: str = "forward",
) -> ExportedProgram:
    """Return the lowered ``ExportedProgram`` of one method."""
    if isinstance(program, ExportedProgram):
        return program
    return program.exported_program(method)


def run(
    program: EdgeProgramManager | ExecutorchProgramManager | ExportedProgram,
    *inputs: Any,
    method: str = "forward",
) -> Any:
    """Execute a lowered program in Python and return its outputs.

    Args:
        program: What ``to_edge_transform_and_lower`` or ``to_backend`` returned,
            lowered for any Arm backend.
        *inputs: The positional inputs of the method, as the eager module takes
            them.
        method (str): The method to run.

    Returns:
        What the eager module returns: a tensor or a nested structure of them.

    Raises:
        ValueError: A delegate belongs to a backend that is not Arm's.

    """
    module = exported_program_of(program, method).module()
    with torch.no_grad(), _ReferenceModel():
        return module(*inputs)
