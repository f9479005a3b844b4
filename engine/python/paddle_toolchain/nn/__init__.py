"""Layers: objects with parameters and a `forward`, which operations compute."""
from . import functional, simple
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .containers import LayerDict, LayerList, ParameterList, Sequential
from .layer import Layer, Parameter
from .layers import (
    AvgPool2D,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
    Bilinear,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    GELU,
    GroupNorm,
    Identity,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    Linear,
    MaxPool2D,
    MSELoss,
    PReLU,
    ReLU,
    RMSNorm,
    Sigmoid,
    Silu,
    Softmax,
    Tanh,
)
from .recurrent import GRU, LSTM, MultiHeadAttention, SimpleRNN, TransformerEncoderLayer

globals().update({name: getattr(simple, name) for name in simple.NAMES})
