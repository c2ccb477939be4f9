# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Quantizing a model with a view behind a norm of a transposed tensor throws.

The gap
    ``layer_norm`` and ``group_norm`` give dense memory, whatever their input. Before
    annotation they are decomposed into ops that keep the strides of the input, as
    that of a vision transformer's patches, ``conv(x).flatten(2).transpose(1, 2)``. A
    ``view`` behind such a norm, as in the pixel shuffle of SmolVLM, then throws
    "Cannot view a tensor with shape ... and strides ...".
What is done
    Before annotation ``KeepNormsDensePass`` makes the input of such a norm dense.

"""

from __future__ import annotations

from arm_ext.fixes._passes import run_before_annotation
from arm_ext.passes.keep_norms_dense_pass import KeepNormsDensePass
from arm_ext.patcher import Patcher


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: KeepNormsDensePass(tfa_pass=True))
