"""Memory shared with NumPy and, where it is installed, PyTorch: equal addresses in both directions."""
import gc
import resource
import unittest

import numpy as np
import paddle_toolchain as paddle

try:
    import torch
except ImportError:
    torch = None

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]


def forms(dtype):
    """Contiguous, strided, reversed, empty and 0-D arrays."""
    whole = np.arange(24).reshape(2, 3, 4).astype(dtype)
    return [whole, whole[:, ::2, 1:], whole.transpose(2, 0, 1), whole[::-1, :, ::-2], whole[:0], np.array(whole[1, 2, 3])]

# NumPy reads bool from DLPack since 1.25.
HAS_BOOL_DLPACK = tuple(map(int, np.__version__.split(".")[:2])) >= (1, 25)


class NumPy(unittest.TestCase):
    def test_shared_in_both_directions(self):
        for dtype in DTYPES:
            for array in forms(dtype):
                tensor = paddle.from_numpy(array)
                back = tensor.numpy()
                self.assertEqual((tensor.dtype, tensor.shape), (dtype, list(array.shape)))
                self.assertEqual(str(back.dtype), dtype)
                self.assertTrue(np.array_equal(back, array))
                self.assertFalse(back.flags.writeable)
                if array.size:
                    self.assertEqual(back.ctypes.data, array.ctypes.data)
                    if array.dtype != bool or HAS_BOOL_DLPACK:
                        self.assertEqual(np.from_dlpack(tensor).ctypes.data, array.ctypes.data)
                        self.assertEqual(paddle.from_dlpack(array).numpy().ctypes.data, array.ctypes.data)

    def test_copies(self):
        array = np.ones(3, "float32")
        tensor = paddle.to_tensor(array)
        array[0] = 5
        self.assertEqual(tensor.tolist(), [1, 1, 1])
        own = tensor.numpy(copy=True)
        own[0] = 7
        self.assertEqual(tensor.tolist(), [1, 1, 1])
        view = tensor.numpy()
        tensor[0] = 9  # a new value: views keep the old one
        self.assertEqual((view[0], tensor[0].item()), (1, 9))

    def test_writable(self):
        for array in forms("float32"):
            if not array.size:
                continue
            tensor = paddle.from_numpy(array, writable=True)
            array[...] = 3
            self.assertTrue(np.array_equal(tensor.numpy(), array))
            tensor.add_(1.0)
            self.assertTrue((array == 4).all())
            if tensor.ndim:
                tensor[0] = 6
                tensor[-1:].add_(1.0)
                self.assertTrue(np.array_equal(tensor.numpy(), array))
                self.assertEqual(array[-1].max(), 7 if len(array) == 1 else 5)
        line = np.arange(5.0)
        tensor = paddle.from_numpy(line, writable=True)
        tensor[:] = tensor.flip(0)
        self.assertEqual(line.tolist(), [4, 3, 2, 1, 0])

    def test_writable_views(self):
        tensor = paddle.to_tensor([1.0, 2.0])
        before = tensor.detach()
        old = tensor.numpy()
        view = tensor.numpy(writable=True)
        view[0] = 5
        self.assertEqual((tensor.tolist(), before.tolist(), old.tolist()), ([5, 2], [1, 2], [1, 2]))
        tensor.set_value([7.0, 8.0])
        self.assertEqual(view.tolist(), [7, 8])
        self.assertFalse(tensor.numpy().flags.writeable)
        self.assertTrue(tensor.numpy(writable=True).flags.writeable)
        self.assertEqual(tensor.numpy(writable=True).ctypes.data, view.ctypes.data)
        del tensor
        gc.collect()
        self.assertEqual(view.tolist(), [7, 8])

    def test_writable_parameters(self):
        layer = paddle.nn.Linear(2, 1)
        view = layer.weight.numpy(writable=True)
        view[...] = 1
        layer.bias.set_value([0.0])
        function = paddle.jit.to_static(layer.forward)
        x = paddle.to_tensor([[1.0, 2.0]])
        self.assertEqual((layer(x).item(), function(x).item()), (3, 3))
        view[...] = 2
        self.assertEqual((layer(x).item(), function(x).item()), (6, 6))
        optimizer = paddle.optimizer.SGD(0.5, parameters=layer.parameters())
        layer(x).sum().backward()
        optimizer.step()
        self.assertEqual(view.ravel().tolist(), [1.5, 1])
        self.assertEqual(layer.weight.flatten().tolist(), [1.5, 1])

    def test_writable_errors(self):
        fixed = np.ones(2)
        fixed.setflags(write=False)
        with self.assertRaises((BufferError, ValueError)):
            paddle.from_numpy(fixed, writable=True)
        unaligned = np.frombuffer(bytearray(17), "uint8")[1:].view("float64")
        with self.assertRaisesRegex(BufferError, "aligned"):
            paddle.from_numpy(unaligned, writable=True)
        recorded = paddle.to_tensor([1.0], stop_gradient=False) * 2
        with self.assertRaisesRegex(paddle.UsageError, "detach"):
            recorded.numpy(writable=True)
        self.assertTrue(recorded.detach().numpy(writable=True).flags.writeable)

    def test_mixed_operands(self):
        array, tensor = np.array([1.0, 2.0], "float32"), paddle.to_tensor([10.0, 20.0])
        self.assertEqual((tensor + array).tolist(), [11, 22])
        self.assertIsInstance(array - tensor, paddle.Tensor)
        self.assertEqual((array - tensor).tolist(), [-9, -18])
        self.assertEqual(paddle.add(tensor, array).tolist(), [11, 22])
        self.assertEqual((tensor * np.float32(2)).tolist(), [20, 40])
        self.assertEqual(tensor[np.array([1, 0])].tolist(), [20, 10])
        self.assertEqual(paddle.reshape(tensor, [np.int64(2), 1]).shape, [2, 1])

    def test_lifetimes(self):
        view = paddle.to_tensor([1.0, 2.0]).numpy()
        tensor = paddle.from_numpy(np.array([3.0, 4.0]))
        gc.collect()
        self.assertEqual((view.tolist(), tensor.tolist()), ([1, 2], [3, 4]))

    def test_a_large_array_is_not_copied(self):
        array = np.ones(32 << 20, "float64")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        back = paddle.from_numpy(array).numpy()
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 1024)
        self.assertEqual(back.ctypes.data, array.ctypes.data)

    def test_other_elements(self):
        for array in [np.array(["a"]), np.array([object()]), np.array([1], ">i4")]:
            with self.assertRaises(TypeError):
                paddle.to_tensor(array)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    def test_shared_in_both_directions(self):
        for dtype in ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64",
                      "complex64", "complex128"]:
            theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
            for given in [theirs, theirs.T, theirs[:, ::2]]:
                ours = paddle.from_dlpack(given)
                self.assertEqual((ours.dtype, ours.shape), (dtype, list(given.shape)))
                back = torch.from_dlpack(ours)
                self.assertEqual(back.data_ptr(), given.data_ptr())
                self.assertTrue(torch.equal(back, given))


if __name__ == "__main__":
    unittest.main()
