"""Cases of the Fourier transforms, against PyTorch."""

import numpy as np
import torch

from torch_table import Table


def main():
    t = Table("fft")
    for n in (1, 2, 3, 5, 6, 7, 8, 11, 12, 30, 37, 64, 74, 121):
        t.add("fft", {"x": t.complex(n)}, torch.fft.fft, grad=n < 10)
        t.add("ifft", {"x": t.complex(2, n)}, torch.fft.ifft, grad=False)
        t.add("rfft", {"x": t.normal(3, n)}, torch.fft.rfft, grad=n < 10)
        t.add("ihfft", {"x": t.normal(n)}, torch.fft.ihfft, grad=n < 10)
        if n > 1:
            t.add("irfft", {"x": t.complex(n)}, torch.fft.irfft, grad=n < 10)
            t.add("hfft", {"x": t.complex(3, n)}, torch.fft.hfft, grad=n < 10)
    for norm in ("backward", "ortho", "forward"):
        for name in ("fft", "ifft", "irfft", "hfft"):
            for n in (5, 3, 8):
                t.add(name, {"x": t.complex(5, 2), "n": n, "axis": 0, "norm": norm}, getattr(torch.fft, name))
            for form, tail in ((name + "2", {}), (name + "n", {"s": [4, 3], "axes": [0, 2]})):
                t.add(form, {"x": t.complex(3, 2, 4), **tail, "norm": norm},
                      lambda x, *a, f=getattr(torch.fft, form), k=tail, n=norm: f(x, **({"s": k["s"], "dim": k["axes"]} if k else {}), norm=n))
        for name in ("rfft", "ihfft"):
            t.add(name, {"x": t.normal(5, 2), "n": 4, "axis": 0, "norm": norm}, getattr(torch.fft, name))
            for form, tail in ((name + "2", {}), (name + "n", {"s": [4, 3], "axes": [0, 2]})):
                t.add(form, {"x": t.normal(3, 2, 4), **tail, "norm": norm},
                      lambda x, *a, f=getattr(torch.fft, form), k=tail, n=norm: f(x, **({"s": k["s"], "dim": k["axes"]} if k else {}), norm=n))
    t.add("fftn", {"x": t.complex(2, 3, 4)}, torch.fft.fftn)
    t.add("irfftn", {"x": t.complex(2, 3, 4)}, torch.fft.irfftn)
    t.add("fft", {"x": t.complex(6, dtype="complex64")}, torch.fft.fft)
    t.add("rfft", {"x": t.normal(2, 9, dtype="float32")}, torch.fft.rfft)
    t.add("irfft", {"x": t.complex(2, 5, dtype="complex64"), "n": 9}, torch.fft.irfft)
    t.add("fft", {"x": t.normal(2, 5)}, torch.fft.fft)
    t.add("fft", {"x": t.normal(20, 17, 3), "axis": 1}, lambda x, a: torch.fft.fft(x, dim=a), grad=False)
    t.add("rfft", {"x": t.normal(2, 8, 19, dtype="float32"), "axis": 1}, lambda x, a: torch.fft.rfft(x, dim=a), grad=False)
    t.add("irfft", {"x": t.complex(1, 5, 19), "axis": 1}, lambda x, a: torch.fft.irfft(x, dim=a), grad=False)
    t.values("fft", {"x": np.zeros((0, 3), "complex64")}, [np.zeros((0, 3), "complex64")])
    for n in (1, 4, 5):
        t.values("fftfreq", {"n": n, "d": 0.5, "dtype": "float64"}, [np.fft.fftfreq(n, 0.5)])
        t.values("rfftfreq", {"n": n, "d": 0.5}, [np.fft.rfftfreq(n, 0.5).astype("float32")], rtol=1e-6)
        t.add("fftshift", {"x": t.normal(n)}, torch.fft.fftshift)
        t.add("ifftshift", {"x": t.complex(2, n)}, torch.fft.ifftshift)
        t.add("fftshift", {"x": t.normal(2, n), "axes": [1]}, torch.fft.fftshift)
    t.reject("fft", {"x": t.complex(3), "n": 0})
    t.reject("fft", {"x": t.complex(3), "axis": 1})
    t.reject("fft", {"x": t.complex(3, 0)})
    t.reject("fft", {"x": t.complex(3), "norm": "none"})
    t.reject("rfft", {"x": t.complex(3)})
    t.reject("irfft", {"x": t.complex(1)})
    t.reject("fft2", {"x": t.complex(3)})
    t.reject("fftn", {"x": t.complex(3, 3), "axes": [0, 0]})
    t.reject("fftn", {"x": t.complex(3, 3), "s": [2], "axes": [0, 1]})
    t.reject("fftfreq", {"n": 0})
    t.write()


if __name__ == "__main__":
    main()
