"""Layers: objects with parameters and a `forward`, which operations compute."""
from . import functional
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .containers import LayerDict, LayerList, ParameterList, Sequential
from .layer import Layer, Parameter
from .layers import (
    AvgPool2D,
    BatchNorm1D,
    BatchNorm2D,
    Conv1D,
    Conv2D,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    GELU,
    GroupNorm,
    Identity,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    Linear,
    MaxPool2D,
    MSELoss,
    ReLU,
    RMSNorm,
    Sigmoid,
    Silu,
    Softmax,
    Tanh,
)
