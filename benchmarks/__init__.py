# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Benchmarks: ratios and growth exponents, measured in one run.

Each module is a script of its own and a word of ``arm-ext bench``.

"""
