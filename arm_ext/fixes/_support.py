# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Put a check in front of the partitioner's own support chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import ExportedProgram
from torch.fx.passes.operator_support import chain, OperatorSupportBase

MakeCheck = Callable[
    [TosaSpecification, ExportedProgram, WhyNoPartitionReporter], OperatorSupportBase
]


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
        "executorch.backends.arm.operator_support.tosa_supported_operators:"
        "tosa_support_factory",
        factory,
        parameters=(
            "tosa_spec",
            "exported_program",
            "reporter",
            "additional_checks",
            "additional_positive_checks",
        ),
    )
