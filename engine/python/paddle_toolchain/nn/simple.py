"""Layers of one operation without parameters: activations, pooling, losses and others."""
import inspect

from .. import _paddle
from .layer import Layer


class OperationLayer(Layer):
    """Applies `operation` to its inputs, with the attributes that it was made with."""

    operation = ""
    attributes = {}  # names and defaults, in the order of positional arguments
    depends_on_mode = False  # whether the operation has a parameter `training`
    gives_first = False  # of several results

    def __init__(self, *values, **named):
        super().__init__()
        bound = self.__signature__.bind(*values, **named)
        bound.apply_defaults()
        self._attributes = dict(bound.arguments)
        self._apply = _paddle.function(self.operation)

    def forward(self, *inputs):
        """The result of the operation."""
        if self.depends_on_mode:
            return self._apply(*inputs, **self._attributes, training=self.training)
        out = self._apply(*inputs, **self._attributes)
        return out[0] if self.gives_first else out

    def extra_repr(self):
        return ", ".join(f"{name}={value}" for name, value in self._attributes.items())


_REQUIRED = inspect.Parameter.empty


def _layer(name, operation, doc, depends_on_mode=False, gives_first=False, **attributes):
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
                  for each, default in attributes.items()]
    content = {"__doc__": doc, "__module__": __name__, "operation": operation, "attributes": attributes,
               "depends_on_mode": depends_on_mode, "gives_first": gives_first, "__signature__": inspect.Signature(parameters)}
    globals()[name] = type(name, (OperationLayer,), content)
    return name


# Activations.
ACTIVATIONS = [
    _layer("CELU", "celu", "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))", alpha=1.0),
    _layer("ELU", "elu", "x where positive, else alpha * (exp(x) - 1)", alpha=1.0),
    _layer("GELU", "gelu", "x times the normal distribution's probability of less than x", approximate=False),
    _layer("GLU", "glu", "One half of an axis times the sigmoid of the other one", axis=-1),
    _layer("Hardshrink", "hardshrink", "x where its size is above the threshold, else 0", threshold=0.5),
    _layer("Hardsigmoid", "hardsigmoid", "A sigmoid of three lines"),
    _layer("Hardswish", "hardswish", "x * relu6(x + 3) / 6"),
    _layer("Hardtanh", "hardtanh", "x between min and max", min=-1.0, max=1.0),
    _layer("LeakyReLU", "leaky_relu", "x where positive, else negative_slope * x", negative_slope=0.01),
    _layer("LogSigmoid", "log_sigmoid", "The logarithm of the sigmoid"),
    _layer("LogSoftmax", "log_softmax", "The logarithm of softmax along an axis", axis=-1),
    _layer("Maxout", "maxout", "The largest of each group of channels", groups=_REQUIRED, axis=1),
    _layer("Mish", "mish", "x * tanh(softplus(x))"),
    _layer("RReLU", "rrelu", "Leaky ReLU with random slopes in training", True, lower=0.125, upper=1 / 3),
    _layer("ReLU", "relu", "x where positive, else 0"),
    _layer("ReLU6", "relu6", "x between 0 and 6"),
    _layer("SELU", "selu", "ELU, scaled so that activations keep mean 0 and variance 1"),
    _layer("Sigmoid", "sigmoid", "1 / (1 + exp(-x))"),
    _layer("Silu", "silu", "x * sigmoid(x)"),
    _layer("Softmax", "softmax", "exp(x) over its sum along an axis", axis=-1),
    _layer("Softplus", "softplus", "log(1 + exp(beta * x)) / beta", beta=1.0, threshold=20.0),
    _layer("Softshrink", "softshrink", "x moved toward 0 by the threshold", threshold=0.5),
    _layer("Softsign", "softsign", "x / (1 + |x|)"),
    _layer("Swish", "silu", "x * sigmoid(x)"),
    _layer("Tanh", "tanh", "The hyperbolic tangent"),
    _layer("Tanhshrink", "tanhshrink", "x - tanh(x)"),
    _layer("ThresholdedReLU", "thresholded_relu", "x where it is above the threshold, else 0", threshold=1.0),
]

