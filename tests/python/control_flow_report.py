"""Runs control_flow_programs.py compiled and as Python, for this package or PyTorch (PROGRAMS_OF=torch): results and
gradients are the same, and how many programs are one graph. Prints JSON; --speed adds the time of a compiled call of each
program, --only NAME chooses one. PyTorch compiles with the backend of PROGRAMS_BACKEND, by default inductor."""
import copy
import json
import os
import sys
import time

import control_flow_state_programs  # noqa: F401
from control_flow_programs import BREAKS, PROGRAMS, TORCH, Module, lib


def tensors(value):
    if isinstance(value, lib.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if hasattr(value, "__dict__") and not isinstance(value, (list, tuple)):
        value = list(vars(value).values())
    return [each for item in value for each in tensors(item)] if isinstance(value, (list, tuple)) else []


def needs_gradient(tensor):
    return tensor.requires_grad if TORCH else not tensor.stop_gradient


def argument(data, recorded):
    if TORCH:
        return lib.tensor(data, requires_grad=recorded)
    return lib.to_tensor(data, stop_gradient=not recorded)


def numbers(tensor):
    return [] if tensor is None else tensor.detach().reshape([-1]).tolist()


def run(function, data, recorded):
    """Results and the gradient of their sum, as lists of numbers."""
    x = argument(data, recorded)
    found = tensors(function(x))
    total = [each.sum() for each in found if needs_gradient(each)]
    gradients = []
    if total and recorded:
        if TORCH:
            gradients = lib.autograd.grad(sum(total), [x], allow_unused=True)
        else:
            gradients = lib.grad(sum(total), [x], allow_unused=True)
    state = list(function.state_dict().values()) if isinstance(function, Module) else []
    return [numbers(each) for each in (*found, *gradients, *state)]


def is_close(a, b):
    return len(a) == len(b) and all(
        len(p) == len(q) and all(abs(x - y) <= 1e-4 * max(1, abs(x)) for x, y in zip(p, q)) for p, q in zip(a, b))


def compiled_of(function):
    if TORCH:
        lib._dynamo.reset()
        return lib.compile(function, backend=BACKEND)
    return lib.jit.to_static(function)


def is_one_graph(function, compiled, data):
    if not TORCH:
        static = compiled.forward if isinstance(compiled, Module) else compiled
        return static.reason is None, str(static.reason or "")
    lib._dynamo.reset()
    try:
        lib.compile(function, backend=BACKEND, fullgraph=True)(argument(data, False))
        return True, ""
    except Exception as error:
        return False, str(error).strip().splitlines()[0]


SPEED = "--speed" in sys.argv
ONLY = {name for option, name in zip(sys.argv, sys.argv[1:]) if option == "--only"}
BACKEND = os.environ.get("PROGRAMS_BACKEND", "inductor")


def seconds_of(function, inputs, recorded=False):
    arguments = [argument(data, recorded) for data in inputs]
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(20):
            for x in arguments:
                function(x)
        best = min(best, (time.perf_counter() - start) / 20 / len(arguments))
    return best


def check(function, inputs):
    name = getattr(function, "__name__", type(function).__name__)
    has_backward = hasattr(function, "optimizer")
    # A step of training is compared with that of another network; optimizers cannot be copied.
    plain = type(function)() if has_backward else copy.deepcopy(function) if isinstance(function, Module) else function
    compiled = compiled_of(function)
    is_same = True
    for recorded in (False,) if has_backward else (False, True):
        for data in (*inputs, *inputs):
            is_same = is_same and is_close(run(plain, data, recorded), run(compiled, data, recorded))
    full, reason = is_one_graph(function, compiled, inputs[0])
    out = {"name": name, "same": is_same, "full": full, "reason": reason}
    if SPEED:
        out["microseconds"] = 1e6 * seconds_of(compiled, inputs)
        out["python"] = 1e6 * seconds_of(plain, inputs)
    return out


def main():
    results = [check(function, inputs) for function, inputs in PROGRAMS
               if not ONLY or getattr(function, "__name__", type(function).__name__) in ONLY]
    full = sum(each["full"] for each in results)
    same = sum(each["same"] for each in results)
    print(json.dumps({"programs": len(results), "same": same, "full": full, "results": results}))
    print(f"{len(results)} programs: {same} with the same results, {full} one graph", file=sys.stderr)
    for each in results:
        if not each["same"] or not each["full"]:
            print(f"  {each['name']}: {'' if each['same'] else 'OTHER RESULTS '}{each['reason']}", file=sys.stderr)
    if TORCH or ONLY:
        return
    assert len(results) == 60 and same == 60 and full >= 57, (same, full)
    for each in results:
        expected = BREAKS.get(each["name"])
        assert each["full"] == (expected is None), each
        if expected:
            assert expected in each["reason"] and "_programs.py:" in each["reason"], each


if __name__ == "__main__":
    main()
