"""Makes data/images/* and data/images.npz with the pixels that Pillow reads from them.

A file has its RGB values by its name, and RGBA values by its name and ":rgba". Pillow does not read
colors of 16 bits; the values of those files are what was written. Needs numpy, pillow and tifffile.
"""
import os
import struct

import numpy as np
import tifffile
from PIL import Image

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(os.path.join(folder, "images"), exist_ok=True)
generator = np.random.default_rng(5)
golden = {}

# Odd sizes, so that rows end within a byte and tiles reach beyond the image.
height, width = 11, 21
rows, columns = np.mgrid[0:height, 0:width]
rgb = np.stack([columns * 12, rows * 23, (columns * rows * 7) % 256], 2).astype(np.uint8)
rgb[3:7, 4:9] = (200, 30, 90)
grey = rgb[..., 2].copy()
alpha = ((columns + rows) * 8).astype(np.uint8)
rgba = np.dstack([rgb, alpha])
bits = (columns // 3 + rows) % 2 == 1
indices = ((columns // 4 + rows) % 14).astype(np.uint8)
colors = generator.integers(0, 256, (256, 3)).astype(np.uint8)
picture = Image.fromarray(rgb)
palette = Image.fromarray(indices, "P")
palette.putpalette(colors.tobytes())


def path(name):
    return os.path.join(folder, "images", name)


def check(name):
    """Keeps what Pillow reads."""
    image = Image.open(path(name))
    if image.mode.startswith("I;16"):
        golden[name] = np.repeat(np.array(image).astype(np.uint16)[..., None], 3, 2)
        return
    if image.mode == "RGBA":
        golden[name + ":rgba"] = np.array(image)
    golden[name] = np.array(image.convert("RGB")) if image.mode != "RGBA" else np.array(image)[..., :3]


def put(name, image, **options):
    image.save(path(name), **options)
    check(name)


def put_tiff(name, array, pillow_reads=True, **options):
    tifffile.imwrite(path(name), array, metadata=None, software=False, **options)
    if pillow_reads:
        check(name)
    else:
        golden[name] = array


# ---- TIFF ----------------------------------------------------------------------------------------

put("grey.tif", Image.fromarray(grey))
put("rgb_lzw.tif", picture, compression="tiff_lzw")
put("rgba_packbits.tif", Image.fromarray(rgba), compression="packbits")
put("palette.tif", palette)
put("cmyk.tif", Image.fromarray(rgba, "CMYK"))
put("bits_group4.tif", Image.fromarray(bits), compression="group4")
put("rgb_jpeg.tif", picture.resize((40, 24)), compression="jpeg")
put("pages.tif", Image.fromarray(grey), save_all=True, append_images=[Image.fromarray(grey[:3])])
put("turned.tif", picture, tiffinfo={274: 6})
put_tiff("tiles_deflate.tif", rgb, tile=(16, 16), compression="zlib", predictor=2, photometric="rgb")
put_tiff("planes.tif", rgb.transpose(2, 0, 1), planarconfig="separate", photometric="rgb", rowsperstrip=4)
golden["planes.tif"] = rgb
put_tiff("white_is_zero.tif", 255 - grey, photometric="miniswhite")
put_tiff("premultiplied.tif", (rgba * np.dstack([alpha / 255.0] * 3 + [np.ones_like(alpha)])).astype(np.uint8),
         photometric="rgb", extrasamples=["assocalpha"])
put_tiff("big.tif", rgb, pillow_reads=False, bigtiff=True, photometric="rgb", byteorder=">")
rgb16 = (rgb.astype(int) * 256 + generator.integers(0, 256, rgb.shape)).astype(np.uint16)
put_tiff("grey16_big_endian.tif", rgb16[..., 1], byteorder=">", photometric="minisblack")
put_tiff("rgb16_deflate.tif", rgb16, pillow_reads=False, compression="zlib", predictor=2, photometric="rgb")
put_tiff("rgb16_planar_tiles.tif", rgb16.transpose(2, 0, 1), pillow_reads=False, planarconfig="separate",
         tile=(16, 16), photometric="rgb", byteorder=">")
golden["rgb16_planar_tiles.tif"] = rgb16
for name, kind in (("floats.tif", np.float32), ("signed.tif", np.int16), ("deep.tif", np.uint32)):
    put_tiff(name, grey[:2, :3].astype(kind), pillow_reads=False, photometric="minisblack")
    del golden[name]


def pack(values, bits):
    """Rows of values of fewer than 8 bits, most significant first."""
    return b"".join(np.packbits(((row[:, None] >> np.arange(bits - 1, -1, -1)) & 1).astype(np.uint8).ravel()).tobytes()
                    for row in values)


def small_tiff(name, values, bits):
    data = pack(values, bits)
    tags = [(256, 3, width), (257, 3, height), (258, 3, bits), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 3, height), (279, 4, len(data))]
    with open(path(name), "wb") as f:
        f.write(struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(tags)))
        f.write(b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags) + b"\0\0\0\0")
    check(name)


