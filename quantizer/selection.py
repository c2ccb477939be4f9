# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The values that ``topk`` and the like select are quantized as their input is."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import torch
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from torch.fx import Node
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

_aten = torch.ops.aten

# These return (values, indices); argsort is decomposed into sort later.
SELECTIONS = (
    _aten.topk.default,
    _aten.sort.default,
    _aten.sort.stable,
    _aten.kthvalue.default,
)
ARGSORTS = (_aten.argsort.default, _aten.argsort.stable)


def share_qparams_with_values(nodes: Iterable[Node]) -> None:
    """Have the values of each annotated selection in ``nodes`` share its qparams.

    A node that has no annotation of its input, or is no selection, is left alone.

    """
    for node in nodes:
        annotation = node.meta.get(Q_ANNOTATION_KEY)
        if node.target not in SELECTIONS or annotation is None:
            continue
        source = node.all_input_nodes[0]
        if annotation.input_qspec_map.get(source) is None:
            continue
        for user in node.users:
            if user.target is operator.getitem:
                _annotate(user, (source, node) if user.args[1] == 0 else None)


def _annotate(getitem: Node, edge: tuple[Node, Node] | None) -> None:
    getitem.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(
        input_qspec_map={},
        output_qspec=None if edge is None else SharedQuantizationSpec(edge),
        _annotated=True,
    )
    getitem.meta["custom"] = {
        **getitem.meta.get("custom", {}),
        ArmAnnotationInfo.CUSTOM_META_KEY: ArmAnnotationInfo(quantized=True),
    }
