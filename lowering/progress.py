# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A progress bar over the partitions of a long lowering."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress

# With fewer partitions a lowering is over before a bar says anything.
MANY = 20

_Result = TypeVar("_Result")


class _Counted(list):
    """A list that tells when each of its elements was dealt with."""

    def __init__(self, elements: list, advance: Callable[[], None]) -> None:
        super().__init__(elements)
        self._advance = advance

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            yield element
            self._advance()


def show(
    programs: Mapping[str, list], lower: Callable[[Mapping[str, list]], _Result]
) -> _Result:
    """Return ``lower(programs)``, with a bar that moves as it iterates over them.

    The bar goes to stderr and is gone afterwards. There is none if stderr is not a
    terminal or the programs are few.

    Args:
        programs (Mapping[str, list]): The partitions' programs by method.
        lower (Callable): Lowers them; each list is a new one.

    """
    total = sum(map(len, programs.values()))
    if total < MANY or not sys.stderr.isatty():
        return lower(programs)
    with Progress(
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("Lowering partitions", total=total)
        return lower(
            {
                method: _Counted(elements, lambda: progress.advance(task))
                for method, elements in programs.items()
            }
        )
