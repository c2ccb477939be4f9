# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    EthosU55PipelineINT,
    EthosU85PipelineINT,
    TosaPipelineFP,
    TosaPipelineINT,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]

aten_op = "torch.ops.aten.conv_transpose1d.default"
exir_op = "executorch_exir_dialects_edge__ops_aten_convolution_default"


class ConvTranspose1d(torch.nn.Module):
    test_data = {
        "basic": lambda: ConvTranspose1d(4, 6, 3),
        "stride": lambda: ConvTranspose1d(4, 6, 4, stride=3, padding=1),
        "output_padding": lambda: ConvTranspose1d(
            4, 2, 3, stride=2, output_padding=1, bias=False
        ),
        "dilation": lambda: ConvTranspose1d(4, 6, 3, stride=2, dilation=3),
        "groups": lambda: ConvTranspose1d(4, 6, 3, groups=2),
    }

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()
        self.conv = torch.nn.ConvTranspose1d(*args, **kwargs)

    def get_inputs(self) -> input_t:
        return (torch.randn(2, self.conv.in_channels, 11),)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class ConvBatchNormRelu(ConvTranspose1d):
    test_data = {"fused": lambda: ConvBatchNormRelu(4, 6, 3, stride=2).eval()}

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.norm = torch.nn.BatchNorm1d(self.conv.out_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)))


@common.parametrize("test_data", ConvTranspose1d.test_data)
def test_conv_transpose1d_tosa_FP(test_data):
    model = test_data()
    pipeline = TosaPipelineFP[input_t](model, model.get_inputs(), aten_op, exir_op)
    pipeline.run()


@common.parametrize(
    "test_data", ConvTranspose1d.test_data | ConvBatchNormRelu.test_data
)
def test_conv_transpose1d_tosa_INT(test_data):
    # The quantizer is shown a 2-D one.
    model = test_data()
    pipeline = TosaPipelineINT[input_t](model, model.get_inputs(), [], exir_op)
    pipeline.run()


@common.XfailIfNoCorstone300
@common.parametrize("test_data", ConvTranspose1d.test_data)
def test_conv_transpose1d_u55_INT(test_data):
    model = test_data()
    pipeline = EthosU55PipelineINT[input_t](model, model.get_inputs(), [], exir_op)
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", ConvTranspose1d.test_data)
def test_conv_transpose1d_u85_INT(test_data):
    model = test_data()
    pipeline = EthosU85PipelineINT[input_t](model, model.get_inputs(), [], exir_op)
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", ConvTranspose1d.test_data)
def test_conv_transpose1d_vgf_no_quant(test_data):
    model = test_data()
    pipeline = VgfPipeline[input_t](
        model, model.get_inputs(), aten_op, exir_op, quantize=False
    )
    pipeline.run()
