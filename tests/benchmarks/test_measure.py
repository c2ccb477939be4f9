# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The helpers of the benchmarks; what they measure is never asserted."""

import json

import pytest
from arm_ext.benchmarks import partitioner, plot
from arm_ext.benchmarks.measure import exponent, Report, timed


def test_exponent_of_a_power_law():
    records = [{"nodes": n, "cpu_s": 3.0 * n**1.5} for n in (10, 100, 1000)]
    assert exponent(records, "cpu_s") == pytest.approx(1.5)


def test_exponent_leaves_out_what_was_not_measured():
    records = [{"nodes": 10, "cpu_s": 1.0}, {"nodes": 100}]
    assert exponent(records, "cpu_s") is None


def test_timed_keeps_a_result_and_calls_as_often_as_asked():
    calls = []
    run = timed(lambda: calls.append(0) or len(calls), repeat=3)
    assert len(calls) == 3
    assert run.result in (1, 2, 3)
    assert run.cpu >= 0 and run.wall >= 0


def test_report_writes_what_it_printed(tmp_path, capsys):
    report = Report()
    report.add({"nodes": 1})
    report.write(tmp_path / "records.json")
    assert json.loads(capsys.readouterr().out) == {"nodes": 1}
    written = json.loads((tmp_path / "records.json").read_text())
    assert written["records"] == [{"nodes": 1}]


@pytest.mark.parametrize("boundary", ["latest", "fewest-bytes"])
def test_partitioner_benchmark_runs(boundary, tmp_path, capsys):
    path = tmp_path / "records.json"
    sizes = ["--sizes", "60", "120", "--stock-nodes", "60", "--repeat", "1"]
    partitioner.main([*sizes, "--boundary", boundary, "--json", str(path)])
    records = json.loads(path.read_text())["records"]
    assert len(records) == 3 * len(partitioner.FAMILIES)
    assert all(r["partitions"] == r["stock_partitions"] for r in records[::3])


def test_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="the bench extra has matplotlib")
    records = [{"nodes": n, "cpu_s": n, "stock_cpu_s": n**3} for n in (10, 100)]
    for name in ("a.svg", "b.svg"):
        plot.draw(records, "title", str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
