# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a fix is, and the ordered table of them.

A fix is one module in ``arm_ext/fixes`` with two functions:

``install(patcher) -> None``
    Only calls ``patcher.set``, ``wrap``, ``extend`` and ``register``.
``needs(installed) -> Need``
    Probes the behaviour or the shape of what it is about to touch and returns
    :func:`apply`, :func:`already_fixed` or :func:`cannot`. A fix whose gap is in
    every release, and that does no harm where it is not, has none.

Fix modules import executorch at their top, so they are imported only when a
fix is about to be applied; a symbol that moved then shows as the reason of a
skipped fix.

"""

import importlib
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

from packaging.version import Version


class State(str, Enum):
    """What became of a fix."""

    APPLIED = "applied"
    UPSTREAM = "already fixed upstream"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    OFF = "off"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Need:
    """Whether the installed executorch needs a fix, and why not if it does not."""

    state: State
    reason: str = ""


def apply() -> Need:
    """The gap is there and the fix fits."""
    return Need(State.APPLIED)


def already_fixed(reason: str) -> Need:
    """The installed executorch closes the gap itself."""
    return Need(State.UPSTREAM, reason)


def cannot(reason: str) -> Need:
    """The fix does not fit the installed executorch; ``reason`` names the symbol."""
    return Need(State.SKIPPED, reason)


@dataclass(frozen=True)
class Installed:
    """Versions of the packages that fixes touch, read from their metadata."""

    executorch: Version
    torch: Version


@dataclass(frozen=True)
class Fix:
    """One row of the table.

    Attributes:
        name (str): Stable kebab-case name; users switch a fix off by it.
        gap (str): What fails without the fix, in a few words.
        lenient (bool): Whether it goes on where executorch raises; strict mode leaves
            such a fix out.

    """

    name: str
    gap: str
    lenient: bool = False

    def load(self) -> ModuleType:
        """Import and return the module that implements the fix."""
        return importlib.import_module(f"arm_ext.fixes.{self.name.replace('-', '_')}")


# Applied in this order and undone in the reverse one.
TABLE = (
    Fix("model-converter", "the model converter does not start on an older glibc"),
    Fix("guards-module", "prepare_pt2e fails on a module with guards"),
    Fix("annotation-symint", "quantizing a model with dynamic shapes fails"),
    Fix("preserved-op-consistency", "an op kept whole and then left on the CPU"),
    Fix("mish", "mish stays in float on the CPU"),
    Fix("conv-transpose1d", "ConvTranspose1d stays on the CPU"),
    Fix("int64-constant-index", "an int64 constant index stays on the CPU or throws"),
    Fix("argmin-argmax", "argmin and most of argmax stay on the CPU"),
    Fix("topk", "topk, sort and kthvalue stay on the CPU"),
    Fix("isnan-isinf-fmod", "isnan, isinf and fmod stay on the CPU"),
    Fix("roll-and-triangle", "roll and triu stay on the CPU"),
    Fix("slice-writes", "a tensor filled in slices is quantized wrong, or on the CPU"),
    Fix("where-number", "where with a number stays on the CPU"),
    Fix("views-and-joins", "hstack, mT, narrow and others are not quantized"),
    Fix(
        "strided-norm", "quantizing a view behind a norm of a transposed tensor throws"
    ),
    Fix("float64-and-constants", "constant pow, masks and float64 stay on the CPU"),
    Fix("int-to-float-cast", "an integer that is quantized splits the graph"),
    Fix("int64-arithmetic", "int64 arithmetic stays on the CPU"),
    Fix("int64-extremum", "max and min of int64 along a dimension stay on the CPU"),
    Fix(
        "flatten-gather", "gather of rank 4, or along another dimension, is on the CPU"
    ),
    Fix("no-grad-regions", "what a model does under no_grad is not quantized"),
    Fix("float-to-int-cast", "a cast to int8 rounds, where PyTorch truncates"),
    Fix("float-accuracy", "asinh, log1p, log_softmax and round go wrong in float"),
    Fix("neg-scale", "a quantized neg beside cat is scaled wrong"),
    Fix("duplicate-qparams", "equal ops that are quantized apart become one"),
    Fix("spec-drops-dtype", "the TOSA spec drops a dtype in silence"),
    Fix("reject-report", "why an op stays on the CPU is said nowhere"),
    Fix("delegation-share", "the delegation summary has no percentage"),
    Fix("error-messages", "an error names no pass, a bad target ends Python"),
    Fix("unquantized-model", "a float model lowers to nothing on an integer target"),
    Fix("ethosu-sram", "an Ethos-U delegate needs more SRAM than there is"),
    Fix("partitioner", "partition() takes minutes on a large graph"),
    Fix("delegate-boundary", "a delegate declares another dtype than its TOSA graph"),
    Fix("multimethod", "lowering twice, or several methods, fails or goes wrong"),
    Fix("lowering-fallback", "one node that cannot be lowered ends it", lenient=True),
    Fix("fast-lowering", "lowering repeats work that changes nothing"),
)
