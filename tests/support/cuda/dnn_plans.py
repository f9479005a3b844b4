#!/usr/bin/env python3
"""Asks the real cuDNN, which needs no GPU for it, whether it has plans for graphs.

dnn_plans.py GRAPHS STUB ARCHITECTURE...

GRAPHS has the descriptors that a run has made (PADDLE_FAKE_CUDA_CUDNN_GRAPHS), STUB is a folder for
a library that stands for the driver. For each graph and architecture the first plan that the
project would take is finalized: of engines that sum in one order and keep the precision, with a
workspace of at most 256 MiB. Exit status 77 without cuDNN, which is looked for in the folders
PADDLE_TEST_CUDNN and in wheels."""

import ctypes
import glob
import json
import os
import subprocess
import sys

TENSOR, POINTWISE, ENGINE, CONFIGURATION, HEURISTICS, PLAN, GRAPH, DEVICE = 17, 0, 2, 3, 4, 5, 15, 38
BOOLEAN, INT64, FLOAT, DESCRIPTOR, HEURISTICS_MODE, NOTE, CHARACTER = 2, 3, 4, 15, 8, 11, 24
TENSOR_CORE, DOWN_CONVERT, REDUCED, FFT, NONDETERMINISTIC, WINOGRAD = range(6)
MOST_WORKSPACE = 256 << 20

# Devices by architecture. What the others have in common is below.
DEVICES = {
    "sm_80": {"deviceVer": 800, "deviceName": "NVIDIA A100-SXM4-80GB", "multiProcessorCount": 108,
              "maxSharedMemoryPerBlockOptin": 166912, "smClockRateKHz": 1410000, "memClockRateKHz": 1593000,
              "l2CacheSize": 41943040, "totalGlobalMem": 85000000000},
    "sm_90a": {"deviceVer": 900, "deviceName": "NVIDIA H100 80GB HBM3", "multiProcessorCount": 132,
               "maxSharedMemoryPerBlockOptin": 232448, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
               "l2CacheSize": 52428800, "totalGlobalMem": 85000000000},
    "sm_100": {"deviceVer": 1000, "deviceName": "NVIDIA B200", "multiProcessorCount": 148,
               "maxSharedMemoryPerBlockOptin": 232448, "smClockRateKHz": 1965000, "memClockRateKHz": 3996000,
               "l2CacheSize": 132644864, "totalGlobalMem": 190000000000},
}
COMMON = {
    "cudaDeviceId": 0, "driverVer": 13000, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536, "smCountOrigin": 0, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
    "oversizedSharedMemoryPerBlock": 0, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1,
}

# The functions of the driver that cuDNN looks up. Those that make something give an address.
MAKES = ["cuLibraryLoadData", "cuLibraryLoadFromFile", "cuLibraryGetKernel", "cuKernelGetFunction", "cuModuleLoadData",
         "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleGetFunction", "cuCtxGetCurrent"]
SUCCEEDS = ["cuInit", "cuFuncSetAttribute", "cuKernelSetAttribute", "cuModuleUnload", "cuLibraryUnload", "cuDeviceGet"]
FAILS = """cuCtxGetDevice cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuDeviceGetAttribute cuDeviceGetCount
cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuDevicePrimaryCtxRetain cuFuncGetAttribute cuGetErrorName
cuGetErrorString cuGetExportTable cuKernelGetAttribute cuLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx
cuLinkAddData cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkCreate cuLinkCreate_v2 cuLinkDestroy
cuMemcpyDtoH_v2 cuModuleGetGlobal_v2 cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxPotentialClusterSize
cuStreamGetCtx cuStreamGetGreenCtx cuStreamSynchronize cuTensorMapEncodeTiled""".split()


def make_stub(folder):
    text = "".join(f"int {name}(void** made) {{ *made = (void*)64; return 0; }}\n" for name in MAKES)
    text += "".join(f"int {name}(void) {{ return 0; }}\n" for name in SUCCEEDS)
    text += "".join(f"int {name}(void) {{ return 34; }}\n" for name in FAILS)
    text += "int cuDriverGetVersion(int* version) { *version = 13000; return 0; }\n"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", f"{folder}/libcuda.so.1"], input=text.encode(),
                   check=True)


def find(name):
    folders = [f for f in os.environ.get("PADDLE_TEST_CUDNN", "").split(":") if f]
    folders += glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib"))
    return next((os.path.join(f, name) for f in folders if os.path.exists(os.path.join(f, name))), None)


