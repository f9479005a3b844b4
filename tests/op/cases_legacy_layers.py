"""Cases of layers by the names of PaddlePaddle's operators, by its kernels."""

import numpy as np
import paddle

C = paddle._C_ops


def convolutions(t):
    x = t.normal(2, 3, 6, 5)
    for args in ({"paddings": [1, 0], "strides": [2, 1]}, {"dilations": [2, 1]}, {"padding_algorithm": "SAME", "strides": [2, 2]},
                 {"padding_algorithm": "VALID"}, {"data_format": "NHWC"}):
        args = {"input": x, "filter": t.normal(6, 1, 3, 2), "groups": 3, **args}
        if "data_format" in args:
            args["input"] = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        t.add("depthwise_conv2d", args, function=lambda input, filter, groups, strides=(1, 1), paddings=(0, 0), padding_algorithm="EXPLICIT",
              dilations=(1, 1), data_format="NCHW": C.depthwise_conv2d(input, filter, list(strides), list(paddings), padding_algorithm, groups,
                                                                       list(dilations), data_format))
    t.reject("depthwise_conv2d", {"input": x, "filter": t.normal(6, 2, 3, 2), "groups": 3})
    for args in ({"paddings": [1, 0], "strides": [2, 1]}, {"strides": [2, 2], "output_padding": [1, 0]}, {"strides": [2, 2], "output_size": [14, 11]}):
        t.add("depthwise_conv2d_transpose", {"x": x, "filter": t.normal(3, 1, 3, 2), "groups": 3, **args},
              function=lambda x, filter, groups, strides, paddings=(0, 0), output_padding=(), output_size=(): C.depthwise_conv2d_transpose(
                  x, filter, list(strides), list(paddings), list(output_padding), list(output_size), "EXPLICIT", groups, [1, 1], "NCHW"))
    # Called like this PaddlePaddle gives zeros as gradients; the cases of deform_conv2d compare them.
    for masked in (True, False):
        for groups in (1, 2):
            args = {"x": t.normal(1, 2, 5, 4), "offset": t.uniform(0.1, 0.4, 1, 8, 4, 3), "filter": t.normal(4, 2 // groups, 2, 2), "groups": groups}
            if masked:
                args["mask"] = t.uniform(0, 1, 1, 4, 4, 3)
            t.add("deformable_conv" if masked else "deformable_conv_v1", args, grad=False,
                  function=lambda x, offset, filter, groups, mask=None: C.deformable_conv(
                      x, offset, filter, mask, [1, 1], [0, 0], [1, 1], 1, groups, 64))
    t.reject("deformable_conv", {**args, "offset": t.normal(1, 6, 4, 3)})


def losses(t):
    logits, label = t.normal(6, 3, 5), np.array([[1, 2, 2], [4, 1, 0], [3, 0, 0]], np.int32)
    lengths = {"logits_length": np.array([6, 5, 4]), "labels_length": np.array([3, 2, 1])}
    for blank in (0, 4):
        t.add("warpctc", {"logits": logits, "label": np.minimum(label + (blank == 0), 3 + (blank == 0)).astype(np.int32), **lengths, "blank": blank},
              function=lambda logits, label, logits_length, labels_length, blank: C.warpctc(
                  logits, label, logits_length, labels_length, blank, False), frozen=("logits_length", "labels_length"))
    t.reject("warpctc", {"logits": logits[0], "label": label, **lengths})


def activations(t):
    x = t.uniform(-5, 5, 3, 4)
    t.add("hard_sigmoid", {"x": x}, function=lambda x: paddle.clip(0.2 * x + 0.5, 0, 1))
    t.add("hard_sigmoid", {"x": x, "slope": 0.25, "offset": 0.4}, function=lambda x, slope, offset: paddle.clip(slope * x + offset, 0, 1))


def cases_legacy_layers(t):
    for part in (convolutions, losses, activations):
        part(t)
