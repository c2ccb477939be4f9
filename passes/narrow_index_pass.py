# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from .narrow_int64_pass import NarrowInt64Pass


class NarrowIndexPass(NarrowInt64Pass):
    """Carry the index that an op computes in int32 as far as it is only moved.

    ``argmax``, ``topk`` and the like return int64, TOSA's index is an int32. This is
    ``NarrowInt64Pass`` without arithmetic: the int32 goes past what only moves
    elements, into ops that read an index and into casts. What is left of the int64 is
    one cast in front of an op on the CPU or of the output.

    Input graph::

        x -> argmax -> i: int64[N] -> unsqueeze_copy(1) -> gather(t, 1, .)
                                   -> output

    Output graph::

        x -> argmax -> i: int64[N] -> cast(int32) -> i32
        i32 -> unsqueeze_copy(1) -> gather(t, 1, .)
        i32 -> cast(int64) -> output

    A source that the partitioner does not take, or whose dimension has more places
    than int32 can count, is left as it was; at any other node the cast back stays in
    front.

    ``topk`` and the like are split in two ops, of which one gives the values and one
    the index; their lowering computes both at once.

    """

    arithmetic = False
