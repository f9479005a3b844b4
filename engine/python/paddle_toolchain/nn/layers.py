"""Layers of operations. Initial weights are those of the model language: Xavier's uniform numbers."""
import math

from .. import _paddle
from .layer import Layer, Parameter


def _function(name):
    return _paddle.function(name)


def _pair(value):
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


def _xavier(shape, fan_in, fan_out):
    limit = math.sqrt(6 / (fan_in + fan_out))
    return Parameter(_function("uniform")(shape, min=-limit, max=limit))


def _filled(shape, value):
    return Parameter(_function("full")(shape, float(value), dtype="float32"))


class _Activation(Layer):
    """Layers of one operation on one tensor."""

    operation = ""

    def __init__(self, **attributes):
        super().__init__()
        self._attributes = attributes
        self._apply = _function(self.operation)

    def forward(self, x):
        return self._apply(x, **self._attributes)

    def extra_repr(self):
        return ", ".join(f"{name}={value}" for name, value in self._attributes.items())


class ReLU(_Activation):
    operation = "relu"


class Sigmoid(_Activation):
    operation = "sigmoid"


class Tanh(_Activation):
    operation = "tanh"


class Silu(_Activation):
    operation = "silu"


class GELU(_Activation):
    operation = "gelu"

    def __init__(self, approximate=False):
        super().__init__(approximate=approximate)


class LeakyReLU(_Activation):
    operation = "leaky_relu"

    def __init__(self, negative_slope=0.01):
        super().__init__(negative_slope=negative_slope)


class Softmax(_Activation):
    operation = "softmax"

    def __init__(self, axis=-1):
        super().__init__(axis=axis)


class Flatten(_Activation):
    """Axes start_axis to stop_axis made one."""

    operation = "flatten"

    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__(start_axis=start_axis, stop_axis=stop_axis)


class MaxPool2D(_Activation):
    """The largest element of each window."""

    operation = "max_pool2d"

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False):
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode)

    def forward(self, x):
        out = super().forward(x)
        return out[0] if isinstance(out, tuple) else out


class AvgPool2D(_Activation):
    """The mean of each window."""

    operation = "avg_pool2d"

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False):
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode)


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


class _Loss(Layer):
    operation = ""

    def __init__(self, reduction="mean", **attributes):
        super().__init__()
        self._attributes = {"reduction": reduction, **attributes}

    def forward(self, input, label):
        return _function(self.operation)(input, label, **self._attributes)


class CrossEntropyLoss(_Loss):
    operation = "cross_entropy"

    def __init__(self, ignore_index=-100, reduction="mean", soft_label=False, axis=-1, label_smoothing=0.0):
        super().__init__(reduction, ignore_index=ignore_index, soft_label=soft_label, axis=axis,
                         label_smoothing=label_smoothing)


class MSELoss(_Loss):
    operation = "mse_loss"


class L1Loss(_Loss):
    operation = "l1_loss"
