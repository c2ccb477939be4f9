# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Estimate the NPU cycles of Conv1d, Mish, Conv1d on Ethos-U, patched and stock.

    arm-ext bench mish
    arm-ext bench mish --channels 16 32 --length 256 --json out.json

The cycles are Vela's own estimate, summed over the delegates of a program; ops left
on the CPU cost more on top, which it does not know. A record has the side, the
activation (SiLU, which stock lowers to a table, is the yardstick), the delegates,
the ops on the CPU and the cycles.

"""

import argparse
import logging

import arm_ext
import torch
from arm_ext.benchmarks.measure import Report
from arm_ext.coverage import coverage
from arm_ext.reporting.vela import estimate
from arm_ext.targets import lower, quantize, TARGETS
from arm_ext.verify import tosa_of
from executorch.exir.lowered_backend_module import LoweredBackendModule

ACTIVATIONS = {"mish": torch.nn.Mish, "silu": torch.nn.SiLU}


def model(activation, channels, length):
    """Return the block of a Diffusion Policy's U-Net and its input."""
    torch.manual_seed(0)
    inner, outer = channels
    layers = (
        torch.nn.Conv1d(inner, outer, 3, padding=1),
        ACTIVATIONS[activation](),
        torch.nn.Conv1d(outer, outer, 3, padding=1),
    )
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, inner, length),)


def measure(side, activation, target, channels, length):
    module, inputs = model(activation, channels, length)
    edge = lower(quantize(module, inputs, target), inputs, target)
    program = edge.exported_program().graph_module
    covered = coverage(edge)
    delegates = [m for m in program.modules() if isinstance(m, LoweredBackendModule)]
    spec = target.compile_spec()
    return {
        "side": side,
        "activation": activation,
        "target": target.name,
        "delegates": covered.delegates,
        "cpu_ops": list(covered.compute_ops),
        "cycles": sum(estimate(tosa_of(d), spec).cycles for d in delegates),
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ethosu = [name for name in TARGETS if name.startswith("ethos-u")]
    parser.add_argument("--target", nargs="+", choices=ethosu, default=ethosu)
    parser.add_argument("--channels", type=int, nargs=2, default=[16, 32])
    parser.add_argument("--length", type=int, default=256)
    Report.add_argument(parser)
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    report = Report()
    for name in args.target:
        shape = (TARGETS[name], args.channels, args.length)
        with arm_ext.patched(only=()):
            report.add(measure("stock", "silu", *shape))
            report.add(measure("stock", "mish", *shape))
        with arm_ext.patched():
            report.add(measure("patched", "mish", *shape))
    report.write(args.json)


if __name__ == "__main__":
    main()
