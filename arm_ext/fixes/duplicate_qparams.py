# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Two equal ops that are quantized apart become one, with the scale of one.

The gap
    Equal calls on one value are fused, also where their results are quantized with
    different qparams: ``torch.cat([x, y + y]), (y + y) * 2`` gives the second result
    with the scale of the first, in silence. The qparams are in the nodes' meta by
    then, where the fusion does not look.
What is done
    Equal calls are told apart by their qparams too.
What is refused
    Nothing.

"""

from __future__ import annotations

from typing import Any

from arm_ext.patcher import Patcher

_QPARAMS = ("input_qparams", "output_qparams")


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.backends.transforms.fuse_duplicate_users_pass:"
        "FuseDuplicateUsersPass._build_user_signature",
        _with_qparams,
        parameters=("self", "node"),
    )


def _with_qparams(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    (node,) = (*args, *kwargs.values())
    signature = wrapped(node)
    if signature is None:
        return None
    return (*signature, *(repr(node.meta.get(key) or {}) for key in _QPARAMS))