small_tiff("grey_2_bits.tif", indices % 4, 2)
small_tiff("grey_4_bits.tif", indices % 16, 4)

# ---- WebP ----------------------------------------------------------------------------------------

put("lossless.webp", picture, lossless=True)
put("lossy.webp", picture, quality=60)
put("lossless_alpha.webp", Image.fromarray(rgba), lossless=True, exact=True)
put("lossy_alpha.webp", Image.fromarray(rgba), quality=70)
exif = Image.Exif()
exif[274] = 8
picture.save(path("turned.webp"), lossless=True, exif=exif)
golden["turned.webp"] = np.rot90(rgb)
picture.save(path("animated.webp"), save_all=True, append_images=[Image.fromarray(255 - rgb)], lossless=True)

# ---- BMP -----------------------------------------------------------------------------------------

put("bits.bmp", Image.fromarray(bits))
put("grey.bmp", Image.fromarray(grey))
put("palette.bmp", palette)
put("rgb.bmp", picture)


def aligned(data):
    """Rows padded to 32 bits, the last row first."""
    return b"".join(row + b"\0" * (-len(row) % 4) for row in reversed(data))


def small_bmp(name, bits, pixels, compression=0, table=b"", masks=b"", header=40, down=False, colors=0):
    more = header - 40
    start = 14 + header + (len(masks) if more == 0 else 0) + len(table)
    out = struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start)
    out += struct.pack("<IiiHHIIiiII", header, width, -height if down else height, 1, bits, compression, len(pixels),
                       2835, 2835, colors, 0)
    out += (masks if more == 0 else masks.ljust(more, b"\0")) + table
    with open(path(name), "wb") as f:
        f.write(out + pixels)
    check(name)


table = b"".join(bytes(color[::-1]) + b"\0" for color in colors.tolist())
pairs = [pack(row[None], 4) for row in indices]
small_bmp("palette_4_bits.bmp", 4, aligned(pairs), table=table[:64])
few = [row.tobytes() for row in indices]
small_bmp("palette_few.bmp", 8, aligned(few), table=table[:56], colors=14)
words = rgb.astype(np.uint16) >> 3
small_bmp("rgb_555.bmp", 16, aligned([row.astype("<u2").tobytes() for row in words[..., 0] << 10 | words[..., 1] << 5 | words[..., 2]]))
small_bmp("rgb_565.bmp", 16, aligned([row.astype("<u2").tobytes() for row in words[..., 0] << 11 | (rgb[..., 1].astype(np.uint16) >> 2) << 5 | words[..., 2]]),
          compression=3, masks=struct.pack("<3I", 0xF800, 0x07E0, 0x001F))
swapped = rgba[..., [2, 1, 0, 3]]
small_bmp("rgb_32.bmp", 32, aligned([row.tobytes() for row in swapped]))
small_bmp("rgba_v4.bmp", 32, aligned([row.tobytes() for row in swapped]), compression=3, header=108,
          masks=struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000))
small_bmp("rgba_v5.bmp", 32, aligned([row.tobytes() for row in rgba]), compression=3, header=124,
          masks=struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000))
small_bmp("top_down.bmp", 24, aligned([row.tobytes() for row in rgb[::-1, :, ::-1]]), down=True)


def runs(row):
    edges = [0] + [i for i in range(1, len(row)) if row[i] != row[i - 1]] + [len(row)]
    return [(end - begin, int(row[begin])) for begin, end in zip(edges, edges[1:])]


def run_lengths(bits):
    """The last row as it is, the others as runs, and a hole in the first."""
    last = indices[-1]
    data = last.tobytes() if bits == 8 else pack(last[None], 4)
    out = bytes([0, width]) + data + b"\0" * (len(data) % 2) + b"\0\0"
    for row in indices[-2:0:-1]:
        out += b"".join(bytes([n, value if bits == 8 else value * 17]) for n, value in runs(row)) + b"\0\0"
    return out + bytes([0, 2, 5, 0, width - 5, 0x33 if bits == 4 else 3]) + b"\0\1"


small_bmp("runs_8.bmp", 8, run_lengths(8), compression=1, table=table[:64], colors=16)
small_bmp("runs_4.bmp", 4, run_lengths(4), compression=2, table=table[:64])
with open(path("os2.bmp"), "wb") as f:
    f.write(struct.pack("<2sIHHI", b"BM", 0, 0, 0, 26 + 48) + struct.pack("<IHHHH", 12, width, height, 1, 4))
    f.write(b"".join(bytes(color[::-1]) for color in colors[:16].tolist()) + aligned(pairs))
check("os2.bmp")

np.savez_compressed(os.path.join(folder, "images.npz"), **golden)
