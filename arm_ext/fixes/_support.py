# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Put checks before and behind the partitioner's own support chain, and ops into it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import chain, OperatorSupportBase

MakeCheck = Callable[
    [TosaSpecification, ExportedProgram, WhyNoPartitionReporter], OperatorSupportBase
]

Accepts = Callable[[Node], bool]
MakeLastCheck = Callable[
    [TOSAPartitioner, ExportedProgram, WhyNoPartitionReporter, Accepts],
    OperatorSupportBase,
]

_SUPPORT = "executorch.backends.arm.operator_support"


def accept_ops(patcher: Patcher, ops: Sequence[Any]) -> None:
    """Add edge ops to the lists of what the profiles of TOSA have."""
    for profile in ("INT", "MIXED_INT", "FP"):
        patcher.extend(
            f"{_SUPPORT}.tosa_profile_supported_op_lists:"
            f"TOSA_PRO_{profile}_SupportList",
            ops,
        )


def check_first(patcher: Patcher, make: MakeCheck) -> None:
    """Have the check that ``make`` returns asked before all stock checks.

    It can only reject; its reason is then the one that is reported.

    """

    def factory(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        return chain(_make(*args, **kwargs), wrapped(*args, **kwargs))

    def _make(
        tosa_spec: TosaSpecification,
        exported_program: ExportedProgram,
        reporter: WhyNoPartitionReporter,
        *args: Any,
        **kwargs: Any,
    ) -> OperatorSupportBase:
        return make(tosa_spec, exported_program, reporter)

    patcher.wrap(
        f"{_SUPPORT}.tosa_supported_operators:tosa_support_factory",
        factory,
        parameters=(
            "tosa_spec",
            "exported_program",
            "reporter",
            "additional_checks",
            "additional_positive_checks",
        ),
    )


def check_last(patcher: Patcher, make: MakeLastCheck) -> None:
    """Have the check that ``make`` returns asked behind all others.

    ``make`` is given the partitioner, the program, the reporter, and whether the
    checks before it accept a node.

    """

    def create(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        support = wrapped(*args, **kwargs)
        program, reporter = inspect.signature(wrapped).bind(*args, **kwargs).args
        check = make(
            instance,
            program,
            reporter,
            lambda node: support.is_node_supported({}, node),
        )
        return chain(support, check)

    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:"
        "TOSAPartitioner._create_operator_support",
        create,
        parameters=("self", "containing_program", "reporter"),
    )
