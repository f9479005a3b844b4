"""Cases of frames, short-time Fourier transforms and audio features, against PyTorch, SciPy and written-out definitions."""

import numpy as np
import scipy.signal
import torch

from torch_table import Table


def transforms(t):
    for x, axis in ((t.normal(7), -1), (t.normal(2, 9), -1), (t.normal(2, 3, 8), -1), (t.complex(8), -1)):
        t.add("frame", {"x": x, "frame_length": 3, "hop_length": 2, "axis": axis}, lambda x, n, h, a: x.unfold(-1, n, h).mT)
    for x in (t.normal(7), t.normal(8, 2), t.normal(9, 2, 3)):
        t.add("frame", {"x": x, "frame_length": 4, "hop_length": 1, "axis": 0}, lambda x, n, h, a: x.unfold(0, n, h).movedim(-1, 1))
    t.reject("frame", {"x": t.normal(3), "frame_length": 4, "hop_length": 1})
    t.reject("frame", {"x": t.normal(2, 4, 2), "frame_length": 2, "hop_length": 1, "axis": 1})
    t.reject("frame", {"x": t.normal(4), "frame_length": 2, "hop_length": 0})

    def add(x, hop):
        out = x.new_zeros(*x.shape[:-2], (x.shape[-1] - 1) * hop + x.shape[-2])
        for f in range(x.shape[-1]):
            out[..., f * hop:f * hop + x.shape[-2]] += x[..., f]
        return out

    for x in (t.normal(3, 4), t.normal(2, 4, 3), t.complex(2, 3)):
        t.add("overlap_add", {"x": x, "hop_length": 2}, add)
    t.add("overlap_add", {"x": t.normal(4, 3, 2), "hop_length": 2, "axis": 0}, lambda x, h, a: add(x.permute(2, 1, 0), h).movedim(-1, 0))
    t.reject("overlap_add", {"x": t.normal(4), "hop_length": 2})
    t.reject("overlap_add", {"x": t.normal(4, 3), "hop_length": 0})

    window = scipy.signal.get_window("hann", 8)
    for args in ({"n_fft": 8}, {"n_fft": 8, "hop_length": 3, "window": window}, {"n_fft": 8, "center": False, "window": window},
                 {"n_fft": 8, "normalized": True}, {"n_fft": 8, "onesided": False, "window": window},
                 {"n_fft": 12, "win_length": 8, "window": window}, {"n_fft": 8, "pad_mode": "constant"}, {"n_fft": 9}):
        def reference(x, *values, names=tuple(args)):
            given = dict(zip(names, values))
            n = given["n_fft"]
            given.setdefault("window", torch.ones(given.get("win_length", n)))
            return torch.stft(x, n, **{k: v for k, v in given.items() if k != "n_fft"}, return_complex=True)
        t.add("stft", {"x": t.normal(2, 20), **args}, reference, frozen=("window",))
    t.add("stft", {"x": t.complex(20), "n_fft": 8, "onesided": False},
          lambda x, n, o: torch.stft(x, n, window=torch.ones(n), onesided=o, return_complex=True))
    t.reject("stft", {"x": t.complex(20), "n_fft": 8})
    t.reject("stft", {"x": t.normal(3), "n_fft": 8})
    t.reject("stft", {"x": t.normal(20), "n_fft": 8, "win_length": 9})
    t.reject("stft", {"x": t.normal(20), "n_fft": 8, "window": t.normal(7)})

    for args in ({"n_fft": 8, "hop_length": 2, "window": window}, {"n_fft": 8, "window": window, "length": 18}, {"n_fft": 8, "normalized": True},
                 {"n_fft": 8, "onesided": False, "window": window}, {"n_fft": 12, "win_length": 8, "window": window, "hop_length": 3}):
        def inverse(x, *values, names=tuple(args)):
            given = dict(zip(names, values))
            n = given["n_fft"]
            given.setdefault("window", torch.ones(given.get("win_length", n)))
            return torch.istft(x, n, **{k: v for k, v in given.items() if k != "n_fft"})
        bins = args["n_fft"] if not args.get("onesided", True) else args["n_fft"] // 2 + 1
        t.add("istft", {"x": t.complex(2, bins, 9), **args}, inverse, frozen=("window",))
    t.reject("istft", {"x": t.normal(5, 9), "n_fft": 8})
    t.reject("istft", {"x": t.complex(6, 9), "n_fft": 8})


def mel(hertz):
    return np.where(hertz >= 1000, 15 + np.log(np.maximum(hertz, 1e-9) / 1000) / (np.log(6.4) / 27), hertz * 3 / 200)


def hertz(mels):
    return np.where(mels >= 15, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)), mels * 200 / 3)


