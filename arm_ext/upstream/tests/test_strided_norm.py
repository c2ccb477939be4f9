# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    EthosU85PipelineINT,
    TosaPipelineINT,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]


class StridedNorm(torch.nn.Module):
    """The patches of a vision transformer, normed and shuffled."""

    test_data = {
        "rank4": lambda: (torch.randn(1, 8, 4, 4),),
        "rank4_batch": lambda: (torch.randn(2, 8, 2, 6),),
    }

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm(x.flatten(2).transpose(1, 2))
        return norm.view(x.shape[0], 4, -1)


@common.parametrize("test_data", StridedNorm.test_data)
def test_strided_norm_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](StridedNorm().eval(), test_data(), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", StridedNorm.test_data)
def test_strided_norm_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](StridedNorm().eval(), test_data(), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", StridedNorm.test_data)
def test_strided_norm_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](
        StridedNorm().eval(), test_data(), [], quantize=True
    )
    pipeline.run()
