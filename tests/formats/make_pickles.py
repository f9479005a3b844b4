"""Writes data/*.pt, *.pth, *.pd*: small weight files of PyTorch and PaddlePaddle, and
data/pickles.npz with the values that they hold. Needs torch, numpy and paddlepaddle.

    python3 make_pickles.py
"""
import pathlib
import zipfile

import numpy as np

folder = pathlib.Path(__file__).parent / "data"


def without_debug_files(path):
    with zipfile.ZipFile(path) as f:
        entries = [(i, f.read(i)) for i in f.infolist() if not i.filename.endswith("debug_pkl")]
    with zipfile.ZipFile(path, "w") as f:
        for info, content in entries:
            f.writestr(info, content)


def torch_files():
    import torch

    torch.manual_seed(1)
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state = {
        "linear.weight": torch.nn.Parameter(torch.randn(3, 5)),
        "half": torch.randn(4).half(),
        "bfloat": torch.randn(4).bfloat16(),
        "double": torch.randn(2, 2, dtype=torch.float64),
        "integers": torch.tensor([[1, -2], [3, 1 << 40]]),
        "small": torch.tensor([-1, 2, 3], dtype=torch.int8),
        "flags": torch.tensor([True, False, True]),
        "complex": torch.tensor([1 + 2j, 3 - 4j]),
        "scalar": torch.tensor(7.5),
        "empty": torch.zeros(0, 3),
        "transposed": base.t(),
        "part": base[1:3, ::2],
        "repeated": torch.tensor([5.0]).expand(3),
    }
    torch.save(state, folder / "state.pth")
    torch.save(state, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    checkpoint = {"epoch": 3, "name": "run", "state_dict": {"w": base}, "history": [base[0], {"b": base[1]}]}
    torch.save(checkpoint, folder / "checkpoint.pt")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 3)

        def forward(self, x):
            return self.inner(x)

    net = Net()
    torch.jit.script(net).save(str(folder / "script.pt"))
    without_debug_files(folder / "script.pt")  # which have paths of the machine
    out = {}
    for key, value in state.items():
        value = value.detach()
        if value.dtype == torch.bfloat16:
            value = value.float()
        out["state/" + key] = value.numpy()
    out["checkpoint/state_dict.w"] = base.numpy()
    out["checkpoint/history.0"] = base[0].numpy()
    out["checkpoint/history.1.b"] = base[1].numpy()
    out["script/inner.weight"] = net.inner.weight.detach().numpy()
    out["script/inner.bias"] = net.inner.bias.detach().numpy()
    return out


def paddle_files():
    import paddle

    paddle.seed(1)
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.BatchNorm1D(2))
    optimizer = paddle.optimizer.Adam(parameters=net.parameters())
    net(paddle.ones([4, 3])).sum().backward()
    optimizer.step()
    paddle.save(net.state_dict(), str(folder / "net.pdparams"))
    paddle.save(net.state_dict(), str(folder / "net2.pdparams"), protocol=2)
    paddle.save(optimizer.state_dict(), str(folder / "net.pdopt"))
    net.eval()
    paddle.jit.save(net, str(folder / "pir"), input_spec=[paddle.static.InputSpec([None, 3], "float32")])
    out = {"net/" + key: value.numpy() for key, value in net.state_dict().items()}
    out.update({"pir/" + value.name: value.numpy() for value in net.state_dict().values()})
    return out


def paddle_program():
    """An inference program in protobuf, which PaddlePaddle 3 writes on request only."""
    import paddle
    from paddle.pir_utils import OldIrGuard

    paddle.enable_static()
    with OldIrGuard():
        program, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(program, start):
            x = paddle.static.data("x", [None, 3], "float32")
            y = paddle.static.nn.batch_norm(paddle.static.nn.fc(x, 2), is_test=True)
            executor = paddle.static.Executor(paddle.CPUPlace())
            executor.run(start)
            paddle.static.save_inference_model(str(folder / "program"), [x], [y], executor, program=program)
            saved = folder / "program.pdmodel"
            stripped = paddle.static.deserialize_program(saved.read_bytes())
            for op in stripped.global_block().ops:
                op.desc.remove_attr("op_callstack")  # paths of the machine
            saved.write_bytes(stripped.desc.serialize_to_string())
            parameters = [v for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")]
            scope = paddle.static.global_scope()
            return {"program/" + v.name: np.array(scope.find_var(v.name).get_tensor()) for v in parameters}


arrays = torch_files()
arrays.update(paddle_files())
arrays.update(paddle_program())
np.savez(folder / "pickles.npz", **arrays)
print(*(f"{p.name} {p.stat().st_size}" for p in sorted(folder.iterdir())), sep="\n")
