# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import pytest
import torch
from executorch.backends.arm.quantizer import (
    get_symmetric_quantization_config,
    TOSAQuantizer,
)
from executorch.backends.arm.tosa.specification import TosaSpecification
from torch.export import _unlift
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class LayerNorm(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (8,))


def test_guards_tosa_INT_reach_the_converted_module(monkeypatch):
    inputs = (torch.randn(2, 8),)
    quantizer = TOSAQuantizer(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    quantizer.set_global(get_symmetric_quantization_config())
    with monkeypatch.context() as patch:
        # torch leaves the guards out when the caller lies in executorch.
        patch.setattr(_unlift, "_ok_to_generate_guards_fn", lambda: True)
        module = torch.export.export(LayerNorm().eval(), inputs).module()
    prepared = prepare_pt2e(module, quantizer)
    prepared(*inputs)
    converted = convert_pt2e(prepared)
    torch.testing.assert_close(
        converted(*inputs), LayerNorm()(*inputs), rtol=0, atol=0.1
    )
    with pytest.raises(Exception, match="Guard failed"):
        converted(torch.randn(3, 8))
