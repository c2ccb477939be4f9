# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Partitioning in time linear in the graph. Needs torch alone."""

from .capability import UnionFindPartitioner

__all__ = ["UnionFindPartitioner"]
