# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Draw CPU seconds against nodes, ours and stock, on logarithmic axes.

    arm-ext bench partition --blocks 50 100 200 400 800 --json partition.json
    arm-ext bench plot partition.json --output docs/partition.svg

Needs matplotlib (``pip install 'executorch-arm-ext[bench]'``).

"""

import argparse
import json

from arm_ext.benchmarks.measure import exponent

SERIES = {
    "stock_cpu_s": ("stock", "#b4513e", "s"),
    "cpu_s": ("arm_ext", "#1f6f8b", "o"),
}


def draw(records: list[dict], title: str, path: str) -> None:
    """Write the plot; the file's suffix chooses the format."""
    import matplotlib

    # The same bytes each time: element ids come from this salt, not from chance.
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "arm_ext"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    for key, (label, colour, marker) in SERIES.items():
        points = [(r["nodes"], r[key]) for r in records if key in r]
        if not points:
            continue
        power = exponent(records, key)
        growth = "" if power is None else f", grows with nodes$^{{{power:.1f}}}$"
        axes.loglog(*zip(*points), marker=marker, color=colour, label=label + growth)
    axes.set(title=title, xlabel="nodes of the graph", ylabel="CPU seconds")
    axes.grid(which="major", color="#dddddd")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", help="what a benchmark wrote with --json")
    parser.add_argument("--title", default="partition() on blocks with a CPU op each")
    parser.add_argument("--output", default="docs/partition.svg")
    args = parser.parse_args(argv)
    with open(args.records, encoding="utf-8") as file:
        records = json.load(file)["records"]
    draw([r for r in records if "nodes" in r], args.title, args.output)


if __name__ == "__main__":
    main()
