# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import pytest
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import export


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def test_unquantized_u85_INT_warns():
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u85-256"))
    exported = export(Add(), (torch.randn(2, 3),))
    with pytest.warns(UserWarning, match="the program is not quantized"):
        to_edge_transform_and_lower(exported, partitioner=[partitioner])
