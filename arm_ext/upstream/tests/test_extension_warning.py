# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import pytest
import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import export


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def test_missing_extension_tosa_FP_warns():
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    exported = export(Add(), (torch.randn(2, 3, dtype=torch.bfloat16),))
    with pytest.warns(UserWarning, match="bf16"):
        to_edge_transform_and_lower(exported, partitioner=[partitioner])
