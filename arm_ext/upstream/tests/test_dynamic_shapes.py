# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import torch
from executorch.backends.arm.quantizer import (
    get_symmetric_quantization_config,
    TOSAQuantizer,
)
from executorch.backends.arm.tosa.specification import TosaSpecification
from torch.export import Dim, export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Mean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x.reshape(x.shape[0], -1), (8,))


def test_dynamic_batch_tosa_INT_is_calibrated():
    model, x = Mean().eval(), torch.randn(3, 2, 4)
    exported = export(model, (x,), dynamic_shapes=({0: Dim("n")},))
    quantizer = TOSAQuantizer(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    for size in (3, 5):
        prepared(torch.randn(size, 2, 4))
    converted = convert_pt2e(prepared)
    other = torch.randn(4, 2, 4)
    assert converted(other).shape == model(other).shape
