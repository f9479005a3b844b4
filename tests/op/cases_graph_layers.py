"""Cases of layers of graphs, from torch_geometric's layers, and of the operations that they are made of,
from indexing in PyTorch. Run it with an interpreter that has torch_geometric:

    python cases_graph_layers.py
"""

import numpy as np
import torch
from torch.func import functional_call
from torch_table import Table


def edges(t, nodes, count, batch=None, dtype="int64"):
    shape = (count,) if batch is None else (batch, count)
    return tuple(t.integers(0, nodes, *shape, dtype=dtype) for _ in range(2))


def gather(x, index):
    index = torch.as_tensor(index).long()
    if x.dim() == 2:
        return x[index]
    return torch.stack([gather(a, b) for a, b in zip(x, index)])


def reduced(x, targets, sources=None, weights=None, count=0, reduce="sum"):
    if x.dim() > 2:
        parts = [sources if sources is None else sources[b] for b in range(len(x))]
        scales = [weights if weights is None else weights[b] for b in range(len(x))]
        return torch.stack([reduced(x[b], targets[b], parts[b], scales[b], count, reduce) for b in range(len(x))])
    targets = torch.as_tensor(targets).long()
    messages = x if sources is None else gather(x, sources)
    if weights is not None:
        messages = messages * weights.repeat_interleave(x.shape[1] // weights.shape[1], dim=1)
    out = torch.zeros(count, x.shape[1], dtype=x.dtype)
    index = targets[:, None].expand_as(messages)
    return out.scatter_reduce(0, index, messages, {"sum": "sum", "mean": "mean", "max": "amax"}[reduce], include_self=False)


def dot(x, y, sources, targets, heads=1):
    products = gather(x, sources) * gather(y, targets)
    return products.reshape(*products.shape[:-1], heads, products.shape[-1] // heads).sum(-1)


def named(function, args):
    """A function of values in the order of `args`."""
    return lambda *values: function(**dict(zip(args, values)))


def layer(module, names):
    """A layer of torch_geometric as a function of our arguments. `names`: its parameters by ours, and how they become them."""

    def call(x, sources, targets, edge_weights=None, relations=None, **parameters):
        given = {theirs: change(parameters[ours]) for ours, (theirs, change) in names.items() if ours in parameters}
        further = [a for a in (edge_weights, relations) if a is not None]
        return functional_call(module, given, (x, torch.stack([sources, targets]), *further))

    return call


def turned(w):
    return w.T


def same(w):
    return w


def main():
    import torch_geometric.nn as pyg

    t = Table("graph_layers")

    def add(op, args, function):
        t.add(op, args, named(function, args))

    for nodes, count, batch, dtype in ((5, 9, None, "int64"), (4, 7, 3, "int32"), (3, 0, None, "int64")):
        front = () if batch is None else (batch,)
        sources, targets = edges(t, nodes, count, batch, dtype)
        x = t.normal(*front, nodes, 6)
        add("graph_gather", {"x": x, "index": sources}, gather)
        add("graph_dot", {"x": x, "y": t.normal(*front, nodes, 6), "sources": sources, "targets": targets, "heads": 3}, dot)
        add("graph_dot", {"x": x, "y": t.normal(*front, nodes, 6), "sources": sources, "targets": targets}, dot)
        for reduce in ("sum", "mean", "max"):
            add("graph_reduce", {"x": x, "targets": targets, "sources": sources, "count": nodes, "reduce": reduce}, reduced)
            add("graph_reduce", {"x": t.normal(*front, count, 5), "targets": np.sort(targets), "count": nodes + 1, "reduce": reduce}, reduced)
        add("graph_reduce", {"x": x, "targets": targets, "sources": sources, "weights": t.normal(*front, count, 2), "count": nodes}, reduced)

    # Without loops and double edges, which torch_geometric treats in other ways.
    pairs = [(a, b) for a in range(7) for b in range(7) if a != b]
    chosen = np.array([pairs[k] for k in t.random.permutation(len(pairs))[:15]])
    chosen = chosen[chosen[:, 1] != 6]  # a node without edges
    graph = {"x": t.normal(7, 4), "sources": chosen[:, 0], "targets": chosen[:, 1]}
    count = len(chosen)
    for loops in (True, False):
        for weighted in (False, True):
            extra = {"edge_weights": t.uniform(0.5, 2, count)} if weighted else {}
            module = pyg.GCNConv(4, 3, add_self_loops=loops)
            add("gcn", {**graph, "weight": t.normal(4, 3), "bias": t.normal(3), **extra, "self_loops": loops},
                  layer(module, {"weight": ("lin.weight", turned), "bias": ("bias", same)}))
    module = pyg.GCNConv(4, 3, add_self_loops=False, normalize=False, bias=False)
    add("gcn", {**graph, "weight": t.normal(4, 3), "self_loops": False, "normalize": False}, layer(module, {"weight": ("lin.weight", turned)}))
    for reduce in ("mean", "sum", "max"):
        for out in (3, 6):
            module = pyg.SAGEConv(4, out, aggr=reduce)
            add("sage", {**graph, "weight": t.normal(4, out), "root_weight": t.normal(4, out), "bias": t.normal(out), "reduce": reduce},
                  layer(module, {"weight": ("lin_l.weight", turned), "root_weight": ("lin_r.weight", turned), "bias": ("lin_l.bias", same)}))
    for concat in (True, False):
        for loops in (True, False):
            module = pyg.GATConv(4, 3, heads=2, concat=concat, add_self_loops=loops)
            add("gat", {**graph, "weight": t.normal(4, 6), "source_attention": t.normal(2, 3), "target_attention": t.normal(2, 3),
                          "bias": t.normal(6 if concat else 3), "concat": concat, "self_loops": loops},
                  layer(module, {"weight": ("lin.weight", turned), "source_attention": ("att_src", lambda a: a[None]),
                                 "target_attention": ("att_dst", lambda a: a[None]), "bias": ("bias", same)}))
    mlp = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    module = pyg.GINConv(mlp, train_eps=True)
    add("gin", {**graph, "weight1": t.normal(4, 5), "weight2": t.normal(5, 3), "bias1": t.normal(5), "bias2": t.normal(3), "eps": t.normal(1)},
          layer(module, {"weight1": ("nn.0.weight", turned), "weight2": ("nn.2.weight", turned), "bias1": ("nn.0.bias", same),
                         "bias2": ("nn.2.bias", same), "eps": ("eps", same)}))
    add("light_gcn", graph, layer(pyg.LGConv(), {}))
    add("light_gcn", {**graph, "edge_weights": t.uniform(0.5, 2, count)}, layer(pyg.LGConv(), {}))
    relations = t.integers(0, 3, count)
    module = pyg.RGCNConv(4, 2, 3)
    add("rgcn", {**graph, "relations": relations, "weight": t.normal(3, 4, 2), "root_weight": t.normal(4, 2), "bias": t.normal(2)},
          layer(module, {"weight": ("weight", same), "root_weight": ("root", same), "bias": ("bias", same)}))

    x, index = t.normal(4, 3), np.array([0, 1, 2, 3])
    t.reject("graph_gather", {"x": x, "index": index + 1})
    t.reject("graph_reduce", {"x": x, "targets": index, "count": 3})
    t.reject("graph_reduce", {"x": x, "targets": index[:3], "count": 4})
    t.reject("graph_reduce", {"x": x, "targets": index, "sources": index, "weights": t.normal(4, 2), "count": 4})
    t.reject("graph_reduce", {"x": x, "targets": index, "sources": index, "weights": t.normal(4, 1), "count": 4, "reduce": "mean"})
    t.reject("graph_dot", {"x": x, "y": x, "sources": index, "targets": index - 1})
    t.reject("gcn", {"x": x, "sources": index, "targets": index[:2], "weight": t.normal(3, 2)})
    t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
