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
