# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Tables, so that whatever prints or writes one does it alike."""

import io
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table


def render(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as text, wrapped to the width of the terminal."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for position, title in enumerate(header):
        # The first column names the row; a folded name could not be searched for.
        table.add_column(title, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*row)
    text = io.StringIO()
    console = Console(file=text, width=max(Console().width, 100), markup=False)
    console.print(table)
    return text.getvalue().rstrip()


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown, a line for each row."""
    lines = (header, ["---"] * len(header), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
