"""Layers with parameters or more than one operation; simple.py has the others.

Initial weights are those of the model language: Xavier's uniform numbers.
"""
import math

from .. import _paddle
from .layer import Layer, Parameter


def _function(name):
    return _paddle.function(name)


def _xavier(shape, fan_in, fan_out):
    limit = math.sqrt(6 / (fan_in + fan_out))
    return Parameter(_function("uniform")(shape, min=-limit, max=limit))


def _filled(shape, value):
    return Parameter(_function("full")(shape, float(value), dtype="float32"))


class Identity(Layer):
    """Its input."""

    def forward(self, x):
        return x


class Dropout(Layer):
    """Drops elements with probability p in training."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return _function("dropout")(x, self.p, training=True) if self.training and self.p else x

    def extra_repr(self):
        return f"p={self.p}"


class Linear(Layer):
    """x @ weight + bias; weight is [in_features, out_features]."""

    def __init__(self, in_features, out_features, bias_attr=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _xavier([in_features, out_features], in_features, out_features)
        self.bias = None if bias_attr is False else _filled([out_features], 0)
        self._apply = _function("linear")

    def forward(self, x):
        return self._apply(x, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}"


class _Convolution(Layer):
    operation, axes = "", 0

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 bias_attr=None):
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise _paddle.UsageError(f"{type(self).__name__}: {in_channels} and {out_channels} channels are no "
                                     f"multiples of {groups} groups")
        window = [kernel_size] * self.axes if isinstance(kernel_size, int) else list(kernel_size)
        self._said = f"{in_channels}, {out_channels}, kernel_size={window}"
        self._attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        area = math.prod(window)
        shape = [out_channels, in_channels // groups, *window]
        self.weight = _xavier(shape, in_channels // groups * area, out_channels * area)
        self.bias = None if bias_attr is False else _filled([out_channels], 0)
        self._apply = _function(self.operation)

    def forward(self, x):
        return self._apply(x, self.weight, self.bias, **self._attributes)

    def extra_repr(self):
        return self._said


class Conv1D(_Convolution):
    """1-D convolution; weight is [out, in / groups, length]."""

    operation, axes = "conv1d", 1


class Conv2D(_Convolution):
    """2-D convolution; weight is [out, in / groups, rows, columns]."""

    operation, axes = "conv2d", 2


class Conv3D(_Convolution):
    """3-D convolution; weight is [out, in / groups, depth, rows, columns]."""

    operation, axes = "conv3d", 3


class _Transposed(Layer):
    operation, axes = "", 0

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
                 bias_attr=None):
        super().__init__()
        window = [kernel_size] * self.axes if isinstance(kernel_size, int) else list(kernel_size)
        self._said = f"{in_channels}, {out_channels}, kernel_size={window}"
        self._attributes = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation,
                            "groups": groups}
        area = math.prod(window)
        self.weight = _xavier([in_channels, out_channels // groups, *window], in_channels * area, out_channels // groups * area)
        self.bias = None if bias_attr is False else _filled([out_channels], 0)

    def forward(self, x):
        return _function(self.operation)(x, self.weight, self.bias, **self._attributes)

    def extra_repr(self):
        return self._said


class Conv1DTranspose(_Transposed):
    """Transposed 1-D convolution; weight is [in, out / groups, length]."""

    operation, axes = "conv1d_transpose", 1


class Conv2DTranspose(_Transposed):
    """Transposed 2-D convolution; weight is [in, out / groups, rows, columns]."""

    operation, axes = "conv2d_transpose", 2


class Conv3DTranspose(_Transposed):
    """Transposed 3-D convolution; weight is [in, out / groups, depth, rows, columns]."""

    operation, axes = "conv3d_transpose", 3


class PReLU(Layer):
    """x where positive, else weight * x, with one weight or one for each channel."""

    def __init__(self, num_parameters=1, init=0.25, data_format="NCHW"):
        super().__init__()
        self.data_format = data_format
        self.weight = _filled([num_parameters], init)

    def forward(self, x):
        return _function("prelu")(x, self.weight, data_format=self.data_format)


class Bilinear(Layer):
    """x1 @ weight @ x2 for each output, plus the bias."""

    def __init__(self, in1_features, in2_features, out_features, bias_attr=None):
        super().__init__()
        self.weight = _xavier([out_features, in1_features, in2_features], in1_features * in2_features, out_features)
        self.bias = None if bias_attr is False else _filled([1, out_features], 0)

    def forward(self, x1, x2):
        return _function("bilinear")(x1, x2, self.weight, self.bias)


class Embedding(Layer):
    """Rows of weight at the indices x."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None):
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = _xavier([num_embeddings, embedding_dim], num_embeddings, embedding_dim)

    def forward(self, x):
        return _function("embedding")(x, self.weight, padding_idx=self.padding_idx)


class LayerNorm(Layer):
    """x over its last axes, to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, normalized_shape, epsilon=1e-5):
        super().__init__()
        self.shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.epsilon = epsilon
        self.weight, self.bias = _filled(self.shape, 1), _filled(self.shape, 0)

    def forward(self, x):
        return _function("layer_norm")(x, self.shape, self.weight, self.bias, self.epsilon)


class RMSNorm(Layer):
    """x over the root of the mean of its squares over its last axes, then scaled."""

    def __init__(self, normalized_shape, epsilon=1e-5):
        super().__init__()
        self.shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.epsilon = epsilon
        self.weight = _filled(self.shape, 1)

    def forward(self, x):
        return _function("rms_norm")(x, self.shape, self.weight, self.epsilon)


class GroupNorm(Layer):
    """Groups of channels of each sample to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, num_groups, num_channels, epsilon=1e-5):
        super().__init__()
        self.num_groups, self.epsilon = num_groups, epsilon
        self.weight, self.bias = _filled([num_channels], 1), _filled([num_channels], 0)

    def forward(self, x):
        return _function("group_norm")(x, self.num_groups, self.epsilon, self.weight, self.bias)


class _BatchNorm(Layer):
    def __init__(self, num_features, momentum=0.9, epsilon=1e-5):
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.weight, self.bias = _filled([num_features], 1), _filled([num_features], 0)
        self.register_buffer("running_mean", _paddle.to_tensor([0.0] * num_features))
        self.register_buffer("running_var", _paddle.to_tensor([1.0] * num_features))

    def forward(self, x):
        out, mean, variance, *_ = _paddle.call_all(
            "batch_norm", x, self.running_mean, self.running_var, self.weight, self.bias, training=self.training,
            momentum=self.momentum, epsilon=self.epsilon, data_format=self.data_format)
        if self.training:
            self.running_mean.set_value(mean.detach())
            self.running_var.set_value(variance.detach())
        return out


class BatchNorm1D(_BatchNorm):
    """Features of a batch to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NC"


class BatchNorm2D(_BatchNorm):
    """Channels of a batch to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NCHW"


class BatchNorm3D(_BatchNorm):
    """Channels of a batch to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NCDHW"


class _InstanceNorm(Layer):
    data_format = ""

    def __init__(self, num_features, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.weight, self.bias = _filled([num_features], 1), _filled([num_features], 0)

    def forward(self, x):
        return _function("instance_norm")(x, weight=self.weight, bias=self.bias, eps=self.epsilon, data_format=self.data_format)


class InstanceNorm1D(_InstanceNorm):
    """x per sample and channel, to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NCL"


class InstanceNorm2D(_InstanceNorm):
    """x per sample and channel, to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NCHW"


class InstanceNorm3D(_InstanceNorm):
    """x per sample and channel, to mean 0 and variance 1, then scaled and shifted."""

    data_format = "NCDHW"