# Dropout, shapes and distances.
OTHERS = [
    _layer("AlphaDropout", "alpha_dropout", "Dropout that keeps mean and variance of SELU", True, p=0.5),
    _layer("ChannelShuffle", "channel_shuffle", "Channels of all groups in turn", groups=_REQUIRED),
    _layer("CosineSimilarity", "cosine_similarity", "The cosine of the angle of two tensors", axis=1, eps=1e-8),
    _layer("Dropout2D", "dropout2d", "Drops channels in training", True, p=0.5),
    _layer("Flatten", "flatten", "Axes start_axis to stop_axis made one", start_axis=1, stop_axis=-1),
    _layer("Fold", "fold", "Sums windows into an image", output_sizes=_REQUIRED, kernel_sizes=_REQUIRED, strides=1, paddings=0,
           dilations=1),
    _layer("PairwiseDistance", "pairwise_distance", "The p-norm of the difference of rows", p=2.0, epsilon=1e-6, keepdim=False),
    _layer("PixelShuffle", "pixel_shuffle", "Channels as finer pixels", upscale_factor=_REQUIRED),
    _layer("PixelUnshuffle", "pixel_unshuffle", "Pixels as more channels", downscale_factor=_REQUIRED),
    _layer("Unfold", "unfold", "The windows of an image as columns", kernel_sizes=_REQUIRED, strides=1, paddings=0, dilations=1),
    _layer("Upsample", "interpolate", "Images of another size", size=None, scale_factor=None, mode="nearest", align_corners=False),
]

# Pooling.
POOLING = [
    *(_layer(f"AdaptiveAvgPool{n}D", f"adaptive_avg_pool{n}d", "Means of windows that divide each plane", output_size=_REQUIRED)
      for n in (1, 2, 3)),
    *(_layer(f"AdaptiveMaxPool{n}D", f"adaptive_max_pool{n}d", "The largest of windows that divide each plane",
             output_size=_REQUIRED) for n in (1, 2, 3)),
    *(_layer(f"AvgPool{n}D", f"avg_pool{n}d", "The mean of each window", kernel_size=_REQUIRED, stride=None, padding=0,
             ceil_mode=False) for n in (1, 2, 3)),
    *(_layer(f"MaxPool{n}D", f"max_pool{n}d", "The largest element of each window", gives_first=n == 2, kernel_size=_REQUIRED,
             stride=None, padding=0, ceil_mode=False) for n in (1, 2, 3)),
]

# Losses; `reduction` is "mean", "sum" or "none".
LOSSES = [
    _layer("BCELoss", "binary_cross_entropy", "Cross entropy of probabilities and labels in [0, 1]", reduction="mean"),
    _layer("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "Cross entropy of sigmoids and labels", reduction="mean"),
    _layer("CosineEmbeddingLoss", "cosine_embedding_loss", "Pairs that are alike or not, by their cosine", margin=0.0,
           reduction="mean"),
    _layer("CrossEntropyLoss", "cross_entropy", "Minus the log-probability of the label, of logits", ignore_index=-100,
           reduction="mean", soft_label=False, axis=-1, label_smoothing=0.0),
    _layer("CTCLoss", "ctc_loss", "Connectionist temporal classification of logits [t, n, classes]", blank=0, reduction="mean"),
    _layer("GaussianNLLLoss", "gaussian_nll_loss", "Minus the log-likelihood of normal distributions", full=False, epsilon=1e-6,
           reduction="mean"),
    _layer("HingeEmbeddingLoss", "hinge_embedding_loss", "Distances of pairs that are alike (1) or not (-1)", margin=1.0,
           reduction="mean"),
    _layer("KLDivLoss", "kl_div", "The divergence of the label from exp(input)", reduction="mean", log_target=False),
    _layer("L1Loss", "l1_loss", "The absolute difference", reduction="mean"),
    _layer("MarginRankingLoss", "margin_ranking_loss", "Pairs in the wrong order", margin=0.0, reduction="mean"),
    _layer("MSELoss", "mse_loss", "The squared difference", reduction="mean"),
    _layer("MultiLabelSoftMarginLoss", "multi_label_soft_margin_loss", "The mean cross entropy of several labels",
           reduction="mean"),
    _layer("MultiMarginLoss", "multi_margin_loss", "Classes that are closer than the margin", p=1, margin=1.0, reduction="mean"),
    _layer("NLLLoss", "nll_loss", "Minus the log-probability of the label", ignore_index=-100, reduction="mean"),
    _layer("PoissonNLLLoss", "poisson_nll_loss", "Minus the log-likelihood of Poisson distributions", log_input=True, full=False,
           epsilon=1e-8, reduction="mean"),
    _layer("SmoothL1Loss", "smooth_l1_loss", "Quadratic up to delta, linear beyond", reduction="mean", delta=1.0),
    _layer("SoftMarginLoss", "soft_margin_loss", "log(1 + exp(-label * input))", reduction="mean"),
    _layer("TripletMarginLoss", "triplet_margin_loss", "max(0, distance to positive - distance to negative + margin)", margin=1.0,
           p=2.0, epsilon=1e-6, swap=False, reduction="mean"),
]

NAMES = [*ACTIVATIONS, *OTHERS, *POOLING, *LOSSES]
