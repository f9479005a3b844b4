#!/usr/bin/env python3
"""Makes programs of data/ with PaddlePaddle 3, in both forms, with inputs and the outputs of the saved program.

  make_models.py [NAME...]         (runs itself once for each form)

Each function of FAMILIES is one program: many operations, or one model. A family that cannot be saved in a form is left out
of it.
"""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data"


def families():
    import paddle
    from paddle import nn
    from paddle.nn import functional as F
    from paddle.vision import ops as vision

    def constant(seed, *shape):
        return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))

    def elementwise(x, y, n, m):
        z = paddle.clip(x, 0.1, 0.9)
        many = [getattr(paddle, name)(z) for name in "exp log2 log1p expm1 erf lgamma digamma rsqrt reciprocal trunc atanh asin".split()]
        many += [getattr(F, name)(x * 3) for name in "silu mish softsign log_sigmoid hardsigmoid hardswish hardshrink softshrink "
                 "tanhshrink elu celu selu hardtanh thresholded_relu gelu".split()]
        many += [F.softplus(x * 3, beta=2, threshold=3), F.gelu(x, approximate=True), paddle.stanh(x), paddle.lerp(x, y, 0.3)]
        many += [getattr(paddle, name)(z, paddle.clip(y, 0.2, 2.0)) for name in "maximum minimum fmax floor_divide remainder pow atan2".split()]
        many += [getattr(paddle, name)(n, m) for name in "floor_divide remainder bitwise_and bitwise_xor less_equal not_equal".split()]
        return many + [paddle.logical_xor(x > 0, y > 0), paddle.add_n([x, y, x]), paddle.isclose(x, y), paddle.round(x * 10), n // m]

    def reductions(x, n):
        many = []
        for name in "sum mean max min prod logsumexp amax".split():
            f = getattr(paddle, name)
            many += [f(x, axis=1), f(x, axis=[0, -1], keepdim=True), f(x)]
        many += [paddle.any(x > 1, axis=1), paddle.all(x > -1), paddle.sum(n), paddle.argmax(x, axis=1), paddle.argmin(x, axis=-1, keepdim=True, dtype="int32"), paddle.argmax(x)]
        many += [paddle.norm(x), paddle.norm(x, p=3, axis=1), paddle.norm(x, p=1, axis=-1, keepdim=True), paddle.cumsum(x, axis=1), paddle.cumsum(x), paddle.cumprod(x, dim=1), paddle.logcumsumexp(x, axis=2)]
        return many + [*paddle.topk(x, 2, axis=1, largest=False), paddle.sort(x, axis=1), paddle.argsort(x, descending=True), *paddle.kthvalue(x, 2, axis=1), paddle.median(x, axis=1), F.softmax(x, axis=1), F.log_softmax(x)]

    def shapes(x):
        batch = paddle.shape(x)[0]
        many = [x.reshape([0, -1]), x.reshape([batch * 3, 4]), x.transpose([2, 0, 1]), x.flatten(1), x.unsqueeze([0, 2, -1]), paddle.concat([x, x * 2], axis=-1), paddle.stack([x, x + 1], axis=1)]
        many += [*paddle.split(x, [1, -1], axis=2), *paddle.split(x, 2, axis=-1), *paddle.unbind(x, axis=1), x[:, 1:3], x[..., -1], x[:, ::2], x[:, -1:, ::-1], x[:, None, 0]]
        many += [paddle.tile(x, [2, 1, 3]), paddle.tile(x, [2]), paddle.tile(x, [2, 1, 1, 2]), paddle.flip(x, [0, 2]), paddle.roll(x, 1), paddle.roll(x, [1, -1], [0, 2]), paddle.tril(x), paddle.triu(x, 1), paddle.diagonal(x, axis1=1, axis2=2)]
        many += [paddle.repeat_interleave(x, 2, axis=1), F.pad(x, [1, 2], mode="reflect", data_format="NCL"), F.pad(x, [0, 0, 1, 1, 0, 2]), paddle.zeros([batch, 2]) + 1, paddle.arange(batch) + 1, paddle.eye(3, 4) + x.sum(), paddle.where(x > 0, x, -x), paddle.full_like(x, 3)]
        return many + [paddle.einsum("bij->bj", x), paddle.expand(x[:, :1], [-1, 3, 4]), paddle.numel(x), x.cast("bool")]

    def indices(x, index, rows, words):
        many = [paddle.gather(x, index), paddle.gather(x, index, axis=1), paddle.index_select(x, index, axis=1), paddle.gather_nd(x, rows), paddle.take_along_axis(x, words, axis=1), paddle.put_along_axis(x, words, 1.0, axis=1), paddle.index_sample(x, words)]
        many += [paddle.scatter(x, index, x[:2]), paddle.scatter(x, index, x[:2], overwrite=False), paddle.scatter_nd_add(x, rows[:, :1], x[:2]), paddle.index_add(x, index, 0, x[:2])]
        many += [F.one_hot(words, 6), F.embedding(words, constant(3, 7, 3), padding_idx=1), F.sequence_mask(words[:, 0], maxlen=6), paddle.nonzero(words > 1), paddle.masked_select(x, x > 0), paddle.masked_fill(x, x > 0, 2.0)]
        changed = x * 1
        changed[:, 1] = 5.0
        changed[0] = x[1]
        return many + [changed, *paddle.unique(words, return_index=True, return_inverse=True, return_counts=True), paddle.bincount(words.flatten())]

    def products(x, y, square):
        symmetric = paddle.matmul(square, square, transpose_y=True) + paddle.eye(3) * 3
        return [x @ y, paddle.bmm(x, y), paddle.matmul(x, y, transpose_x=False)[0], paddle.einsum("bij,bjk->bik", x, y), paddle.outer(x[0, 0], y[0, 0]), paddle.mv(square, square[0]), paddle.addmm(square, square, square, beta=0.5, alpha=2.0),
                paddle.kron(square, square), paddle.linalg.matrix_power(square, 3), paddle.linalg.inv(symmetric), paddle.linalg.det(symmetric), paddle.linalg.cholesky(symmetric), paddle.linalg.solve(symmetric, square), paddle.dist(square, symmetric)]

    def layers(x, points):
        weight = constant(1, 6, 4, 3, 3) * 0.2
        many = [F.conv2d(x, weight, stride=2, padding="SAME"), F.conv2d(x, weight, padding=[1, 0, 2, 1]), F.conv2d(x, weight, dilation=2, padding="SAME"), F.conv2d(x, constant(2, 5, 8, 3, 3), padding=1, data_format="NHWC"), F.conv2d(x, constant(3, 4, 1, 3, 3), groups=4)]
        many += [F.conv2d_transpose(x, constant(4, 4, 3, 3, 3), stride=2, padding=1, output_padding=1), F.conv2d_transpose(x, constant(4, 4, 3, 3, 3), stride=2, padding="SAME"), F.conv2d_transpose(x, constant(4, 4, 3, 3, 3), stride=2, padding=1, output_size=[16, 16])]
        many += [F.max_pool2d(x, 3, 2, "SAME"), F.avg_pool2d(x, 3, 2, [1, 0, 1, 2], exclusive=False), F.avg_pool2d(x, 3, 2, 0, ceil_mode=True), *F.max_pool2d(x, 2, 2, return_mask=True), F.adaptive_avg_pool2d(x, [3, 5]), F.adaptive_max_pool2d(x, 3), F.max_pool2d(x, 2, 2, data_format="NHWC")]
        many += [F.interpolate(x, [5, 11], mode=mode, align_corners=corners) for mode in ("bilinear", "bicubic") for corners in (False, True)]
        many += [F.interpolate(x, scale_factor=2.0, mode="nearest"), F.interpolate(x, [1, 7], mode="bilinear"), F.interpolate(x, [1, 7], mode="bicubic"), F.interpolate(x, [5, 11], mode="bilinear", align_mode=1), F.pad(x, [1, 1, 1, 1], mode="circular"), F.pad(x, [1, 0, 2, 0], data_format="NHWC")]
        many += [F.pixel_shuffle(x, 2), F.channel_shuffle(x, 2), F.grid_sample(x, points), F.unfold(x, 3, paddings=1), F.local_response_norm(x, 3), F.group_norm(x, 2, weight=constant(6, 4), bias=constant(7, 4)), F.group_norm(x, 2, data_format="NHWC"), F.instance_norm(x), F.layer_norm(x, [8, 8]), F.prelu(x, constant(8, 4)), F.normalize(x, axis=1)]
        return many + [F.conv3d(x.unsqueeze(1), constant(9, 3, 1, 2, 2, 2), data_format="NCDHW"), F.conv3d(x.unsqueeze(-1), constant(9, 3, 1, 2, 2, 2), data_format="NDHWC"), F.dropout(x, 0.3, training=False, mode="downscale_in_infer")]

    def detection(boxes, scores, images, head, sizes):
        number = paddle.to_tensor(np.array([2, 2], "int32"))
        priors = vision.prior_box(images, images * 1, [4.0], [8.0], [1.0, 2.0], flip=True, clip=True)
        coded = vision.box_coder(boxes, [0.1, 0.1, 0.2, 0.2], boxes + 1, code_type="encode_center_size")
        return [vision.nms(boxes, 0.5), vision.nms(boxes, 0.5, scores[0, 0]), vision.roi_align(images, boxes, number, 3), vision.roi_pool(images, boxes, number, 2), *vision.yolo_box(head, sizes, [10, 13, 16, 30], 2, 0.01, 32), *priors, coded,
                *vision.matrix_nms(boxes.unsqueeze(0), scores, 0.1, 0.0, 5, 5, background_label=-1, return_index=True)]

    def signals(x):
        spectrum = paddle.fft.rfft(x)
        return [paddle.as_real(spectrum), paddle.fft.irfft(spectrum), paddle.real(paddle.conj(spectrum)), paddle.imag(spectrum), paddle.abs(spectrum), paddle.signal.frame(x, 4, 2), paddle.as_real(paddle.signal.stft(x, 8, 4)), paddle.angle(x),
                paddle.geometric.send_u_recv(x, paddle.to_tensor([0, 1, 1]), paddle.to_tensor([1, 1, 0]), reduce_op="max"), paddle.geometric.segment_mean(x, paddle.to_tensor([0, 1]))]

    def losses(x, label, y):
        return [F.cross_entropy(x, label, reduction="none"), F.softmax_with_cross_entropy(x, label.unsqueeze(1)), F.cross_entropy(x, F.softmax(y), soft_label=True), F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.kl_div(F.log_softmax(x), F.softmax(y)),
                F.binary_cross_entropy_with_logits(x, F.sigmoid(y)), F.nll_loss(F.log_softmax(x), label), F.label_smooth(x)]

    def edges(x, y, n, length, source, target):
        many = [F.max_pool2d(y, 2, 2, 1, ceil_mode=True), F.avg_pool2d(y, [2, 3], 2, 1, ceil_mode=True, exclusive=False), F.max_pool2d(y, 3, None, 1, ceil_mode=True, data_format="NHWC")]
        many += [paddle.mean(n), paddle.mean(n, axis=1), F.sequence_mask(length), F.fractional_max_pool2d(y, 3, random_u=0.4), paddle.linalg.matrix_rank(x), *([paddle.linalg.svdvals(x)] if os.environ["PADDLE_FORM"] == "pir" else []), *paddle.linalg.lstsq(x, x[:, :1])[:1]]
        many += [paddle.diagonal_scatter(x, x[0, :3]), F.binary_cross_entropy_with_logits(x, F.sigmoid(x * 2), pos_weight=paddle.arange(1, 5, dtype="float32"), reduction="none"), paddle.metric.accuracy(F.softmax(x), length.unsqueeze(1), k=2)]
        many += [paddle.geometric.send_ue_recv(x, x, source, target, message, reduce) for message, reduce in (("add", "sum"), ("mul", "max"), ("sub", "mean"))] + [paddle.geometric.send_uv(x, x, source, target, "mul")]
        many += [F.hsigmoid_loss(x, length.unsqueeze(1), 6, constant(5, 5, 4), constant(6, 5, 1)), paddle.incubate.identity_loss(x, "mean")]
        changed = x * 1
        changed[1, 2] = 7.0
        return many + [changed]

    def transducer(x, label):
        return F.rnnt_loss(F.log_softmax(x), label, paddle.to_tensor([4, 3], "int32"), paddle.to_tensor([2, 1], "int32"), reduction="none", fastemit_lambda=0.0)

    class Choices(nn.Layer):
        """Branches."""

        def forward(self, x, n):
            if x.sum() > 0:
                y = x * 2
                z = y + 1
            else:
                y = x - 1
                z = y * 3
            w = x + 0
            if n.sum() > 2:
                w = w + n.cast("float32").sum()
            return y, z, w

    class Counted(nn.Layer):
        """A loop of a known number of turns."""

        def forward(self, x):
            y, k = x + 0, paddle.zeros([1], "int64")
            while k < 3:
                y = y * x + 1
                k = k + 1
            return y, k

    class Shown(nn.Layer):
        """Values that are printed and checked; PaddlePaddle keeps the check in PIR only."""

        def forward(self, x):
            k = paddle.zeros([1], "int64")
            while k < 2:
                x = paddle.static.Print(x * 2, message="turn")
                assert paddle.max(x) < 100.0
                k = k + 1
            return paddle.static.Print(x + 1, message="end", summarize=2, print_phase="forward")

    class Turns(nn.Layer):
        """A branch in a loop whose turns follow from the data."""

        def forward(self, x, n):
            y, k = x + 0, paddle.zeros([], "int64")
            while k < n.sum():
                if y.sum() > 0:
                    y = y - 1
                else:
                    y = y + 2
                k = k + 1
            return y, k

    class Growth(nn.Layer):
        """A loop that makes a list and a value that grows."""

        def forward(self, x, n):
            out, k, longer = [], paddle.zeros([], "int64"), x + 0
            while k < n.sum():
                out.append(x * k.cast("float32"))
                longer = paddle.concat([longer, x], axis=0)
                k = k + 1
            return paddle.stack(out), longer

    class Gpt(nn.Layer):
        """One step of a decoder with a cache [layers, 2, batch, heads, length, size]."""

        def __init__(self):
            super().__init__()
            self.words, self.places, self.heads = nn.Embedding(20, 16), nn.Embedding(32, 16), 4
            self.norms = nn.LayerList([nn.LayerNorm(16) for _ in range(5)])
            self.qkv = nn.LayerList([nn.Linear(16, 48) for _ in range(2)])
            self.out = nn.LayerList([nn.Linear(16, 16) for _ in range(2)])
            self.up = nn.LayerList([nn.Linear(16, 32) for _ in range(2)])
            self.down = nn.LayerList([nn.Linear(32, 16) for _ in range(2)])

        def forward(self, tokens, cache):
            batch, length, past = paddle.shape(tokens)[0], paddle.shape(tokens)[1], paddle.shape(cache)[4]
            x = self.words(tokens) + self.places(paddle.arange(length) + past)
            kept = []
            for i, layer in enumerate(paddle.unbind(cache, axis=0)):
                old_k, old_v = paddle.unbind(layer, axis=0)
                parts = self.qkv[i](self.norms[2 * i](x)).reshape([batch, length, 3, self.heads, 4])
                q, k, v = paddle.unbind(parts.transpose([2, 0, 3, 1, 4]), axis=0)
                k, v = paddle.concat([old_k, k], axis=2), paddle.concat([old_v, v], axis=2)
                kept.append(paddle.stack([k, v]))
                scores = paddle.matmul(q, k, transpose_y=True) * 0.5
                rows, columns = paddle.arange(length).unsqueeze(1) + past, paddle.arange(length + past).unsqueeze(0)
                scores = paddle.where(columns <= rows, scores, paddle.full_like(scores, -1e9))
                y = paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3]).reshape([0, 0, 16])
                x = x + self.out[i](y)
                x = x + self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x)), approximate=True))
            logits = paddle.matmul(self.norms[4](x), self.words.weight, transpose_y=True)
            return logits, paddle.stack(kept), logits[:, -1].argmax(axis=-1)

    class Swin(nn.Layer):
        """Patches, a block of plain and one of shifted windows, and patch merging."""

        def __init__(self):
            super().__init__()
            self.patch, self.norms = nn.Conv2D(3, 8, 2, 2), nn.LayerList([nn.LayerNorm(8) for _ in range(4)])
            self.qkv, self.out = nn.LayerList([nn.Linear(8, 24) for _ in range(2)]), nn.LayerList([nn.Linear(8, 8) for _ in range(2)])
            self.up, self.down = nn.LayerList([nn.Linear(8, 16) for _ in range(2)]), nn.LayerList([nn.Linear(16, 8) for _ in range(2)])
            self.bias = self.create_parameter([49, 2], default_initializer=nn.initializer.Normal())
            at = np.stack(np.meshgrid(range(4), range(4), indexing="ij")).reshape(2, -1)
            near = (at[:, :, None] - at[:, None] + 3) * np.array([7, 1])[:, None, None]
            self.register_buffer("place", paddle.to_tensor(near.sum(0).reshape(-1)))
            part = np.zeros((8, 8))
            for i, rows in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
                for j, columns in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
                    part[rows, columns] = 3 * i + j
            part = part.reshape(2, 4, 2, 4).transpose(0, 2, 1, 3).reshape(4, 16)
            self.register_buffer("mask", paddle.to_tensor(np.where(part[:, None] == part[:, :, None], 0, -100).astype("float32")))
            self.merge, self.head = nn.Linear(32, 16), nn.Linear(16, 5)

        def windows(self, x, i, masked):
            x = x.reshape([-1, 2, 4, 2, 4, 8]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 16, 8])
            q, k, v = self.qkv[i](x).reshape([-1, 16, 3, 2, 4]).transpose([2, 0, 3, 1, 4]).unbind(0)
            scores = paddle.matmul(q * 0.5, k.transpose([0, 1, 3, 2]))
            scores = scores + paddle.index_select(self.bias, self.place).reshape([16, 16, 2]).transpose([2, 0, 1]).unsqueeze(0)
            if masked:
                scores = (scores.reshape([-1, 4, 2, 16, 16]) + self.mask.unsqueeze(1).unsqueeze(0)).reshape([-1, 2, 16, 16])
            x = self.out[i](paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3]).reshape([-1, 16, 8]))
            return x.reshape([-1, 2, 2, 4, 4, 8]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 8, 8, 8])

        def forward(self, images):
            x = self.patch(images).transpose([0, 2, 3, 1])
            for i in range(2):
                y = self.norms[2 * i](x)
                if i == 1:
                    y = paddle.roll(y, shifts=[-2, -2], axis=[1, 2])
                y = self.windows(y, i, i == 1)
                if i == 1:
                    y = paddle.roll(y, shifts=[2, 2], axis=[1, 2])
                x = x + y
                x = x + self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x))))
            x = paddle.concat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], axis=-1)
            return self.head(self.merge(x).flatten(1, 2).mean(axis=1))

    class Translation(nn.Layer):
        """Encodes a sequence and decodes words until all sentences have ended."""

        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(11, 8), nn.Embedding(9, 8)
            self.encoder, self.cell, self.head = nn.GRU(8, 8), nn.GRUCell(8, 8), nn.Linear(8, 9)

        def forward(self, tokens, most):
            memory, state = self.encoder(self.source(tokens))
            state = state[0]
            word = paddle.zeros_like(tokens[:, 0])
            ended = word > 0
            words, k = word.unsqueeze(1), paddle.zeros([], "int64")
            while paddle.logical_and(k < most.sum(), paddle.logical_not(paddle.all(ended))):
                shares = F.softmax(paddle.matmul(memory, state.unsqueeze(2)).squeeze(2))
                context = paddle.matmul(shares.unsqueeze(1), memory).squeeze(1)
                y, state = self.cell(self.target(word) + context, state)
                word = self.head(y).argmax(axis=-1)
                ended = paddle.logical_or(ended, word == 1)
                words = paddle.concat([words, word.unsqueeze(1)], axis=1)
                k = k + 1
            return words, state, paddle.any(ended)

    random = np.random.default_rng(5)

    def floats(*shape):
        return random.normal(size=shape).astype("float32")

    def whole(*shape, below=5):
        return random.integers(0, below, size=shape)

    boxes = np.array([[0, 0, 4, 4], [1, 1, 4, 4], [5, 5, 9, 9], [0, 0, 3.9, 4]], "float32")
    # The code, its inputs, and the inputs of which the first size is not known.
    return {
        "elementwise": (elementwise, [floats(2, 3), floats(2, 3), whole(2, 3, below=9) - 4, whole(2, 3, below=4) + 1], [0, 1]),
        "reductions": (reductions, [floats(2, 3, 4), whole(2, 3).astype("int32")], [0]),
        "shapes": (shapes, [floats(2, 3, 4)], [0]),
        "indices": (indices, [floats(3, 4), np.array([2, 0]), np.array([[1, 2], [0, 3]]), whole(3, 2, below=4)], []),
        "products": (products, [floats(2, 3, 4), floats(2, 4, 5), floats(3, 3)], []),
        "layers": (layers, [floats(2, 4, 8, 8), floats(2, 3, 3, 2) * 0.5], [0, 1]),
        "detection": (detection, [boxes, random.uniform(size=(1, 2, 4)).astype("float32"), floats(2, 2, 8, 8), floats(2, 14, 3, 3), np.array([[96, 96], [64, 80]], "int32")], []),
        "signals": (signals, [floats(2, 32)], []),
        "losses": (losses, [floats(4, 5), whole(4), floats(4, 5)], []),
        "edges": (edges, [floats(3, 4), floats(1, 2, 7, 8), whole(2, 3, below=9).astype("int64"), np.array([1, 3, 2]), np.array([0, 1, 2]), np.array([2, 1, 1])], []),
        "transducer": (transducer, [floats(2, 4, 3, 5), (whole(2, 2, below=4) + 1).astype("int32")], []),
        "choices": (Choices(), [floats(2, 3), np.array([3])], [0]),
        "counted": (Counted(), [floats(2, 3)], [0]),
        "shown": (Shown(), [floats(2, 3)], [0]),
        "turns": (Turns(), [floats(2, 3), np.array([4])], [0]),
        "growth": (Growth(), [floats(2, 3), np.array([3])], []),
        "gpt": (Gpt(), [whole(2, 3, below=20), floats(2, 2, 2, 4, 5, 4)], [(0, 0), (0, 1), (1, 2), (1, 4)]),
        "swin": (Swin(), [floats(2, 3, 16, 16)], [0]),
        "translation": (Translation(), [whole(3, 6, below=11), np.array([7])], [0]),
    }


