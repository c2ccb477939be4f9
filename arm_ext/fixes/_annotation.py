# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What the fixes of the annotation pipeline share: its symbol and a probe."""

import torch
from executorch.backends.arm._passes import ArmPassManager
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

PIPELINE = (
    "executorch.backends.arm._passes.arm_pass_manager:"
    "ArmPassManager.transform_for_annotation_pipeline"
)
PARAMETERS = ("self", "graph_module")


def probe_program() -> GraphModule:
    """Return the mean over the last dimension, the first one being dynamic.

    It is a small program that the annotation pipeline rewrites.

    """
    graph = Graph()
    x = graph.placeholder("x")
    mean = graph.call_function(torch.ops.aten.mean.dim, (x, [-1]))
    graph.output((mean,))
    mode = FakeTensorMode(shape_env=ShapeEnv())
    dims = [DimDynamic.DYNAMIC, DimDynamic.STATIC]
    x.meta["val"] = mode.from_tensor(
        torch.empty(3, 5),
        source=ConstantSource("x"),
        symbolic_context=StatelessSymbolicContext(dims),
    )
    mean.meta["val"] = x.meta["val"].mean(-1)
    return GraphModule(torch.nn.Module(), graph)


def annotate(program: GraphModule) -> GraphModule:
    """Run the installed annotation pipeline for an integer target."""
    manager = ArmPassManager(TosaCompileSpec("TOSA-1.0+INT"))
    return manager.transform_for_annotation_pipeline(program)
