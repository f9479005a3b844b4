"""Makes data/*.flac and the WAV files with the same samples. Needs soundfile (libsndfile)."""
import os

import numpy as np
import soundfile

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
generator = np.random.default_rng(7)


def put(name, samples, rate, subtype):
    # Integers, which both formats store as they are (24 bits in the upper part of 32).
    bits = int(subtype[-2:])
    samples = (np.clip(np.round(samples * 2.0 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)).astype(np.int32) << (32 - bits)
    for suffix in ("flac", "wav"):
        soundfile.write(os.path.join(folder, f"{name}.{suffix}"), samples, rate, subtype=subtype)


t = np.arange(1500) / 8000
put("tone", 0.6 * np.sin(2 * np.pi * 440 * t) + 0.01 * generator.normal(size=t.size), 8000, "PCM_16")
left = 0.5 * np.sin(2 * np.pi * 300 * t) * np.hanning(t.size)
put("stereo", np.stack([left, 0.9 * left + 0.001 * generator.normal(size=t.size)], 1), 44100, "PCM_24")
put("silence", np.concatenate([np.zeros(900), generator.uniform(-1, 1, 100)]), 16000, "PCM_16")

# Compressed forms of a tone, which are not exact: 0.2 seconds, to be compared with the formula.
t = np.arange(4410) / 22050
for suffix, subtype in (("ogg", "VORBIS"), ("mp3", "MPEG_LAYER_III")):
    soundfile.write(os.path.join(folder, f"lossy.{suffix}"), 0.5 * np.sin(2 * np.pi * 440 * t), 22050, subtype=subtype)
