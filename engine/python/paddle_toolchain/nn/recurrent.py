"""Recurrent layers and attention."""
from .. import _paddle
from .layer import Layer
from .layers import _filled, _function, _xavier


class _Recurrent(Layer):
    """Inputs are [batch, steps, features], or [steps, batch, features] with time_major. The result is the outputs and the
    last states, [layers * directions, batch, hidden]."""

    operation, gates, states = "", 1, 1

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0, **attributes):
        super().__init__()
        both = direction in ("bidirect", "bidirectional")
        if not both and direction not in ("forward", "backward"):
            raise _paddle.UsageError(f"{type(self).__name__}: direction is 'forward', 'backward' or 'bidirect', not {direction!r}")
        self._attributes = {"hidden_size": hidden_size, "num_layers": num_layers, "direction": direction, "time_major": time_major,
                            "dropout": dropout, **attributes}
        self._names, rows = [], self.gates * hidden_size
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * (2 if both else 1)
            for suffix in ("", "_reverse") if both else ("",):
                place = f"_l{layer}{suffix}"
                setattr(self, f"weight_ih{place}", _xavier([rows, features], features, rows))
                setattr(self, f"weight_hh{place}", _xavier([rows, hidden_size], hidden_size, rows))
                setattr(self, f"bias_ih{place}", _filled([rows], 0))
                setattr(self, f"bias_hh{place}", _filled([rows], 0))
                self._names += [f"{kind}{place}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def forward(self, x, initial_states=None, sequence_length=None):
        """The outputs, and the last state or the pair (h, c) of them."""
        given = [] if initial_states is None else [initial_states] if self.states == 1 else list(initial_states)
        named = dict(zip(("initial_h", "initial_c"), given))
        if sequence_length is not None:
            named["sequence_length"] = sequence_length
        out, *states = _function(self.operation)(x, weights=[getattr(self, name) for name in self._names], training=self.training,
                                                 **self._attributes, **named)
        return out, states[0] if self.states == 1 else tuple(states)

    def extra_repr(self):
        return ", ".join(f"{name}={value}" for name, value in self._attributes.items())


class LSTM(_Recurrent):
    """Long short-term memory."""

    operation, gates, states = "lstm", 4, 2


class GRU(_Recurrent):
    """Gated recurrent units."""

    operation, gates = "gru", 3


class SimpleRNN(_Recurrent):
    """A recurrent network of one activation, "tanh" or "relu"."""

    operation = "simple_rnn"

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 activation="tanh"):
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, activation=activation)


class MultiHeadAttention(Layer):
    """Attention in several heads over [batch, steps, features], with projections of queries, keys, values and results."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, bias=True):
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise _paddle.UsageError(f"MultiHeadAttention: {embed_dim} features are not a multiple of {num_heads} heads")
        self.num_heads, self.dropout = num_heads, dropout
        for name, size in (("q", embed_dim), ("k", kdim or embed_dim), ("v", vdim or embed_dim), ("out", embed_dim)):
            setattr(self, f"{name}_weight", _xavier([size, embed_dim], size, embed_dim))
            setattr(self, f"{name}_bias", _filled([embed_dim], 0) if bias else None)

    def forward(self, query, key=None, value=None, attn_mask=None, is_causal=False):
        """The results, [batch, steps of the query, embed_dim]. Keys and values are those of the query by default."""
        weights = {f"{name}_{kind}": getattr(self, f"{name}_{kind}") for name in ("q", "k", "v", "out") for kind in ("weight", "bias")}
        given = {name: tensor for name, tensor in (("key", key), ("value", value), ("attn_mask", attn_mask)) if tensor is not None}
        return _function("multi_head_attention")(query, num_heads=self.num_heads, is_causal=is_causal, dropout_p=self.dropout,
                                                 training=self.training, **weights, **given)

    def extra_repr(self):
        return f"{self.q_weight.shape[1]}, num_heads={self.num_heads}"


class TransformerEncoderLayer(Layer):
    """Attention and a feed-forward network, each with a residual connection and layer norm."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", normalize_before=False):
        super().__init__()
        from .layers import Dropout, LayerNorm, Linear

        self.normalize_before = normalize_before
        self.self_attn = MultiHeadAttention(d_model, nhead, dropout)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward), Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.activation = _function(activation)
        if self.activation is None:
            raise _paddle.UsageError(f"TransformerEncoderLayer: there is no activation {activation!r}")

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def forward(self, x, attn_mask=None, is_causal=False):
        """[batch, steps, d_model]"""
        if self.normalize_before:
            x = x + self.dropout(self.self_attn(self.norm1(x), attn_mask=attn_mask, is_causal=is_causal))
            return x + self.dropout(self._feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.self_attn(x, attn_mask=attn_mask, is_causal=is_causal)))
        return self.norm2(x + self.dropout(self._feed_forward(x)))
