# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What would take an op that was rejected, in words a user can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from arm_ext.operators import Operator, U55, U85, VGF
from arm_ext.targets import Target

# The first pattern that is in any reason gives the remedy: of all that is against an
# op, what has to change before the rest matters.
_REMEDIES = (
    (r"float64", "compute in float32: x.float(), dtype=torch.float32"),
    (
        r"bfloat16|float8|requires \w+ extension",
        "name the extension in the TOSA specification, as the warning says",
    ),
    (r"int64", "use int32, or bound the values (clamp, arange, % n) so that they fit"),
    (r"rank \d+", "reshape to fewer dimensions around the op"),
    (r"symbolic|dynamic", "export with static shapes"),
    (r"cannot be lowered", "report what the tool says; the rest of the model lowers"),
    (
        r"Not included in BaseTOSASupportList",
        "no TOSA op computes it: replace it by ops that are supported, or keep it at "
        "the start or the end of the model, where it splits nothing",
    ),
    (
        r"not marked as quantized|not quantized|requires PRO-FP",
        "quantize it: give the quantizer a config for this op, or replace the op by "
        "one that the quantizer annotates",
    ),
)


def remedies(
    op: str, reasons: Sequence[str], target: Target, operators: Iterable[Operator]
) -> tuple[str, ...]:
    """Return what to do about the reasons for which an op was left on the CPU.

    Args:
        op (str): ``"aten.topk.default"``.
        reasons (Sequence[str]): Of the reject report.
        target (Target): What it was lowered for.
        operators (Iterable[Operator]): What the fixes lower.

    """
    found = [_remedy(reasons)]
    rows = [row for row in operators if op.startswith(f"{row.op}.")]
    here = [row for row in rows if _kind(target) in row.targets]
    found += [f"taken in {', '.join(row.dtypes)}; limits: {row.limits}" for row in here]
    if rows and not here:
        targets = sorted({name for row in rows for name in row.targets})
        found.append(f"{_kind(target)} has no form of it; {', '.join(targets)} have")
    return tuple(dict.fromkeys(text for text in found if text))


def _remedy(reasons: Sequence[str]) -> str | None:
    for pattern, text in _REMEDIES:
        if any(re.search(pattern, reason) for reason in reasons):
            return text
    return None


def _kind(target: Target) -> str:
    if not target.is_ethosu:
        return VGF
    return U85 if "u85" in target.name else U55