def older():
    """Operations that no function makes any more, with their operands, attributes and results."""
    random = np.random.default_rng(9)

    def floats(*shape):
        return random.normal(size=shape).astype("float32")

    def whole(*shape, below=5):
        return random.integers(0, below, size=shape)

    tags = {"Emission": floats(2, 4, 3), "Transition": floats(5, 3), "Length": np.array([4, 2])}
    labels = {"Input": np.array([[0, 1, 1, 0, 2, 2], [3, 3, 0, 3, 1, 0]], "int32"), "InputLength": np.array([[6], [4]], "int32")}
    state = {"Input": floats(3, 12), "HiddenPrev": floats(3, 4), "Weight": floats(4, 12)}
    matches = {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": "float32"}
    two = {"X": floats(2, 3), "Y": floats(2, 3)}
    return [
        ("add_position_encoding", {"X": floats(2, 5, 6)}, {"alpha": 0.7, "beta": 1.3}, {"Out": "float32"}),
        ("crf_decoding", tags, {}, {"ViterbiPath": "int64"}),
        ("crf_decoding", {**tags, "Label": whole(2, 4, below=3)}, {}, {"ViterbiPath": "int64"}),
        ("ctc_align", labels, {"blank": 0, "merge_repeated": True, "padding_value": 7}, {"Output": "int32", "OutputLength": "int32"}),
        ("ctc_align", labels, {"blank": 0, "merge_repeated": False, "padding_value": 0}, {"Output": "int32", "OutputLength": "int32"}),
        ("edit_distance", {"Hyps": whole(2, 4), "Refs": whole(2, 3), "HypsLength": np.array([4, 3]), "RefsLength": np.array([3, 2])}, {"normalized": True}, {"SequenceNum": "int64", "Out": "float32"}),
        ("gru_unit", {**state, "Bias": floats(1, 12)}, {"activation": 2, "gate_activation": 1, "origin_mode": False}, {"Gate": "float32", "ResetHiddenPrev": "float32", "Hidden": "float32"}),
        ("gru_unit", state, {"activation": 3, "gate_activation": 1, "origin_mode": True}, {"Gate": "float32", "ResetHiddenPrev": "float32", "Hidden": "float32"}),
        ("row_conv", {"X": floats(2, 5, 3), "Filter": floats(3, 3)}, {}, {"Out": "float32"}),
        ("im2sequence", {"X": floats(2, 3, 5, 6)}, {"kernels": [2, 3], "strides": [2, 1], "paddings": [1, 0, 1, 2], "out_stride": [1, 1]}, {"Out": "float32"}),
        ("bipartite_match", {"DistMat": random.uniform(0.1, 0.9, size=(3, 5)).astype("float32")}, {"match_type": "bipartite", "dist_threshold": 0.5}, matches),
        ("bipartite_match", {"DistMat": random.uniform(0.1, 0.9, size=(3, 5)).astype("float32")}, {"match_type": "per_prediction", "dist_threshold": 0.4}, matches),
        ("cross_entropy2", {"X": random.uniform(0.1, 0.9, size=(4, 5)).astype("float32"), "Label": whole(4, 1)}, {"ignore_index": -100}, {"Y": "float32", "MatchX": "float32", "XShape": None}),
        ("fused_elemwise_activation", two, {"functor_list": ["elementwise_add", "relu"], "axis": -1, "scale": 0.0, "save_intermediate_out": False}, {"Out": "float32", "IntermediateOut": None}),
        ("fused_elemwise_activation", two, {"functor_list": ["relu", "elementwise_add"], "axis": -1, "scale": 0.0, "save_intermediate_out": False}, {"Out": "float32", "IntermediateOut": None}),
        ("collect_fpn_proposals", {"MultiLevelRois": [floats(4, 4), floats(3, 4)], "MultiLevelScores": [floats(4, 1), floats(3, 1)], "MultiLevelRoIsNum": [np.array([2, 2], "int32"), np.array([1, 2], "int32")]}, {"post_nms_topN": 5}, {"FpnRois": "float32", "RoisNum": "int32"}),
        ("lookup_table_dequant", {"W": floats(5, 4), "Ids": whole(3, 1)}, {"padding_idx": -1}, {"Out": "float32"}),
    ]


def make_older():
    import paddle
    from paddle.base.layer_helper import LayerHelper

    paddle.enable_static()
    main, start, given, fetched = paddle.static.Program(), paddle.static.Program(), {}, []
    with paddle.static.program_guard(main, start):
        for op, inputs, attributes, outputs in older():
            values = {}
            for slot, arrays in inputs.items():
                values[slot] = []
                for array in arrays if isinstance(arrays, list) else [arrays]:
                    name = f"in{len(given)}"
                    given[name] = array
                    values[slot].append(paddle.static.data(name, list(array.shape), str(array.dtype)))
            helper = LayerHelper(op)
            made = {slot: [helper.create_variable_for_type_inference(dtype or "float32")] for slot, dtype in outputs.items()}
            helper.append_op(type=op, inputs=values, outputs=made, attrs=attributes)
            fetched += [made[slot][0] for slot, dtype in outputs.items() if dtype]
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(start)
        path = FOLDER / "older_program"
        paddle.static.save_inference_model(str(path), [main.global_block().var(name) for name in given], fetched, executor, program=main)
    program, feeds, fetched = paddle.static.load_inference_model(str(path), executor)
    made = executor.run(program, feed={name: given[name] for name in feeds}, fetch_list=fetched, return_numpy=False)
    path.with_suffix(".pdiparams").unlink(missing_ok=True)
    without_lines(path.with_suffix(".pdmodel"))
    np.savez_compressed(FOLDER / "older_program.npz", **given, **{f"out{i}": np.array(value) for i, value in enumerate(made)})


def without_lines(path):
    """The program without the Python lines of its operations, which are most of the file."""
    import paddle

    program = paddle.static.Program.parse_from_string(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            op.desc.remove_attr("op_callstack")
    path.write_bytes(program.desc.serialize_to_string())


def make(form, names):
    import paddle
    from paddle import nn

    class Net(nn.Layer):
        def __init__(self, code):
            super().__init__()
            self.code = code

    class Net1(Net):
        def forward(self, a):
            return self.code(a)

    class Net2(Net):
        def forward(self, a, b):
            return self.code(a, b)

    class Net3(Net):
        def forward(self, a, b, c):
            return self.code(a, b, c)

    class Net4(Net):
        def forward(self, a, b, c, d):
            return self.code(a, b, c, d)

    class Net5(Net):
        def forward(self, a, b, c, d, e):
            return self.code(a, b, c, d, e)

    class Net6(Net):
        def forward(self, a, b, c, d, e, f):
            return self.code(a, b, c, d, e, f)

    nets = [None, Net1, Net2, Net3, Net4, Net5, Net6]
    paddle.seed(3)
    for name, (code, inputs, symbolic) in families().items():
        if names and name not in names:
            continue
        symbolic = [(each, 0) if isinstance(each, int) else each for each in symbolic]
        specs = [paddle.static.InputSpec([None if (i, d) in symbolic else size for d, size in enumerate(value.shape)], str(value.dtype), f"in{i}") for i, value in enumerate(inputs)]
        net = code if isinstance(code, nn.Layer) else nets[len(inputs)](code)
        net.eval()
        path = FOLDER / f"{name}_{form}"
        try:
            paddle.jit.save(paddle.jit.to_static(net, full_graph=True, input_spec=specs), str(path))
        except Exception as error:
            print(f"{name} as {form}: {str(error).strip().splitlines()[-1]}")
            continue
        path.with_suffix(".pdiparams.info").unlink(missing_ok=True)
        if not net.state_dict():
            path.with_suffix(".pdiparams").unlink(missing_ok=True)
        paddle.enable_static()
        if form == "program":
            without_lines(path.with_suffix(".pdmodel"))
        executor = paddle.static.Executor(paddle.CPUPlace())
        program, feeds, fetched = paddle.static.load_inference_model(str(path), executor)
        given = {f"in{i}": value for i, value in enumerate(inputs)}
        made = executor.run(program, feed={key: given[key] for key in feeds}, fetch_list=fetched, return_numpy=False)
        paddle.disable_static()
        np.savez_compressed(FOLDER / f"{name}_{form}.npz", **given, **{f"out{i}": np.array(value) for i, value in enumerate(made)})


if __name__ == "__main__":
    if os.environ.get("PADDLE_FORM"):
        make(os.environ["PADDLE_FORM"], sys.argv[1:])
        if os.environ["PADDLE_FORM"] == "program" and (len(sys.argv) == 1 or "older" in sys.argv):
            make_older()
    else:
        for form, flag in (("pir", "1"), ("program", "0")):
            subprocess.run([sys.executable, __file__, *sys.argv[1:]], check=True, env={**os.environ, "FLAGS_enable_pir_api": flag, "PADDLE_FORM": form})
