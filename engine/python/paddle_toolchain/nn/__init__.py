"""Layers: objects with parameters and a `forward`, which operations compute."""
from . import functional, simple
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .containers import LayerDict, LayerList, ParameterList, Sequential
from .layer import Layer, Parameter
from .layers import (
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
    Dropout,
    Embedding,
    GroupNorm,
    Identity,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    LayerNorm,
    Linear,
    PReLU,
    RMSNorm,
)
from .recurrent import GRU, LSTM, MultiHeadAttention, SimpleRNN, TransformerEncoderLayer

globals().update({name: getattr(simple, name) for name in simple.NAMES})
