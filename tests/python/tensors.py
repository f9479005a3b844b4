"""Tensors, operators, indexing, gradients and errors of the Python package, without NumPy."""
import array
import gc
import threading
import unittest

import paddle_toolchain as paddle
from paddle_toolchain.nn import functional as F


class Creation(unittest.TestCase):
    def test_dtypes_of_numbers_and_lists(self):
        for data, dtype, shape in [(1.5, "float32", []), (3, "int64", []), (True, "bool", []),
                                   ([[1, 2], [3, 4.5]], "float32", [2, 2]), ([[True], [False]], "bool", [2, 1]),
                                   ([], "float32", [0]), ([[], []], "float32", [2, 0])]:
            t = paddle.to_tensor(data)
            self.assertEqual((t.dtype, t.shape), (dtype, shape), data)
            self.assertEqual(t.tolist(), data)
        self.assertEqual(paddle.to_tensor([1, 2], "float64").dtype, paddle.float64)
        self.assertEqual(paddle.to_tensor(0.1, "float64").item(), 0.1)

    def test_bad_data(self):
        with self.assertRaises(ValueError):
            paddle.to_tensor([[1, 2], [3]])
        with self.assertRaises(ValueError):
            paddle.to_tensor([1, [2]])
        with self.assertRaises(TypeError):
            paddle.to_tensor(["a"])
        with self.assertRaises(TypeError):
            paddle.to_tensor(object())
        with self.assertRaises(OverflowError):
            paddle.to_tensor([2**70])
        with self.assertRaisesRegex(paddle.UsageError, "float32"):
            paddle.to_tensor([1.0], "flot32")
        with self.assertRaises(paddle.UsageError):
            paddle.to_tensor([1], stop_gradient=False)

    def test_a_copy_is_independent(self):
        a = paddle.to_tensor([1.0, 2.0])
        b = paddle.to_tensor(a)
        b[0] = 9
        self.assertEqual(a.tolist(), [1, 2])
        large = paddle.to_tensor(array.array("Q", [1, 2**64 - 1]))
        self.assertEqual(large.tolist(), [1, 2**64 - 1])
        self.assertEqual(int(large[1]), 2**64 - 1)


