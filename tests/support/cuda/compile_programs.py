#!/usr/bin/env python3
"""Compiles device code with the real NVRTC, which needs no GPU, and checks the machine code.

compile_programs.py SOURCES DEVICE_TEXTS ARCHITECTURE...

SOURCES is a folder of programs that a run has made (PADDLE_FAKE_CUDA_SOURCES), DEVICE_TEXTS the
folder engine/kernels/cuda/device, of which instances are compiled besides. Kernels must use no stack
and spill no registers, and kernels of groups must read and store neighboring elements 16 bytes at a
time. Exit status 77 without NVRTC."""

import ctypes
import functools
import glob
import multiprocessing
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor


@functools.cache
def find_nvrtc():
    folders = [f for f in os.environ.get("PADDLE_TEST_NVRTC", "").split(":") if f]
    folders += [f for f in os.environ.get("PADDLE_CUDA_LIBRARIES", "").split(":") if f]
    folders += glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib"))
    folders += ["/usr/local/cuda/lib64"]
    for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.exists(path) and "fake_cuda" not in path:
                return ctypes.CDLL(path)
    return None


def compile_program(nvrtc, text, architecture):
    """The status and the log of the compiler and the assembler; for a virtual architecture PTX."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false", "--prec-div=true",
               "--prec-sqrt=true", "--ptxas-options=-v"]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    ptx = ""
    if status == 0 and architecture.startswith("compute_"):
        nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
        out = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetPTX(program, out)
        ptx = out.value.decode()
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, ptx or log.value.decode()


SIZES = {"bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "f16": 2, "bf16": 2, "int32_t": 4,
         "uint32_t": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "double": 8, "c64": 8, "c128": 16}
WIDE = r"\.global(?:\.\w+)*\.v(?:4\.[bufs]32|2\.[bufs]64)"


def wide_accesses(text):
    """The 16-byte loads and stores that the wide kernel of a group needs, None without such a kernel."""
    kernel = re.search(r"PADDLE_KERNEL\(group_wide, Arguments\) \{ \w+<(\d+)>", text)
    if not kernel:
        return None
    types = dict((name, kind) for kind, name in re.findall(r"  (?:const )?(\w+)\* ((?:read|store)\d+);", text))
    def count(names):
        return sum(int(kernel[1]) * SIZES[types[name]] // 16 for name in names)
    loads = re.findall(r"load_pack<kWidth>\(arguments\.(read\d+) \+", text)
    return count(loads), count(re.findall(r"store_pack<kWidth>\(arguments\.(store\d+) \+", text))


def narrow_accesses(text, ptx):
    """What the wide kernel of a group lacks in its PTX."""
    loads, stores = wide_accesses(text)
    body = ptx.split(".entry group_wide(", 1)[1].split(".entry ", 1)[0]
    found = len(re.findall(r"\bld" + WIDE, body)), len(re.findall(r"\bst" + WIDE, body))
    if found[0] >= loads and found[1] >= stores:
        return []
    return [f"group_wide has {found[0]} loads and {found[1]} stores of 16 bytes, not {loads} and {stores}"]


def problems_of(log):
    """Kernels that use a stack or spill registers."""
    kernel, found = "", []
    for line in log.splitlines():
        if match := re.search(r"Function properties for (\S+)", line):
            kernel = match[1]
        if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill", line):
            if any(int(n) for n in match.groups()):
                found.append(f"{kernel}: {match[0]}")
    return found


def template_instances(folder):
    """Instances of the templates for several types, whole programs by name."""
    def text(*names):
        paths = [os.path.join(folder, name + ".cuh") for name in ("prelude",) + names]
        for name, header in (("box_muller", "../../../tensor/box_muller-inl.h"),
                             ("special_functions", "../../elementwise/special_functions-inl.h")):
            paths = [p.replace(os.path.join(folder, name + ".cuh"), os.path.join(folder, header)) for p in paths]
        return "".join(open(path).read() for path in paths)

    def kernels(arguments, calls):
        return "".join(f"PADDLE_KERNEL(kernel_{i}, {arguments}) {{ {call}(arguments); }}\n"
                       for i, call in enumerate(calls))

    out = {"copy": text("copy")}
    floats = [("float", "float"), ("float", "bf16"), ("float", "f16"), ("double", "double")]
    out["matmul"] = text("matmul") + kernels("MatmulArguments", [
        f"matmul_tile<{c}, {t}, {t}, {t}, {t}>" for c, t in floats + [("int64_t", "int32_t"), ("int64_t", "bool")]
    ])
    rows = []
    for c, t in floats:
        rows += [f"softmax_rows<{c}, {t}, {t}, false>", f"softmax_rows<{c}, {t}, {t}, true>",
                 f"cross_entropy_rows<{c}, {t}, int64_t, {c}, {c}>",
                 f"cross_entropy_grad_rows<{c}, {t}, {t}, int32_t, {c}, {c}>",
                 f"normalize_rows<{c}, {t}, {c}, {c}, {c}, true>", f"normalize_rows<{c}, {t}, {t}, {t}, {t}, false>",
                 f"normalize_grad_rows<{c}, {t}, {t}, {c}, {t}>", f"normalize_grad_columns<{c}, {t}, {t}, {c}, {t}>",
                 f"sum_squares<{t}>"]
    out["rows"] = text("math", "scalar", "rows") + kernels("RowArguments", rows)
    out["finite"] = text("math", "scalar", "rows") + kernels("FiniteArguments", [
        f"find_not_finite<{t}>" for t in ("float", "f16", "double")])
    out["gather"] = text("gather") + kernels("GatherArguments", [
        "gather_rows<int64_t, uint32_t>", "gather_rows<int32_t, uint16_t>", "mark_rows<int64_t>",
        "sum_rows<float, int64_t, float>", "sum_rows<float, int64_t, bf16>", "sum_rows<double, int32_t, double>"])
    for master, param in ((False, "float"), (True, "bf16"), (False, "double")):
        compute = "double" if param == "double" else "float"
        types = "".join(f"typedef {t} {n};\n" for n, t in (
            ("Compute", compute), ("Param", param), ("Grad", param), ("State0", compute), ("State1", compute),
            ("State2", compute), ("Master", compute), ("Rate", "float"), ("Step", "int64_t"), ("Skip", "bool"),
            ("Scale", "double")))
        update = open(os.path.join(folder, "update.cuh")).read()
        for form, arguments in (("update_all", "UpdateArguments"), ("update_each", "MergedArguments")):
            out[f"{form}_{param}"] = text("math", "scalar") + types + update + kernels(arguments, [
                f"{form}<{rule}, {str(master).lower()}, {width}>"
                for rule in ("Sgd", "Momentum", "Adam", "Adagrad", "Rmsprop") for width in (4, 1)])
    out["random"] = text("box_muller", "random") + kernels("RandomArguments", [
        "uniform<float>", "uniform<double>", "gaussian<float>", "gaussian<double>", "dropout_mask<float>",
        "dropout_mask<bf16>", "random_integers<int64_t>"])
    out["attention"] = text("math", "scalar", "rows", "attention") + kernels("AttentionArguments", [
        f"{call}<{c}, {t}>" for c, t in (("float", "bool"), ("float", "bf16"), ("double", "double"))
        for call in ("attention_weights", "attention_weights_again")
    ] + [f"attention_score_grads<{c}, {t}, {t}>" for c, t in floats])
    out["attend"] = text("math", "scalar", "attend") + kernels("FusedAttentionArguments", [
        call for t in ("float", "bf16", "f16") for tile, width in ((32, 32), (32, 64), (16, 128))
        for call in (f"attend<{t}, {t}, bool, {tile}, {width}>",
                     f"attend_query_grads<{t}, {t}, {t}, float, {tile}, {width}>",
                     f"attend_key_grads<{t}, {t}, bool, {tile}, {width}>")])
    convolutions, pools, channels = [], [], []
    for c, t in floats:
        forward = f"{c}, ForwardInput<{c}, {t}>, ForwardWeight<{c}, {t}>, ForwardOutput, {t}, {t}"
        backward = f"{c}, WindowGrad<{c}, {t}>, GradWeight<{c}, {t}>, InputGradOutput, {t}, {t}"
        weights = f"{c}, PositionGrad<{c}, {t}>, PositionInput<{c}, {t}>"
        convolutions += [f"conv_tile<{forward}>", f"conv_direct<{forward}>", f"conv_tile<{backward}>",
                         f"conv_direct<{backward}>", f"conv_tile<{weights}, WeightGradOutput, {t}, {t}>",
                         f"conv_weight<{weights}, {t}>"]
        pools += [f"max_pool<{t}>", f"max_pool_grad<{c}, {t}>", f"max_pool_take<{t}>", f"average_pool<{c}, {t}>",
                  f"average_pool_large<{c}, {t}>", f"average_pool_grad<{c}, {t}>"]
        for last in ("true", "false"):
            channels += [f"channel_statistics<{t}, {last}, {c}, {c}, {c}, {t}, {t}>",
                         f"channel_grad_statistics<{c}, {t}, {t}, {last}, {t}>"]
        channels += [f"normalize_channels<{c}, {t}>", f"combine_channels<{c}, {t}, {t}>"]
    out["convolution"] = text("convolution") + kernels("ConvArguments", convolutions)
    out["pool"] = text("pool") + kernels("PoolArguments", pools + ["narrow<bf16>", "max_pool<int8_t>"])
    out["channels"] = text("channels") + kernels("ChannelArguments", channels)
    indexed, sorts = [], []
    for c, t in floats + [("int64_t", "int32_t")]:
        total = "double" if c != "int64_t" else "uint64_t"
        indexed += [f"scatter_along<int64_t, {t}, {combine}, {counts}>" for combine in (
            "CombineAssign", "CombineAdd", "CombineMul", "CombineMin", "CombineMax") for counts in ("false", "true")]
        indexed += [f"add_slices<int32_t, {t}, {c}>", f"scatter_coordinates<int64_t, {t}, CombineAdd>",
                    f"divide_by_counts<{t}>"]
        indexed += [f"{call}, {block}>" for block in ("true", "false") for call in (
            f"extremum_places<{t}, int64_t, true", f"extremum_places<{t}, int32_t, false",
            f"running_folds<{t}, {total}, {t}, FoldSum", f"running_folds<{t}, {total}, {t}, FoldProd")]
        indexed += [f"running_extrema<{t}, int64_t, true>", f"running_extrema<{t}, int32_t, false>"]
        sorts += [f"{call}<{t}>" for call in ("make_keys", "sort_by_rank", "take_sorted")]
        sorts += [f"search_rows<{t}, int64_t>", f"search_rows<{t}, int32_t>"]
    indexed += ["running_log_sums<float, float>", "running_log_sums<double, double>", "gather_along<int64_t, uint32_t>", "select_slices<int32_t, uint16_t>", "one_hot<int64_t>",
                "gather_coordinates<int64_t, uint64_t>", "begin_counts", "linear_index"]
    out["special"] = text("math", "scalar", "special_functions", "special") + (
        "struct SpecialArguments { const void* x; void* out; };\n") + "".join(
        f"PADDLE_KERNEL({name}_{t}, SpecialArguments) {{\n"
        f"  ((({t}*)arguments.out)[threadIdx.x]) = fn::{name}(((const {t}*)arguments.x)[threadIdx.x]{more});\n}}\n"
        for t in ("float", "double") for name, more in [("polygamma", ", 2.0")] + [
            (n, f", (({t}*)arguments.out)[threadIdx.x]") for n in ("gammainc", "gammaincc", "gammainc_slope")] + [
            (n, "") for n in ("lgamma", "digamma", "trigamma", "erfinv", "i0", "i0e", "i1", "i1e")])
    edges = ["count_edges<int64_t>", "invert_order", "check_edges<int64_t, int32_t>", "take_rows<int32_t, uint16_t>"]
    edges += [f"combine_edges<{c}, {t}, int64_t, int32_t, {combine}, {mean}>" for c, t in floats + [("int32_t", "int32_t")]
              for combine, mean in (("FoldSum", "true"), ("FoldMax", "false"), ("FoldMin", "false"))]
    edges += [f"{call}>" for c, t in floats for call in (f"edge_products<{c}, {t}, int64_t, int32_t", f"sum_choices<{c}, {t}")]
    out["edges"] = text("edges") + kernels("EdgeArguments", edges)
    out["sequences"] = text("sequences") + kernels("SequenceArguments", ["sum_lengths", "number_rows"] + [
        call for c, t in floats + [("int64_t", "int64_t")] for call in (f"overlap_frames<{c}, {t}>", f"follow_beams<{t}>")])
    complex_types = [("c64", "c64"), ("c128", "c128")]
    out["complex_matmul"] = text("math", "scalar", "complex", "matmul") + kernels("MatmulArguments", [
        f"matmul_tile<{c}, {t}, {t}, {t}, {t}>" for c, t in complex_types])
    out["complex_index"] = text("math", "scalar", "complex", "index") + kernels("IndexArguments", [
        call for c, t in complex_types for call in (
            f"scatter_along<int64_t, {t}, CombineMul, true>", f"add_slices<int32_t, {t}, {c}>", f"divide_by_counts<{t}>",
            f"running_folds<{t}, c128, {t}, FoldProd, true>", f"scatter_coordinates<int64_t, {t}, CombineAdd>")])
    out["complex_sequences"] = text("math", "scalar", "complex", "sequences") + kernels("SequenceArguments", [
        "overlap_frames<c64, c64>", "overlap_frames<c128, c128>"])
    out["complex"] = text("math", "scalar", "complex") + (
        "struct ComplexArguments { const void *x, *y; void* out; };\n") + "".join(
        f"PADDLE_KERNEL({name}_{t}, ComplexArguments) {{\n  auto* const out = ({t}*)arguments.out + threadIdx.x;\n"
        f"  const {t} x = (({t} const*)arguments.x)[threadIdx.x], y = (({t} const*)arguments.y)[threadIdx.x];\n"
        f"  *out = fn::{name}(x{more});\n}}\n" for t in ("c64", "c128") for name, more in [
            ("divide", ", y"), ("pow", ", y"), ("round_digits", ", 2.0"), ("scale", ", 2.0, 1.0, 0.5, 0.0")] + [
            (n, "") for n in ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
                              "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "log_sigmoid", "sign")])
    out["select"] = text("select") + kernels("SelectArguments", [
        f"{call}<{which}>" for call in ("count_selected", "store_selected")
        for which in ("NonZero<bf16>", "NonZero<double>", "NonZero<bool>", "Masked<uint16_t>", "Masked<uint64_t>")])
    counts = ["count_selected<Runs<float>>", "store_selected<Runs<int64_t>>", "count_integers<int32_t, bf16, double>",
              "count_integers<int64_t, float, float>", "store_run_numbers<int32_t>", "store_histogram<float>"]
    counts += [f"{call}<{t}>" for t in ("bf16", "double", "int64_t")
               for call in ("mode_rows", "rank_slices", "store_slices", "find_range", "find_bins")]
    out["count"] = text("sort", "select", "count") + kernels("CountArguments", counts)
    ranges = [f"{call}<{t}>" for t in ("int32_t", "bf16", "float", "double")
              for call in ("integer_range", "number_range", "line_space")]
    borders = [f"pad_borders<uint32_t, {border}>" for border in ("Reflect", "Replicate", "Circular")]
    sums = [f"log_sums<{c}, {t}, {t}, {block}>" for c, t in floats for block in ("true", "false")]
    out["ranges"] = text("math", "scalar", "create") + kernels("RangeArguments", ranges)
    out["borders"] = text("math", "scalar", "create") + kernels("BorderArguments", borders)
    out["log_sums"] = text("math", "scalar", "create") + kernels("LogSumArguments", sums)
    out["recurrent"] = text("math", "scalar", "recurrent") + kernels("RecurrentArguments", [
        f"{call}<{t}, {cell}>" for t in ("float", "double") for call in ("recurrent_step", "recurrent_grad_step")
        for cell in ("LstmCell", "GruCell", "RnnCell<true>", "RnnCell<false>")
    ] + ["recurrent_grad_end<float>", "recurrent_grad_end<double>"])
    out["alignment"] = text("math", "scalar", "alignment") + kernels("AlignmentArguments", [
        f"{call}<{t}, {occupancy}>" for t in ("float", "double") for occupancy in ("true", "false")
        for call in ("ctc_sequences", "transducer_sequences")])
    out["index"] = text("index") + kernels("IndexArguments", indexed)
    out["sort"] = text("sort") + kernels("SortArguments", sorts + ["bitonic_step"])
    return out


def check(job):
    """What is wrong with a program on an architecture; on a virtual one, with its accesses."""
    name, text, architecture = job
    status, log = compile_program(find_nvrtc(), text, architecture)
    if status:
        return name, architecture, [line for line in log.splitlines() if "error" in line][:3] or ["failed"]
    virtual = architecture.startswith("compute_")
    return name, architecture, narrow_accesses(text, log) if virtual else problems_of(log)


def main():
    sources, device_texts, *architectures = sys.argv[1:]
    if find_nvrtc() is None:
        print("NVRTC is not installed: `pip install nvidia-cuda-nvrtc` and name its folder in PADDLE_TEST_NVRTC")
        return 77
    programs = template_instances(device_texts)
    for path in sorted(glob.glob(os.path.join(sources, "*.cu"))):
        programs[os.path.basename(path)] = open(path).read()
    wide = [name for name, text in programs.items() if wide_accesses(text)]
    jobs = [(name, text, architecture) for name, text in programs.items() for architecture in architectures]
    jobs += [(name, programs[name], architectures[0].replace("sm_", "compute_")) for name in wide]
    failed = 0
    # The compiler has a lock for each process.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for name, architecture, errors in pool.map(check, jobs):
            for error in errors:
                print(f"{name} for {architecture}: {error}")
                failed += 1
    print(f"{len(programs)} programs for {', '.join(architectures)}, {len(wide)} of them with kernels of 16-byte accesses: "
          f"{failed} problems")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