def filters(rate, n_fft, count, low, high, norm="slaney"):
    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    edges = hertz(np.linspace(mel(np.array(low)), mel(np.array(high)), count + 2))
    rising = (bins[None] - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins[None]) / np.diff(edges)[1:, None]
    weights = np.maximum(0, np.minimum(rising, falling))
    return weights * (2 / (edges[2:] - edges[:-2]))[:, None] if norm == "slaney" else weights


def dct(count, mels):
    out = np.cos(np.pi / mels * (np.arange(mels)[:, None] + 0.5) * np.arange(count)[None]) * np.sqrt(2 / mels)
    out[:, 0] /= np.sqrt(2)
    return out


def audio(t):
    windows = ("hann", "hamming", "blackman", "nuttall", "bartlett", "cosine", "triang", "bohman", "tukey", "taylor", "exponential",
               ["gaussian", 2.5], ["general_gaussian", 1.5, 2.0], ["kaiser", 4.0], ["tukey", 0.3], ["exponential", None, 3.0])
    for window in windows:
        wanted = tuple(window) if isinstance(window, list) else window
        for length in (8, 9):
            for periodic in (True, False):
                t.values("audio_get_window", {"window": window, "win_length": length, "fftbins": periodic},
                         [scipy.signal.get_window(wanted, length, periodic)])
    t.values("audio_get_window", {"window": "hann", "win_length": 1}, [np.ones(1)])
    t.reject("audio_get_window", {"window": "gaussian", "win_length": 8})
    t.reject("audio_get_window", {"window": "han", "win_length": 8})
    t.reject("audio_get_window", {"window": "hann", "win_length": -1})
    f = np.array([0.0, 200, 999, 1000, 3000, 11025])
    t.values("audio_hz_to_mel", {"freq": f}, [mel(f)])
    t.values("audio_hz_to_mel", {"freq": f, "htk": True}, [2595 * np.log10(1 + f / 700)])
    t.values("audio_mel_to_hz", {"mel": mel(f)}, [f])
    t.values("audio_mel_to_hz", {"mel": 2595 * np.log10(1 + f / 700), "htk": True}, [f])
    t.values("audio_mel_frequencies", {"n_mels": 6, "f_max": 8000.0, "dtype": "float64"}, [hertz(np.linspace(0, mel(np.array(8000.0)), 6))])
    t.values("audio_fft_frequencies", {"sr": 16000, "n_fft": 10, "dtype": "float64"}, [np.linspace(0, 8000, 6)])
    t.values("audio_compute_fbank_matrix", {"sr": 8000, "n_fft": 32, "n_mels": 5, "dtype": "float64"}, [filters(8000, 32, 5, 0.0, 4000.0)])
    t.values("audio_compute_fbank_matrix", {"sr": 8000, "n_fft": 32, "n_mels": 5, "f_min": 100.0, "f_max": 3000.0, "norm": None, "dtype": "float64"},
             [filters(8000, 32, 5, 100.0, 3000.0, None)])
    t.values("audio_create_dct", {"n_mfcc": 3, "n_mels": 6, "dtype": "float64"}, [dct(3, 6)])
    power = t.uniform(0, 3, 2, 4)
    t.add("audio_power_to_db", {"spect": power, "top_db": 10.0}, lambda x, d: (lambda y: torch.maximum(y, y.max() - d))(10 * torch.log10(x)))
    t.add("audio_power_to_db", {"spect": power, "ref_value": 2.0, "top_db": None}, lambda x, r, d: 10 * torch.log10(x / r))
    t.reject("audio_power_to_db", {"spect": power, "amin": 0.0})

    def spectrum(x, n, hop, power):
        window = torch.tensor(scipy.signal.get_window("hann", n))
        return torch.stft(x, n, hop, window=window, return_complex=True).abs() ** power

    x = t.normal(2, 70)
    common = {"x": x, "n_fft": 32, "hop_length": 16}
    for p in (1.0, 2.0):
        t.add("audio_spectrogram", {**common, "power": p, "dtype": "float64"}, lambda x, n, h, p, d: spectrum(x, n, h, p))
    bank = torch.tensor(filters(8000, 32, 5, 50.0, 4000.0))
    more = {**common, "sr": 8000, "n_mels": 5, "dtype": "float64"}
    t.add("audio_mel_spectrogram", more, lambda x, n, h, *_: bank @ spectrum(x, n, h, 2))
    t.add("audio_log_mel_spectrogram", more, lambda x, n, h, *_: 10 * torch.log10(bank @ spectrum(x, n, h, 2)))
    t.add("audio_mfcc", {**more, "n_mfcc": 3},
          lambda x, n, h, *_: torch.tensor(dct(3, 5)).T @ (10 * torch.log10(bank @ spectrum(x, n, h, 2))))
    t.reject("audio_mfcc", {**more, "n_mfcc": 6})


def main():
    t = Table("signal")
    transforms(t)
    audio(t)
    t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
