# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""ACT, the Action Chunking Transformer."""

import torch
from arm_ext.programs._program import Model, Policy
from arm_ext.programs.policies import _lerobot
from arm_ext.programs.policies._features import features

ACT = Policy("act", "ACT")


@ACT.program("vgf", "ethos-u85-256")
def whole_model():
    """Image and joint state to a chunk of actions."""
    act = _lerobot.load("policies.act.modeling_act")
    config = act.ACTConfig(
        **features(image=64, state=6, action=6),
        chunk_size=8,
        n_action_steps=8,
        dim_model=32,
        n_heads=4,
        dim_feedforward=64,
        n_encoder_layers=2,
        pretrained_backbone_weights=None,
    )

    def forward(module, image, state):
        batch = {act.OBS_IMAGES: [image], act.OBS_STATE: state}
        return module.layers[0](batch)[0]

    model = Model(forward, act.ACT(config))
    return model, (torch.rand(1, 3, 64, 64), torch.randn(1, 6))
