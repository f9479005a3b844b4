"""Collectives of tensors on the ranks of a run, each against the values that the ranks' numbers give."""
import os
import sys
import unittest

import paddle_toolchain as paddle
import paddle_toolchain.distributed as dist
from paddle_toolchain import nn

dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()


def tensor(*numbers, dtype="float32"):
    return paddle.to_tensor(list(numbers), dtype)


class Collectives(unittest.TestCase):
    def test_all_reduce(self):
        for dtype in ["float32", "float64", "int32", "int64", "float16", "bfloat16", "complex64"]:
            x = tensor(rank + 1, 2, dtype=dtype)
            self.assertTrue(dist.all_reduce(x).is_completed())
            self.assertEqual(x.dtype, dtype)
            self.assertEqual(x.tolist(), [size * (size + 1) / 2, 2 * size])
        for op, wanted in [(dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (size + 1) / 2)]:
            x = tensor(rank + 1)
            dist.all_reduce(x, op)
            self.assertEqual(x.tolist(), [wanted])
        x = tensor(rank + 1)
        dist.all_reduce(x, dist.ReduceOp.PROD)
        self.assertEqual(x.item(), [1, 1, 2, 6, 24][size])
        x = paddle.to_tensor([rank == 0, True, False])
        dist.all_reduce(x)
        self.assertEqual(x.tolist(), [True, True, False])

    def test_tasks(self):
        large = paddle.full([300000], float(rank))
        tasks = [dist.all_reduce(large, sync_op=False), dist.all_reduce(small := tensor(1.0), sync_op=False)]
        self.assertTrue(all(task.wait() for task in tasks))
        self.assertTrue(all(task.is_completed() for task in tasks))
        self.assertEqual((large.max().item(), large.min().item(), small.item()), (sum(range(size)), sum(range(size)), size))
        dist.all_reduce(tensor(1.0), sync_op=False)  # dropped without a wait
        dist.barrier()

    def test_broadcast_reduce(self):
        x = tensor(rank, 7)
        dist.broadcast(x, src=size - 1)
        self.assertEqual(x.tolist(), [size - 1, 7])
        x = tensor(rank + 1)
        dist.reduce(x, dst=size - 1)
        self.assertEqual(x.item(), size * (size + 1) / 2 if rank == size - 1 else rank + 1)

    def test_gather_scatter(self):
        out = []
        dist.all_gather(out, tensor(rank, -rank))
        self.assertEqual([x.tolist() for x in out], [[i, -i] for i in range(size)])
        out = []
        dist.gather(tensor(rank), out if rank == 1 else None, dst=1)
        self.assertEqual([x.item() for x in out], list(range(size)) if rank == 1 else [])
        x = tensor(0)
        dist.scatter(x, [tensor(10 + i) for i in range(size)] if rank == 1 else None, src=1)
        self.assertEqual(x.item(), 10 + rank)
        x = tensor(0)
        dist.reduce_scatter(x, [tensor(rank * 10 + i) for i in range(size)])
        self.assertEqual(x.item(), sum(10 * r + rank for r in range(size)))

    def test_all_to_all(self):
        out = []
        dist.alltoall(out, [tensor(rank * 10 + i) for i in range(size)])
        self.assertEqual([x.item() for x in out], [i * 10 + rank for i in range(size)])
        # Rank r sends i + 1 rows to rank i.
        rows = tensor(*[100 * rank + i for i in range(size) for _ in range(i + 1)])
        x = paddle.zeros([size * (rank + 1)])
        dist.alltoall_single(x, rows, [i + 1 for i in range(size)], [rank + 1] * size)
        self.assertEqual(x.tolist(), [100 * r + rank for r in range(size) for _ in range(rank + 1)])

    def test_messages(self):
        right, left = (rank + 1) % size, (rank - 1) % size
        dist.send(tensor(rank), right)
        dist.isend(tensor(rank + 0.5), right)
        first, second = tensor(0), tensor(0)
        dist.recv(first, left)
        task = dist.irecv(second, left)
        task.wait()
        self.assertEqual((first.item(), second.item()), (left, left + 0.5))
        x = tensor(0)
        for task in dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor(rank), left), dist.P2POp(dist.irecv, x, right)]):
            task.wait()
        self.assertEqual(x.item(), right)

    def test_groups(self):
        group = dist.new_group([size - 1, 0])
        other = dist.new_group([1])
        self.assertEqual((group.ranks, group.nranks, group.rank), ([0, size - 1], 2, {0: 0, size - 1: 1}.get(rank, -1)))
        self.assertIs(dist.get_group(other.id), other)
        if group.is_member():
            x = tensor(rank + 1)
            dist.all_reduce(x, group=group)
            self.assertEqual(x.item(), size + 1)
            dist.broadcast(x, 0, group)
            dist.barrier(group)
        else:
            with self.assertRaisesRegex(paddle.UsageError, "is not in the group"):
                dist.all_reduce(tensor(1), group=group)
        dist.destroy_process_group(other)
        with self.assertRaises(paddle.UsageError):
            dist.get_group(other.id)

    def test_objects(self):
        out = []
        dist.all_gather_object(out, {"rank": rank, "text": "x" * rank})
        self.assertEqual(out, [{"rank": r, "text": "x" * r} for r in range(size)])
        items = [rank, "a"] if rank == 0 else [None, None]
        dist.broadcast_object_list(items, 0)
        self.assertEqual(items, [0, "a"])
        out = []
        dist.scatter_object_list(out, [("for", r) for r in range(size)] if rank == 0 else None)
        self.assertEqual(out, [("for", rank)])

    def test_errors(self):
        for call, message in [
            (lambda: dist.all_reduce(tensor(1), "median"), "unknown reduction"),
            (lambda: dist.all_reduce(tensor(1, dtype="int64"), "avg"), "average of int64"),
            (lambda: dist.all_reduce(tensor(1, dtype="complex64"), "max"), "no order"),
            (lambda: dist.broadcast(tensor(1), size), "not in the group"),
            (lambda: dist.send(tensor(1), rank), "another rank"),
            (lambda: dist.new_group([0, 0]), "different ranks"),
            (lambda: dist.new_group([size]), "different ranks"),
            (lambda: dist.alltoall([], []), "a list of"),
            (lambda: dist.alltoall_single(tensor(1), paddle.zeros([size]), [size + 1] * size), "does not divide"),
            (lambda: dist.reduce_scatter(tensor(1), [tensor(1, 2)] * size), "expected tensors of"),
        ]:
            with self.assertRaisesRegex(paddle.UsageError, message):
                call()


