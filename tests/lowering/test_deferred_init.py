# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A deferred ``__init__`` runs once, and only if somebody looks."""

import copy

import pytest
from arm_ext.lowering import deferred_init


class Base:
    runs = 0

    def __init__(self):
        deferred_init.defer(self, Base.set_up)

    def set_up(self):
        Base.runs += 1
        self.tracer, self.mode = object(), None

    def __getattr__(self, name):
        return deferred_init.read(self, name, ("tracer", "mode"))


@pytest.fixture
def instance():
    Base.runs = 0
    return Base()


def test_runs_once_when_read(instance):
    assert Base.runs == 0
    assert instance.tracer is instance.tracer
    assert instance.mode is None
    assert Base.runs == 1


def test_other_attributes_are_missing_as_ever(instance):
    assert not hasattr(instance, "exported_program")
    with pytest.raises(AttributeError, match="'Base' object has no attribute 'x'"):
        instance.x
    assert Base.runs == 0


def test_what_was_set_since_is_kept(instance):
    instance.mode = "set by a subclass"
    assert instance.tracer and instance.mode == "set by a subclass"


def test_a_copy_has_attributes_of_its_own(instance):
    other = copy.copy(instance)
    assert other.tracer is not instance.tracer