class Library:
    def __init__(self, path):
        for other in ("libnvrtc.so.13", "libnvrtc.so.12", "libcublasLt.so.13", "libcublasLt.so.12"):
            if found := find(other):
                ctypes.CDLL(found, mode=ctypes.RTLD_GLOBAL)
        self.api = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.api.cudnnGetVersion.restype = ctypes.c_size_t

    def create(self, kind):
        out = ctypes.c_void_p()
        self.check(self.api.cudnnBackendCreateDescriptor(kind, ctypes.byref(out)), f"descriptor {kind}")
        return out

    def check(self, status, what):
        if status:
            text = ctypes.create_string_buffer(400)
            self.api.cudnnGetLastErrorString(text, ctypes.c_size_t(400))
            raise ValueError(f"{what}: status {status} {text.value.decode(errors='replace').splitlines()[:1]}")

    def set(self, descriptor, name, kind, values):
        types = {BOOLEAN: ctypes.c_bool, INT64: ctypes.c_int64, FLOAT: ctypes.c_float, DESCRIPTOR: ctypes.c_void_p,
                 CHARACTER: ctypes.c_char}
        array = (types.get(kind, ctypes.c_int) * len(values))(*values)
        self.check(self.api.cudnnBackendSetAttribute(descriptor, name, kind, ctypes.c_int64(len(values)), array),
                   f"attribute {name}")

    def finalize(self, descriptor, what):
        self.check(self.api.cudnnBackendFinalize(descriptor), what)

    def get(self, descriptor, name, kind, array):
        count = ctypes.c_int64()
        status = self.api.cudnnBackendGetAttribute(descriptor, name, kind, ctypes.c_int64(len(array)), ctypes.byref(count),
                                                   array)
        return array[:count.value] if status == 0 else []

    def build(self, graph):
        """The graph's descriptor, from records of `descriptor` and `set` lines."""
        made = []
        for kind, attributes in graph:
            descriptor = self.create(kind)
            for name, attribute_kind, values in attributes:
                if attribute_kind == DESCRIPTOR:
                    values = [made[int(v)].value for v in values]
                elif attribute_kind == FLOAT:
                    values = [float(v) for v in values]
                else:
                    values = [int(v) for v in values]
                self.set(descriptor, name, attribute_kind, values)
            self.finalize(descriptor, f"descriptor {kind}")
            made.append(descriptor)
        return made[-1]

    def plan(self, graph, device, is_float32):
        """The workspace of the first plan, in bytes; None if there is none."""
        rejected = {NONDETERMINISTIC, DOWN_CONVERT, REDUCED} | ({TENSOR_CORE, FFT, WINOGRAD} if is_float32 else set())
        for mode in (3, 2):  # the usual heuristics, then engines that always work
            heuristics = self.create(HEURISTICS)
            self.set(heuristics, 201, DESCRIPTOR, [graph.value])
            self.set(heuristics, 200, HEURISTICS_MODE, [mode])
            self.set(heuristics, 204, DESCRIPTOR, [device.value])
            if self.api.cudnnBackendFinalize(heuristics):
                continue
            configurations = [self.create(CONFIGURATION) for _ in range(64)]
            array = (ctypes.c_void_p * 64)(*(c.value for c in configurations))
            for configuration in configurations[:len(self.get(heuristics, 202, DESCRIPTOR, array))]:
                engine = self.create(ENGINE)
                self.get(configuration, 300, DESCRIPTOR, (ctypes.c_void_p * 1)(engine.value))
                if rejected & set(self.get(engine, 1303, NOTE, (ctypes.c_int * 32)())):
                    continue
                plan = self.create(PLAN)
                self.set(plan, 401, DESCRIPTOR, [configuration.value])
                self.set(plan, 407, DESCRIPTOR, [device.value])
                if self.api.cudnnBackendFinalize(plan):
                    continue
                workspace = self.get(plan, 402, INT64, (ctypes.c_int64 * 1)())[0]
                if workspace <= MOST_WORKSPACE:
                    return workspace
        return None


def read_graphs(path):
    graphs, graph = [], []
    for line in open(path):
        word, *rest = line.split()
        if word == "descriptor":
            graph.append((int(rest[0]), []))
        elif word == "set":
            graph[-1][1].append((int(rest[0]), int(rest[1]), rest[2:]))
        else:
            graphs.append(graph)
            graph = []
    return graphs


def kind_of(graph):
    kinds = {kind for kind, _ in graph}
    products = sum(kind == 19 for kind, _ in graph)
    return ("convolution" if 10 in kinds else "input gradient" if 12 in kinds else "weight gradient" if 11 in kinds
            else "attention" if products == 2 else "attention gradient")


def is_float32(graph):
    """Whether all tensors in memory are."""
    for kind, attributes in graph:
        names = {name: values for name, _, values in attributes}
        if kind == TENSOR and 907 not in names and 908 not in names and names[901] != ["0"]:
            return False
    return True


def main():
    path, folder, *architectures = sys.argv[1:]
    library = find("libcudnn.so.9")
    if library is None:
        print("cuDNN is not installed: `pip install nvidia-cudnn-cu13` and name its folders in PADDLE_TEST_CUDNN")
        return 77
    if os.environ.get("LD_LIBRARY_PATH", "").split(":")[0] != folder:  # where cuDNN finds the stub
        make_stub(folder)
        os.environ["LD_LIBRARY_PATH"] = f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    dnn = Library(library)
    graphs = read_graphs(path)
    counts, worst, failed = {}, {}, 0
    for architecture in architectures:
        device = dnn.create(DEVICE)
        dnn.set(device, 2702, CHARACTER, json.dumps({**COMMON, **DEVICES[architecture]}).encode())
        dnn.finalize(device, architecture)
        for graph in graphs:
            kind = kind_of(graph)
            try:
                workspace = dnn.plan(dnn.build(graph), device, is_float32(graph))
            except ValueError as error:
                workspace, kind = None, f"{kind} ({error})"
            if workspace is None:
                print(f"no plan of a {kind} for {architecture}")
                failed += 1
                continue
            counts[kind] = counts.get(kind, 0) + 1
            worst[kind] = max(worst.get(kind, 0), workspace)
    print(f"cuDNN {dnn.api.cudnnGetVersion()}: {len(graphs)} graphs for {', '.join(architectures)}: {failed} without a plan")
    for kind in counts:
        print(f"  {kind}: {counts[kind]} plans, workspace at most {worst[kind] / (1 << 20):.1f} MiB")
    return 1 if failed or not graphs else 0


sys.exit(main())
