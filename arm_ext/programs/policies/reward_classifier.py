# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The reward classifier: images of two cameras to the probability of success."""

from unittest import mock

import torch
from arm_ext.programs._program import Model, Policy
from arm_ext.programs.policies import _lerobot
from arm_ext.programs.policies._features import features

REWARD = Policy("reward-classifier", "Reward classifier")


@REWARD.program("vgf", "ethos-u85-256")
def predict():
    """Images of two cameras to a probability."""
    classifier = _lerobot.load("policies.sac.reward_model.modeling_classifier")
    types = _lerobot.load("configs.types")
    camera = types.PolicyFeature(types.FeatureType.VISUAL, (3, 128, 128))
    cameras = {f"observation.image.{side}": camera for side in ("front", "wrist")}
    config = classifier.RewardClassifierConfig(
        input_features=cameras,
        output_features=features(128, 1, 1)["output_features"],
        hidden_dim=32,
        latent_dim=32,
        image_embedding_pooling_dim=4,
    )
    with mock.patch("transformers.AutoModel.from_pretrained", _resnet10):
        model = classifier.Classifier(config)

    def forward(module, front, wrist):
        return module.layers[0].predict([front, wrist]).probabilities

    image = torch.rand(2, 1, 3, 128, 128)
    return Model(forward, model), (image[0].clone(), image[1].clone())


def _resnet10(*_: object, **__: object) -> torch.nn.Module:
    """Return the encoder that the configuration names, small and untrained."""
    from transformers import ResNetConfig, ResNetModel

    return ResNetModel(
        ResNetConfig(
            embedding_size=16,
            hidden_sizes=[16, 32, 32, 64],
            depths=[1, 1, 1, 1],
            layer_type="basic",
        )
    )