class Operators(unittest.TestCase):
    def test_arithmetic(self):
        x, y = paddle.to_tensor([4.0, 9.0]), paddle.to_tensor([2.0, 3.0])
        for result, expected in [(x + y, [6, 12]), (x - 1, [3, 8]), (1 - x, [-3, -8]), (x * 0.5, [2, 4.5]),
                                 (x / y, [2, 3]), (x // 4, [1, 2]), (x % 4, [0, 1]), (x**2, [16, 81]), (2**y, [4, 8]),
                                 (-x, [-4, -9]), (abs(-x), [4, 9]), (+x, [4, 9])]:
            self.assertEqual(result.tolist(), expected)
            self.assertEqual(result.dtype, "float32")
        m = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual((m @ m.T).tolist(), [[5, 11], [11, 25]])
        x += y
        self.assertEqual(x.tolist(), [6, 12])

    def test_comparisons_and_bits(self):
        x = paddle.to_tensor([1, 2, 3])
        self.assertEqual((x == 2).tolist(), [False, True, False])
        self.assertEqual((x != 2).tolist(), [True, False, True])
        self.assertEqual(((x >= 2) & (x < 3)).tolist(), [False, True, False])
        self.assertEqual((~(x > 2) | (x == 3)).tolist(), [True, True, True])
        self.assertEqual((x ^ 1).tolist(), [0, 3, 2])
        self.assertFalse(x[0] == "one")
        self.assertFalse(x is None)
        self.assertEqual(len({x, x}), 1)

    def test_numbers(self):
        self.assertEqual(float(paddle.to_tensor(2.5)), 2.5)
        self.assertEqual(int(paddle.to_tensor([7])), 7)
        self.assertEqual([10, 20, 30][paddle.to_tensor(1)], 20)
        self.assertTrue(paddle.to_tensor(1.0))
        with self.assertRaises(paddle.UsageError):
            bool(paddle.to_tensor([1, 2]))
        with self.assertRaises(TypeError):
            [1][paddle.to_tensor(1.0)]

    def test_functions_and_methods(self):
        x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(paddle.sum(x, axis=0).tolist(), [4, 6])
        self.assertEqual(x.sum(1).tolist(), [3, 7])
        self.assertEqual(paddle.sum(x, dim=0).tolist(), [4, 6])
        self.assertEqual(paddle.concat([x, x], axis=1).shape, [2, 4])
        self.assertEqual(F.relu(-x).tolist(), [[0, 0], [0, 0]])
        values, places = paddle.topk(x, 1)
        self.assertEqual((values.tolist(), places.tolist()), ([[2], [4]], [[1], [1]]))
        self.assertEqual(paddle.cast(x, "int64").dtype, "int64")
        self.assertEqual(x.astype(paddle.float64).dtype, "float64")
        self.assertEqual(x.reshape([4]).tolist(), [1, 2, 3, 4])
        self.assertIn("sum(", paddle.sum.__doc__)
        self.assertIn("softmax", dir(F))
        self.assertIn("cholesky", dir(paddle.linalg))

    def test_in_place(self):
        x = paddle.to_tensor([1.0, 2.0])
        view = x[0:1]
        self.assertIs(x.add_(paddle.to_tensor([10.0, 10.0])), x)
        self.assertEqual(x.tolist(), [11, 12])
        self.assertEqual(view.tolist(), [11])

    def test_random_numbers_repeat(self):
        paddle.seed(5)
        first, second = paddle.uniform([4]).tolist(), paddle.uniform([4]).tolist()
        self.assertNotEqual(first, second)
        paddle.seed(5)
        self.assertEqual(paddle.uniform([4]).tolist(), first)


class Indexing(unittest.TestCase):
    def setUp(self):
        self.x = paddle.arange(0, 24, 1, dtype="int64").reshape([2, 3, 4])
        self.rows = self.x.tolist()

    def test_numbers_and_slices(self):
        x, rows = self.x, self.rows
        self.assertEqual(x[1].tolist(), rows[1])
        self.assertEqual(x[-1, 0].tolist(), rows[-1][0])
        self.assertEqual(x[1, 2, 3].item(), rows[1][2][3])
        self.assertEqual(x[:, 1:].tolist(), [r[1:] for r in rows])
        self.assertEqual(x[..., ::2].tolist(), [[c[::2] for c in r] for r in rows])
        self.assertEqual(x[0, ::-1].tolist(), rows[0][::-1])
        self.assertEqual(x[0, 2:0:-1].tolist(), rows[0][2:0:-1])
        self.assertEqual(x[0, 5:].shape, [0, 4])
        self.assertEqual(x[:, None].shape, [2, 1, 3, 4])
        self.assertEqual([r.tolist() for r in x], rows)
        self.assertEqual(len(x), 2)

    def test_tensors(self):
        x, rows = self.x, self.rows
        self.assertEqual(x[paddle.to_tensor([1, 0])].tolist(), [rows[1], rows[0]])
        self.assertEqual(x[[1, -1]].tolist(), [rows[1], rows[1]])
        self.assertEqual(x[:, [2, 0]].tolist(), [[r[2], r[0]] for r in rows])
        self.assertEqual(x[[0, 1], [1, 2]].tolist(), [rows[0][1], rows[1][2]])
        self.assertEqual(x[x > 20].tolist(), [21, 22, 23])
        self.assertEqual(x[paddle.to_tensor([False, True])].tolist(), [rows[1]])

    def test_writes(self):
        x = self.x
        x[0, 0] = 100
        self.assertEqual(x[0, 0].tolist(), [100] * 4)
        x[:, 1, ::2] = paddle.to_tensor([[1, 2], [3, 4]])
        self.assertEqual(x[:, 1].tolist(), [[1, 5, 2, 7], [3, 17, 4, 19]])
        x[x == 100] = -1
        self.assertEqual(x[0, 0].tolist(), [-1] * 4)
        x[[1, 0], 2] = paddle.to_tensor([[7], [8]])
        self.assertEqual(x[:, 2].tolist(), [[8] * 4, [7] * 4])

    def test_errors(self):
        for index in [2, -3, (0, 3), (0, 0, 0, 0), [5]]:
            with self.assertRaises(IndexError, msg=index):
                self.x[index]
        with self.assertRaises(TypeError):
            self.x[1.5]
        with self.assertRaises(ValueError):
            self.x[::0]
        with self.assertRaises(paddle.UsageError):
            self.x[0] = paddle.to_tensor([1, 2, 3])


class Gradients(unittest.TestCase):
    def test_backward_adds_up(self):
        x = paddle.to_tensor([2.0, -1.0], stop_gradient=False)
        self.assertTrue(x.is_leaf)
        self.assertIsNone(x.grad)
        y = (x * x).sum()
        self.assertFalse(y.stop_gradient)
        self.assertFalse(y.is_leaf)
        y.backward()
        self.assertEqual(x.grad.tolist(), [4, -2])
        (3 * x).backward(paddle.to_tensor([1.0, 2.0]))
        self.assertEqual(x.grad.tolist(), [7, 4])
        x.clear_grad()
        self.assertIsNone(x.grad)

    def test_grad_of_any_order(self):
        x = paddle.to_tensor(2.0, stop_gradient=False)
        first = paddle.grad(x**3, x, create_graph=True)[0]
        self.assertEqual(first.item(), 12)
        self.assertEqual(paddle.grad(first, x)[0].item(), 12)
        other = paddle.to_tensor(1.0, stop_gradient=False)
        with self.assertRaises(paddle.UsageError):
            paddle.grad(x * 2, [other])
        self.assertEqual(paddle.grad(x * 2, [other], allow_unused=True), [None])
        outputs, product = paddle.autograd.vjp(lambda t: t * t, paddle.to_tensor([1.0, 3.0]))
        self.assertEqual((outputs.tolist(), product.tolist()), ([1, 9], [2, 6]))
        outputs, product = paddle.autograd.jvp(lambda t: t * t, paddle.to_tensor([1.0, 3.0]),
                                               paddle.to_tensor([1.0, 0.5]))
        self.assertEqual((outputs.tolist(), product.tolist()), ([1, 9], [2, 3]))

    def test_no_grad(self):
        x = paddle.to_tensor(1.0, stop_gradient=False)
        with paddle.no_grad():
            self.assertTrue((x * 2).stop_gradient)
            with paddle.enable_grad():
                self.assertFalse((x * 2).stop_gradient)
        self.assertTrue(paddle.no_grad()(lambda: x * 2)().stop_gradient)
        self.assertFalse((x * 2).stop_gradient)
        self.assertTrue((x * 2).detach().stop_gradient)

    def test_leaves_in_place(self):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        with self.assertRaises(paddle.UsageError):
            x[0] = 5
        with paddle.no_grad():
            x[0] = 5
            x.add_(paddle.to_tensor([1.0, 1.0]))
        self.assertEqual(x.tolist(), [6, 3])
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [12, 6])

    def test_through_indexing(self):
        x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
        (x[0] * 2 + x[[1, 1]].sum(0)).sum().backward()
        self.assertEqual(x.grad.tolist(), [[2, 2], [2, 2]])

    def test_errors(self):
        with self.assertRaises(paddle.UsageError):
            paddle.to_tensor(1.0).backward()
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        with self.assertRaises(paddle.UsageError):
            (x * 2).backward(paddle.to_tensor([1.0]))
        with self.assertRaises(TypeError):
            (x * 2).backward(1.0)


