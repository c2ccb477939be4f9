# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The inputs and outputs that LeRobot's configurations declare."""

from typing import Any

from arm_ext.programs.policies import _lerobot


def features(image: int, state: int, action: int) -> dict[str, Any]:
    """Return the features of one square RGB camera, a state and an action.

    Args:
        image (int): Height and width of the image, in pixels.
        state (int): Length of the state vector.
        action (int): Length of the action vector.

    """
    types = _lerobot.load("configs.types")
    kind, feature = types.FeatureType, types.PolicyFeature
    return {
        "device": "cpu",
        "input_features": {
            "observation.image": feature(kind.VISUAL, (3, image, image)),
            "observation.state": feature(kind.STATE, (state,)),
        },
        "output_features": {"action": feature(kind.ACTION, (action,))},
    }
