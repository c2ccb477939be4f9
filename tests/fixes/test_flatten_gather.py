# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""gather of other ranks and dimensions than TOSA's: one delegate, bit-exact."""

import arm_ext
import pytest
import torch
from arm_ext.targets import TARGETS
from lowered import Call, lower_and_run, payload

FIX = "flatten-gather"
FP, VGF, U85 = (TARGETS[n] for n in ("vgf-fp", "vgf", "ethos-u85-256"))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def codebook_rows(book, scores):
    """Rows of two codebooks, picked as VQ-BeT does."""
    code = scores.argmax(-1)[:, :, None, None].expand(2, 7, 1, 16)
    return book[:, None].expand(2, 7, 8, 16).gather(2, code).sum(2)


def others(book, scores):
    code = scores.argmax(-1)
    return (
        book[0, 0].gather(0, code[0]),
        book.gather(-1, code.expand(2, 7)[:, None].expand(2, 8, 7)),
        book.gather(0, (code[:1, :1, None] > 3).long().expand(1, 8, 16)),
    )


class Codebooks(torch.nn.Module):
    def __init__(self, books):
        super().__init__()
        self.register_buffer("weight", books)


ROWS = randn(2, 8, 16), randn(2, 7, 8)


@pytest.mark.parametrize("function", [codebook_rows, others])
def test_float_is_one_delegate(function):
    result = lower_and_run(Call(function), ROWS, VGF)
    assert result.one_delegate and result.error() == 0.0


def test_quantized_is_one_delegate():
    result = lower_and_run(Call(codebook_rows), ROWS, U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(codebook_rows), ROWS, U85, "int8")
    assert "aten.gather.default" in stock.covered.compute_ops


def from_codebook(book, scores):
    """Rows and elements of a codebook that is a constant."""
    code = scores.argmax(-1)
    return book.gather(1, code[:, :, None].expand(2, 7, 16)) * 2, book[:, 0].gather(
        1, code
    )


@pytest.mark.parametrize("target", ["vgf-int", "ethos-u85-256"])
def test_quantized_constant_is_one_delegate(target):
    (book, scores), target = ROWS, TARGETS[target]
    model = Call(lambda books, x: from_codebook(books.weight, x), Codebooks(book))
    result = lower_and_run(model, (scores,), target, "int8")
    assert result.one_delegate and result.error() == 0.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(model, (scores,), target, "int8")
    assert "aten.gather.default" in stock.covered.compute_ops


def test_smaller_index_stays_with_a_reason():
    def model(book, scores):
        return book.gather(2, scores.argmax(-1)[:, :, None])

    result = lower_and_run(Call(model), ROWS, FP)
    assert "aten.gather.default" in result.covered.compute_ops
    assert result.error() == 0.0 and "unsupported dim/rank" in result.reasons()


def test_rank_three_is_left_to_the_backend():
    def model(x):
        return x.gather(1, x.argmax(1, keepdim=True).expand(2, 3, 16))

    with arm_ext.patched(disable=[FIX]):
        without = payload(Call(model), (ROWS[0],), VGF)
    assert payload(Call(model), (ROWS[0],), VGF) == without