class Errors(unittest.TestCase):
    def test_types_and_messages(self):
        x = paddle.to_tensor([[1.0, 2.0]])
        with self.assertRaises(paddle.UsageError) as caught:
            paddle.matmul(x, x)
        self.assertIsInstance(caught.exception, (paddle.Error, ValueError))
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("matmul", str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(paddle.UsageError, "axis"):
            paddle.softmax(x, axes=1)
        with self.assertRaises(AttributeError):
            paddle.softmx
        with self.assertRaises(AttributeError):
            x.softmx
        with self.assertRaises(AttributeError):
            paddle.nn.functional.cholesky
        with self.assertRaises(TypeError):
            paddle.relu(object())
        with self.assertRaises(TypeError):
            x + "a"
        with self.assertRaises(paddle.ModelError):
            paddle.load(__file__)


class Buffers(unittest.TestCase):
    def test_views_are_read_only_and_share(self):
        x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        view = memoryview(x)
        self.assertEqual((view.shape, view.format, view.readonly, view.tolist()), ((2, 2), "f", True, x.tolist()))
        self.assertEqual(memoryview(x.T).tolist(), [[1, 3], [2, 4]])
        self.assertEqual(memoryview(paddle.to_tensor(3)).tolist(), 3)
        del x
        gc.collect()
        self.assertEqual(view.tolist(), [[1, 2], [3, 4]])
        with self.assertRaises(BufferError):
            memoryview(paddle.to_tensor([1.0]).astype("bfloat16"))

    def test_shared_with_array(self):
        numbers = array.array("d", [1, 2, 3])
        shared, copied = paddle.from_numpy(numbers), paddle.to_tensor(numbers)
        numbers[0] = 7
        self.assertEqual((shared.tolist(), copied.tolist()), ([7, 2, 3], [1, 2, 3]))
        self.assertEqual(paddle.from_numpy(memoryview(numbers)[::-2]).tolist(), [3, 7])
        with self.assertRaises(BufferError):  # it may not be resized while it is shared
            numbers.append(4)
        del shared
        gc.collect()

    def test_writable_memory(self):
        numbers = array.array("f", [1, 2, 3])
        shared = paddle.from_numpy(numbers, writable=True)
        numbers[0] = 7
        end = shared[1:]
        end.add_(1.0)
        self.assertEqual((shared.tolist(), numbers.tolist()), ([7, 3, 4], [7, 3, 4]))
        view = memoryview(shared)
        self.assertFalse(view.readonly)
        view[2] = 9
        self.assertEqual(((shared * 2).tolist(), end.tolist()), ([14, 6, 18], [3, 9]))
        with self.assertRaises(BufferError):
            paddle.from_numpy(b"abc", writable=True)

    def test_dlpack(self):
        for dtype in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                      "bfloat16", "float32", "float64", "complex64"]:
            x = paddle.to_tensor([[0, 1, 1], [1, 0, 1]]).astype(dtype)
            back = paddle.from_dlpack(x)
            self.assertEqual((back.dtype, back.shape), (dtype, [2, 3]))
            self.assertEqual(back.astype("float32").tolist(), [[0, 1, 1], [1, 0, 1]])
        self.assertEqual(paddle.from_dlpack(x.astype("float32").T).tolist(), [[0, 1], [1, 0], [1, 1]])
        capsule = x.__dlpack__()
        paddle.from_dlpack(capsule)
        with self.assertRaises(BufferError):
            paddle.from_dlpack(capsule)
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            paddle.to_tensor(1.0, stop_gradient=False).__dlpack__()


class Threads(unittest.TestCase):
    def test_threads_compute_at_the_same_time(self):
        results = [None] * 4

        def work(i):
            for _ in range(50):
                x = paddle.to_tensor([float(i)] * 30000, stop_gradient=False)
                (x * x).mean().backward()
            results[i] = round(x.grad.sum().item(), 3)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [0, 2, 4, 6])


if __name__ == "__main__":
    unittest.main()
