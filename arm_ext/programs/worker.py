# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Runs cases in a process of its own and streams a JSON line each.

``python -m arm_ext.programs.worker`` reads a JSON list of case names from stdin.
It writes ``{"start": name}`` before a case and ``{"case": name, "outcome": {...}}``
behind it, so that the reader knows which case a crash belongs to. Whatever else
executorch, Vela or the converter print goes to stderr.

"""

import dataclasses
import json
import os
import sys
from typing import Any, TextIO


def main() -> None:
    """Run the cases that stdin names."""
    names = json.load(sys.stdin)
    out = _claim_stdout()
    _write(out, {"fixes": _fixes()})
    # Imported late: executorch takes seconds and talks while it loads.
    from arm_ext.programs import cases, POLICIES, PROGRAMS
    from arm_ext.programs.runner import run

    by_name = {case.name: case for case in cases(PROGRAMS + POLICIES)}
    for name in names:
        _write(out, {"start": name})
        outcome = run(by_name[name])
        _write(out, {"case": name, "outcome": dataclasses.asdict(outcome)})


def _claim_stdout() -> TextIO:
    """Return stdout for our lines alone; file descriptor 1 becomes stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def _fixes() -> list[dict[str, str]]:
    import arm_ext

    return [
        {"fix": row.fix, "state": str(row.state), "reason": row.reason}
        for row in arm_ext.status()
    ]


def _write(out: TextIO, record: dict[str, Any]) -> None:
    out.write(json.dumps(record) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
