"""Cases of operations on graphs. Sampling is checked where nothing is random."""

import numpy as np
import paddle

ROW = np.array([3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7])
COLPTR = np.array([0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13])


def cases_graph(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    ids = np.array([0, 0, 1, 3, 3, 3])
    for reduce in ("sum", "mean", "max", "min"):
        t.add(f"segment_{reduce}", {"data": x(6, 3), "segment_ids": ids}, function=getattr(paddle.geometric, f"segment_{reduce}"))
        t.add(f"incubate_segment_{reduce}", {"data": t.normal(6, 2, 2), "segment_ids": ids.astype(np.int32)},
              function=getattr(paddle.geometric, f"segment_{reduce}"))
        t.add(f"segment_{reduce}", {"data": t.integers(-5, 6, 6, 3, dtype="int32"), "segment_ids": ids}, grad=False,
              function=getattr(paddle.geometric, f"segment_{reduce}"))
    t.reject("segment_sum", {"data": x(6, 3), "segment_ids": ids[:5]})
    t.reject("segment_sum", {"data": x(6, 3), "segment_ids": ids - 1})
    t.reject("segment_sum", {"data": x(6, 3), "segment_ids": x(6)})
    source, target = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 1, 0, 1])
    for reduce in ("sum", "mean", "max", "min"):
        for size in (None, 3, 6):
            t.add("send_u_recv", {"x": x(4, 3), "src_index": source, "dst_index": target, "reduce_op": reduce, "out_size": size})
        t.add("graph_send_recv", {"x": x(4, 3), "src_index": source, "dst_index": target, "pool_type": reduce},
              function=paddle.incubate.graph_send_recv)
        for message in ("add", "sub", "mul", "div"):
            t.add("send_ue_recv", {"x": x(4, 3), "y": t.uniform(0.5, 2, 5, 1 if message == "mul" else 3, dtype="float64"), "src_index": source,
                                   "dst_index": target, "message_op": message, "reduce_op": reduce})
    for message in ("add", "sub", "mul", "div"):
        t.add("send_uv", {"x": x(4, 3), "y": t.uniform(0.5, 2, 4, 3, dtype="float64"), "src_index": source, "dst_index": target, "message_op": message})
    t.add("send_u_recv", {"x": x(0, 3), "src_index": source[:0], "dst_index": target[:0]}, outputs=[np.zeros((0, 3))])
    t.reject("send_u_recv", {"x": x(4, 3), "src_index": source + 1, "dst_index": target})
    t.reject("send_u_recv", {"x": x(4, 3), "src_index": source, "dst_index": target + 4})
    t.reject("send_u_recv", {"x": x(4, 3), "src_index": source, "dst_index": target[:3]})
    t.reject("send_uv", {"x": x(4, 3), "y": x(4, 3), "src_index": source, "dst_index": target, "message_op": "pow"})

    nodes = np.array([0, 8, 1, 2])
    neighbors = np.concatenate([ROW[COLPTR[n] : COLPTR[n + 1]] for n in nodes])
    counts = np.array([COLPTR[n + 1] - COLPTR[n] for n in nodes], np.int32)
    edges = np.concatenate([np.arange(COLPTR[n], COLPTR[n + 1]) for n in nodes]) + 100
    for op in ("sample_neighbors", "graph_sample_neighbors"):
        for size in (-1, 2):
            t.add(op, {"row": ROW, "colptr": COLPTR, "input_nodes": nodes, "sample_size": size}, outputs=[neighbors, counts])
        t.add(op, {"row": ROW, "colptr": COLPTR, "input_nodes": nodes, "eids": np.arange(13) + 100, "return_eids": True},
              outputs=[neighbors, counts, edges])
    t.add("weighted_sample_neighbors", {"row": ROW, "colptr": COLPTR, "edge_weight": t.uniform(0.1, 1, 13), "input_nodes": nodes, "sample_size": 5},
          outputs=[neighbors, counts])
    # Of two edges, one has no weight.
    weight = np.ones(13, np.float32)
    weight[[0, 3, 11]] = 0
    t.add("weighted_sample_neighbors", {"row": ROW, "colptr": COLPTR, "edge_weight": weight, "input_nodes": nodes, "sample_size": 1},
          outputs=[np.array([7, 7, 0, 1]), np.ones(4, np.int32)])
    t.reject("sample_neighbors", {"row": ROW, "colptr": COLPTR, "input_nodes": nodes + 5})
    t.reject("sample_neighbors", {"row": ROW, "colptr": COLPTR + 1, "input_nodes": nodes})
    t.reject("sample_neighbors", {"row": ROW, "colptr": COLPTR, "input_nodes": nodes, "return_eids": True})

    three = np.array([0, 1, 2])
    first, second = np.array([8, 9, 0, 4, 7, 6, 7]), np.array([0, 2, 3, 5, 1])
    count_a, count_b = np.array([2, 3, 2], np.int32), np.array([1, 3, 1], np.int32)
    t.add("reindex_graph", {"x": three, "neighbors": first, "count": count_a}, grad=False)
    t.add("graph_reindex", {"x": three, "neighbors": first, "count": count_a}, grad=False, function=paddle.incubate.graph_reindex)
    t.add("reindex_heter_graph", {"x": three, "neighbors": [first, second], "count": [count_a, count_b]}, grad=False)
    t.reject("reindex_graph", {"x": three, "neighbors": first, "count": count_b})
    # By hand: the neighbors of the four nodes, then those of 3, 7, 9.
    src, dst, order = [], [], list(nodes)
    begin = 0
    for _ in range(2):
        end = len(order)
        for i in range(begin, end):
            for n in ROW[COLPTR[order[i]] : COLPTR[order[i] + 1]]:
                if n not in order:
                    order.append(n)
                src.append(order.index(n))
                dst.append(i)
        begin = end
    t.add("graph_khop_sampler", {"row": ROW, "colptr": COLPTR, "input_nodes": nodes, "sample_sizes": [-1, 4]},
          outputs=[np.array(src)[:, None], np.array(dst)[:, None], np.array(order), np.arange(4)])
    t.reject("graph_khop_sampler", {"row": ROW, "colptr": COLPTR, "input_nodes": nodes, "sample_sizes": []})