class Training(unittest.TestCase):
    def net(self, start):
        paddle.seed(start)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def trained(self, steps, wrap, share, accumulate=False):
        net = self.net(1 if not wrap else 1 + rank)  # DataParallel begins with the weights of rank 0
        model = dist.DataParallel(net) if wrap else net
        optimizer = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
        for step in range(steps):
            x = paddle.to_tensor([[((7 * i + j + step) % 5) / 5.0 for j in range(4)] for i in range(4 * size)])
            halves = [x[::2], x[1::2]] if accumulate else [x]
            for number, part in enumerate(halves):
                own = part[rank::size] if share else part
                if wrap and accumulate and number == 0:
                    with model.no_sync():
                        (model(own)**2).mean().backward()
                else:
                    (model(own)**2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        return [p.tolist() for p in net.parameters()]

    def test_compiled_steps(self):
        def weights(compiled):
            net = self.net(1)
            model = dist.DataParallel(net)
            optimizer = paddle.optimizer.Momentum(0.1, parameters=net.parameters())

            def step(x):
                loss = (model(x)**2).mean()
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                return loss

            run = paddle.jit.to_static(step) if compiled else step
            for _ in range(3):
                run(paddle.to_tensor([[1.0, 2.0, 0.5, rank]]))
            return [p.tolist() for p in net.parameters()]

        compiled = weights(True)
        self.assert_close(compiled, weights(False))
        out = []
        dist.all_gather_object(out, compiled)
        self.assertTrue(all(x == compiled for x in out))

    def assert_close(self, a, b):
        flat = lambda v: [y for x in v for y in flat(x)] if isinstance(v, list) else [v]  # noqa: E731
        for x, y in zip(flat(a), flat(b)):
            self.assertAlmostEqual(x, y, delta=1e-6)

    def test_data_parallel(self):
        for accumulate in [False, True]:
            one = self.trained(5, False, False, accumulate)
            shared = self.trained(5, True, True, accumulate)
            self.assert_close(one, shared)
            out = []
            dist.all_gather_object(out, shared)
            self.assertTrue(all(x == shared for x in out))  # the same bits on all ranks

    def test_sampler(self):
        data = paddle.io.TensorDataset([paddle.arange(0, 23, 1)])
        for shuffle in [False, True]:
            sampler = paddle.io.DistributedBatchSampler(data, batch_size=3, shuffle=shuffle)
            loader = paddle.io.DataLoader(data, batch_sampler=sampler)
            orders = []
            for epoch in range(2):
                sampler.set_epoch(epoch)
                mine = [i for batch in loader for i in batch[0].tolist()]
                self.assertEqual(len(mine), -(-23 // size))
                out = []
                dist.all_gather_object(out, mine)
                self.assertEqual({i for part in out for i in part}, set(range(23)))
                orders.append(mine)
            self.assertEqual(orders[0] == orders[1], not shuffle)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    sys.stdout.flush()
    dist.destroy_process_group()
    os._exit(not program.result.wasSuccessful()) if not program.result.wasSuccessful() else None
