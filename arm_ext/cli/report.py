# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext report``: what of a model runs where, and what would take the rest."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

_SIDES = {"patched": (False,), "stock": (True,), "both": (True, False)}


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "report", help="lower a model; say what stays on the CPU, and why"
    )
    parser.add_argument(
        "model",
        help="FILE.py:NAME or MODULE:NAME of a function that returns a module and its "
        "example inputs, or a FILE.pt2",
    )
    parser.add_argument("--target", default="vgf", help="vgf (default), vgf-int, ...")
    parser.add_argument(
        "--quantize",
        nargs="?",
        const="int8",
        metavar="CONFIG",
        help="int8 (default), int8-per-tensor or a16w8",
    )
    parser.add_argument("--side", choices=_SIDES, default="patched")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="one page, no network"
    )
    parser.add_argument(
        "--model-explorer", type=Path, metavar="FILE", help="JSON for Model Explorer"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from arm_ext.cli import executorch_loads

    with executorch_loads():
        from arm_ext.reporting import report
    try:
        model, inputs = load(args.model)
        reports = [
            report(
                model,
                inputs,
                target=args.target,
                quantize=args.quantize,
                stock=stock,
                name=args.model,
            )
            for stock in _SIDES[args.side]
        ]
    except (ValueError, OSError, ImportError, AttributeError) as error:
        print(f"arm-ext report: {error}", file=sys.stderr)
        return 2
    print("\n\n".join(map(str, reports)))
    _write(args, reports)
    return int(any(r.error for r in reports))


def load(model: str) -> tuple[Any, tuple]:
    """Return a module and its inputs, or a program and none.

    Raises:
        ValueError: ``model`` is neither ``FILE.py:NAME``, ``MODULE:NAME`` nor a
            ``.pt2`` file, or its function does not return a module and inputs.

    """
    if model.endswith(".pt2"):
        import torch

        return torch.export.load(model), ()
    where, _, name = model.rpartition(":")
    if not where:
        raise ValueError(f"{model!r} is neither FILE.py:NAME, MODULE:NAME nor a .pt2")
    made = getattr(_import(where), name)()
    if not isinstance(made, tuple) or len(made) != 2:
        raise ValueError(f"{model} must return a module and a tuple of its inputs")
    module, inputs = made
    return module, tuple(inputs)


def _import(where: str) -> Any:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    if not Path(where).is_file():
        raise FileNotFoundError(f"there is no file {where}")
    spec = importlib.util.spec_from_file_location(Path(where).stem, where)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _write(args: argparse.Namespace, reports: list) -> None:
    from arm_ext.reporting.explorer import model_explorer_graphs
    from arm_ext.reporting.page import page

    if args.json:
        args.json.write_text(json.dumps([r.to_json() for r in reports], indent=2))
    if args.html:
        args.html.write_text(page(reports), encoding="utf-8")
    if args.model_explorer:
        args.model_explorer.write_text(json.dumps(model_explorer_graphs(reports[-1])))
