"""Models and arrays for onnx_ml.sh, and checks of what comes out: onnx_ml_files.py write|check FOLDER"""

import ast
import os
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "fuzz"))
sys.argv, (command, folder) = sys.argv[:1], sys.argv[1:3]
import make_seeds as onnx  # noqa: E402


def npy(descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def write_npz(name, **arrays):
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        for key, content in arrays.items():
            z.writestr(key.replace("__", ".") + ".npy", content)


def read(name):
    out = {}
    with zipfile.ZipFile(os.path.join(folder, name)) as z:
        for entry in z.namelist():
            data = z.read(entry)
            end = 10 + struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:end].decode())
            descr, body = header["descr"], data[end:]
            if descr.startswith("<U"):
                width = int(descr[2:]) * 4
                values = [body[i : i + width].decode("utf-32-le").rstrip("\0") for i in range(0, len(body), width)]
            else:
                values = [v for (v,) in struct.iter_unpack("<" + {"<f4": "f", "<i8": "q"}[descr], body)]
            out[entry.removesuffix(".npy")] = (header["shape"], values)
    return out


def write():
    def model(name, kind, source, target, **attributes):
        graph = onnx.Graph([onnx.node(kind, [source.name], [target], "ai.onnx.ml", **attributes)], [source.info], [onnx.value(target)])
        with open(os.path.join(folder, name), "wb") as f:
            f.write(onnx.model(graph))

    class Input:
        def __init__(self, name, info):
            self.name, self.info = name, info

    def tensor(name, kind, dims):
        return Input(name, onnx.value(name, kind, dims))

    # A map from strings to float32: a type of field 5, with the keys' type and the values' type.
    floats = onnx.field(2, onnx.field(1, onnx.field(1, onnx.FLOAT)))
    text_map = onnx.field(2, onnx.field(5, onnx.field(1, onnx.STRING) + floats))
    model("zip_map.onnx", "ZipMap", tensor("x", onnx.FLOAT, ["n", 2]), "z", classlabels_strings=["no", "yes"])
    model("mapper.onnx", "CategoryMapper", tensor("y", onnx.STRING, ["n"]), "x", cats_int64s=[3, 1], cats_strings=["äb", "b"])
    model("words.onnx", "CategoryMapper", tensor("x", onnx.INT64, ["n"]), "y", cats_int64s=[3, 1], cats_strings=["äb", "b"])
    model("dict.onnx", "DictVectorizer", Input("m", onnx.field(1, "m") + text_map), "d", string_vocabulary=["b", "q", "a"])
    constant = onnx.Graph([onnx.node("Constant", [], ["y"], value_ints=[3, 1])], [], [onnx.value("y", onnx.INT64, [2])])
    with open(os.path.join(folder, "constant.onnx"), "wb") as f:
        f.write(onnx.model(constant))
    write_npz("x.npz", x=npy("<f4", (3, 2), struct.pack("<6f", *range(6))))
    write_npz("words.npz", y=npy("<U2", (2,), "äbb\0".encode("utf-32-le")))
    write_npz("map.npz", m=npy("<f4", (2,), struct.pack("<2f", 1.5, 2.5)), m__keys=npy("<U1", (2,), "ab".encode("utf-32-le")))
    write_npz("objects.npz", y=npy("|O", (1,), b"\x80\x04\x95" * 4))
    write_npz("floats.npz", y=npy("<f4", (1,), b"\0" * 4))


def check():
    assert read("maps.npz") == {"z.keys": ((2,), ["no", "yes"]), "z": ((3, 2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])}, read("maps.npz")
    assert read("numbers.npz") == {"x": ((2,), [3, 1])}, read("numbers.npz")
    assert read("back.npz") == {"y": ((2,), ["äb", "b"])}, read("back.npz")
    assert read("constant.npz") == {"y": ((2,), [3, 1])}, read("constant.npz")
    assert read("dict.npz") == {"d": ((1, 3), [2.5, 0.0, 1.5])}, read("dict.npz")


{"write": write, "check": check}[command]()
