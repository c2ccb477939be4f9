# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An fmod is quantized to int8 only: the TABLE of 16 bits interpolates."""

from __future__ import annotations

from typing import Any

from executorch.backends.arm.quantizer.arm_quantizer_utils import PatternCheck
from torch.fx import Node


class Int8Activations(PatternCheck):
    """Take a pattern that is quantized to int8."""

    @classmethod
    def check_quantization_config(
        cls, pattern: list[Node], quantization_config: Any
    ) -> bool:
        if quantization_config is None:
            return True
        return cls.is_int8_activations(quantization_config, pattern[-1])
