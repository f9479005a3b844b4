"""Cases of sequences of different lengths and of decoding, against NumPy and PaddlePaddle."""

import numpy as np
import paddle
import torch

from cases_losses import torch_case


def cases_ragged(t):
    lengths = np.array([2, 0, 3, 1])

    def parts(x):
        return list(torch.split(x, lengths.tolist()))

    def x(*shape):
        return t.normal(*shape, dtype="float64")

    pools = {"sum": lambda p: p.sum(0), "average": lambda p: p.mean(0), "sqrt": lambda p: p.sum(0) / len(p) ** 0.5, "max": lambda p: p.amax(0),
             "min": lambda p: p.amin(0), "first": lambda p: p[0], "last": lambda p: p[-1]}
    for kind, f in pools.items():
        torch_case(t, "sequence_pool", {"input": x(6, 3), "lengths": lengths, "pool_type": kind, "pad_value": 0.5},
                   lambda input, lengths, pool_type, pad_value: torch.stack(
                       [f(p) if len(p) else torch.full((3,), pad_value, dtype=torch.float64) for p in parts(input)]), ["input"])
    full = np.array([2, 3, 1])
    for op, at in (("sequence_first_step", 0), ("sequence_last_step", -1)):
        torch_case(t, op, {"input": x(6, 3), "lengths": full}, lambda input, lengths: torch.stack([p[at] for p in torch.split(input, full.tolist())]), ["input"])
    torch_case(t, "sequence_softmax", {"input": x(6, 1), "lengths": lengths},
               lambda input, lengths: torch.cat([torch.softmax(p, 0) for p in parts(input)]), ["input"])

    def conv(input, lengths, weight, bias=None, filter_size=3, padding_start=None):
        first = -(filter_size // 2) if padding_start is None else padding_start
        rows = []
        for p in parts(input):
            for i in range(len(p)):
                taps = [p[i + k] if 0 <= i + k < len(p) else torch.zeros(p.shape[1], dtype=p.dtype) for k in range(first, first + filter_size)]
                rows.append(torch.cat(taps))
        out = torch.stack(rows) @ weight
        return out if bias is None else out + bias

    torch_case(t, "sequence_conv", {"input": x(6, 2), "lengths": lengths, "weight": x(6, 4), "bias": x(4)}, conv, ["input", "weight", "bias"])
    torch_case(t, "sequence_conv", {"input": x(6, 2), "lengths": lengths, "weight": x(4, 4), "filter_size": 2, "padding_start": 0}, conv, ["input", "weight"])
    times = np.array([2, 0, 1])

    def expand(x, y_lengths, x_lengths=None):
        own = torch.split(x, x_lengths.tolist() if x_lengths is not None else [1] * len(x))
        kept = [p for p, n in zip(own, y_lengths.tolist()) for _ in range(n)]
        return torch.cat(kept), torch.tensor([len(p) for p in kept])

    for own in (None, np.array([1, 2, 3])):
        value = x(6 if own is not None else 3, 2)
        args = {"x": value, "y_lengths": times}
        if own is not None:
            args["x_lengths"] = own
        tensors = {k: torch.tensor(v) for k, v in args.items()}
        t.add("sequence_expand", args, outputs=[r.numpy() for r in expand(**tensors)])
    torch_case(t, "sequence_expand_as", {"x": x(3, 2), "y_lengths": times},
               lambda x, y_lengths: torch.repeat_interleave(x, y_lengths, 0), ["x"])
    value = x(6, 2)
    padded = np.full((4, 3, 2), 0.25)
    for row, part in zip(padded, np.split(value, np.cumsum(lengths)[:-1])):
        row[: len(part)] = part
    t.add("sequence_pad", {"x": value, "lengths": lengths, "pad_value": 0.25, "maxlen": 3}, outputs=[padded, lengths])
    torch_case(t, "sequence_unpad", {"x": x(4, 3, 2), "length": lengths},
               lambda x, length: torch.cat([r[:n] for r, n in zip(x, length.tolist())]), ["x"])
    first, second = x(6, 2), x(5, 2)
    other = np.array([1, 2, 0, 2])
    pieces = [p for pair in zip(np.split(first, np.cumsum(lengths)[:-1]), np.split(second, np.cumsum(other)[:-1])) for p in pair]
    t.add("sequence_concat", {"input": [first, second], "lengths": [lengths, other]}, outputs=[np.concatenate(pieces), lengths + other])
    torch_case(t, "sequence_slice", {"input": x(6, 2), "lengths": lengths, "offset": np.array([1, 0, 0, 0]), "length": np.array([1, 0, 2, 1])},
               lambda input, lengths, offset, length: torch.cat([p[o : o + n] for p, o, n in zip(parts(input), offset.tolist(), length.tolist())]), ["input"])
    torch_case(t, "sequence_reverse", {"x": x(6, 2), "lengths": lengths}, lambda x, lengths: torch.cat([p.flip(0) for p in parts(x)]), ["x"])
    t.add("sequence_reshape", {"input": value, "lengths": np.array([2, 0, 4]), "new_dim": 4}, outputs=[value.reshape(3, 4), np.array([1, 0, 2])])
    t.add("sequence_enumerate", {"input": np.array([1, 2, 3, 4, 5, 6]), "lengths": lengths, "win_size": 2, "pad_value": 9},
          outputs=[np.array([[1, 2], [2, 9], [3, 4], [4, 5], [5, 9], [6, 9]])])
    torch_case(t, "sequence_scatter", {"input": x(4, 3), "index": np.array([0, 1, 2, 2, 0, 1]), "updates": x(6), "lengths": lengths},
               lambda input, index, updates, lengths: input.index_put((torch.repeat_interleave(torch.arange(4), lengths), index), updates, True),
               ["input", "updates"])
    for op in ("sequence_reverse",):
        for bad in (np.array([2, 0, 3]), np.array([2, -1, 4, 1]), np.array([2.0, 0.0, 3.0, 1.0])):
            t.reject(op, {"x": x(6, 2), "lengths": bad})
    t.reject("sequence_pool", {"input": x(6, 2), "lengths": lengths, "pool_type": "median"})
    t.reject("sequence_pad", {"x": x(6, 2), "lengths": lengths, "maxlen": 2})
    t.reject("sequence_unpad", {"x": x(4, 2, 2), "length": lengths})
    t.reject("sequence_slice", {"input": x(6, 2), "lengths": lengths, "offset": np.array([1, 0, 2, 0]), "length": np.array([1, 0, 2, 1])})


def cases_decoding(t):
    for ends in (True, False):
        for dtype in ("float32", "float64"):
            t.add("text_viterbi_decode", {"potentials": t.normal(3, 5, 4, dtype=dtype), "transition_params": t.normal(4, 4, dtype=dtype),
                                          "lengths": np.array([5, 2, 4]), "include_bos_eos_tag": ends}, grad=False, function=paddle.text.viterbi_decode)
    t.reject("text_viterbi_decode", {"potentials": t.normal(3, 5, 4), "transition_params": t.normal(4, 4), "lengths": np.array([6, 2, 4])})
    t.reject("text_viterbi_decode", {"potentials": t.normal(3, 5, 4), "transition_params": t.normal(3, 4), "lengths": np.array([5, 2, 4])})
    t.reject("text_viterbi_decode", {"potentials": t.normal(1, 2, 0), "transition_params": t.normal(0, 0), "lengths": np.array([1]),
                                     "include_bos_eos_tag": False})
    for dtype in ("int64", "int32"):
        t.add("gather_tree", {"ids": t.integers(0, 9, 5, 2, 3, dtype=dtype), "parents": t.integers(0, 3, 5, 2, 3, dtype=dtype)}, grad=False)
    t.reject("gather_tree", {"ids": t.integers(0, 9, 5, 2, 3), "parents": t.integers(3, 5, 5, 2, 3)})
    t.reject("gather_tree", {"ids": t.integers(0, 9, 5, 2, 3), "parents": t.integers(0, 3, 5, 2, 2)})

    def distance(a, b):
        d = np.arange(len(b) + 1)
        for i, p in enumerate(a):
            new = [i + 1]
            for k, q in enumerate(b):
                new.append(min(d[k] + (p != q), d[k + 1] + 1, new[k] + 1))
            d = np.array(new)
        return d[-1]

    x, y = t.integers(0, 4, 3, 6), t.integers(0, 4, 3, 5)
    number = np.array([3])
    for normalized in (True, False):
        expect = np.array([[distance(a, b)] for a, b in zip(x, y)], np.float32)
        t.add("edit_distance", {"input": x, "label": y, "normalized": normalized}, outputs=[expect / 5 if normalized else expect, number])
    n, m = np.array([4, 6, 0]), np.array([5, 3, 2])
    expect = np.array([[distance(a[:i], b[:k])] for a, b, i, k in zip(x, y, n, m)], np.float32)
    t.add("edit_distance", {"input": x, "label": y, "normalized": False, "input_length": n, "label_length": m}, outputs=[expect, number])
    expect = np.array([[distance(a[a != 1], b[b != 1])] for a, b in zip(x, y)], np.float32)
    t.add("edit_distance", {"input": x, "label": y, "normalized": False, "ignored_tokens": [1]}, outputs=[expect, number])
    t.reject("edit_distance", {"input": x, "label": y, "input_length": n + 1, "label_length": m})
    # Two groups of two beams; the second beam has ended.
    scores = np.array([[-1, -2, -5], [-9, -9, -9], [-4, -3, -6], [-2, -8, -1]], np.float32)
    t.add("beam_search", {"pre_ids": np.array([[5], [0], [7], [8]]), "pre_scores": np.array([[-0.5], [-1.5], [-0.1], [-0.2]], np.float32),
                          "scores": scores, "beam_size": 2, "end_id": 0, "return_parent_idx": True},
          outputs=[np.array([[0], [0], [2], [0]]), np.array([[-1], [-1.5], [-1], [-2]], np.float32), np.array([0, 1, 3, 3])])
    t.reject("beam_search", {"pre_ids": np.array([[5], [0], [7]]), "pre_scores": np.zeros((3, 1), np.float32), "scores": scores[:3], "beam_size": 2, "end_id": 0})
