# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The delegation summary counts nodes and gives no share.

The gap
    ``get_delegation_info(...).get_summary()`` counts delegated nodes and others; what
    share of the model that is, is left to the reader, and Q/DQ and ``getitem`` count
    as work.
What is done
    The summary ends in one more line: the share of the nodes that compute something.

"""

from __future__ import annotations

from typing import Any

from arm_ext import fix
from arm_ext.patcher import Patcher
from executorch.devtools.backend_debug.delegation_info import DelegationInfo

_SUMMARY = (
    "executorch.devtools.backend_debug.delegation_info:DelegationInfo.get_summary"
)
# What a delegate boundary needs computes nothing.
_BOUNDARY = ("getitem", "quantize_per", "executorch_call_delegate", "alloc")


def needs(installed: fix.Installed) -> fix.Need:
    """Apply if a summary holds no percentage."""
    del installed
    if "%" in DelegationInfo(1, 1, 1, {}).get_summary():
        return fix.already_fixed("the summary has percentages")
    return fix.apply()


def install(patcher: Patcher) -> None:
    patcher.wrap(_SUMMARY, _summary, parameters=("self",))


def _summary(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> str:
    return wrapped(*args, **kwargs) + _share(instance)


def _share(info: DelegationInfo) -> str:
    ops = [
        breakdown
        for name, breakdown in info.delegation_by_operator.items()
        if not any(part in name for part in _BOUNDARY)
    ]
    delegated = sum(op.delegated for op in ops)
    total = delegated + sum(op.non_delegated for op in ops)
    if not total:
        return "Delegated compute nodes: none to delegate\n"
    share = f"{delegated / total:.1%}"
    return f"Delegated compute nodes: {share} ({delegated} of {total})\n"
