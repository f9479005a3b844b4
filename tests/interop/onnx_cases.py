"""Writes the ONNX project's test cases to a folder: its node cases, which the wheel makes from code,
and the simple, PyTorch-converted and PyTorch-operator ones, which it holds as files.

  onnx_cases.py FOLDER    run it with a Python that has the `onnx` package
"""
import argparse
import os
import shutil
import sys
import warnings

import onnx
from onnx.backend.test import cmd_tools
from onnx.backend.test.case import node

KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def main(folder):
    warnings.simplefilter("ignore")  # casts that overflow on purpose
    cmd_tools.model_test.collect_testcases = lambda *_: node.collect_testcases()
    cmd_tools.generate_data(argparse.Namespace(output=folder))
    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    for kind in KINDS:
        shutil.rmtree(os.path.join(folder, kind), ignore_errors=True)
        shutil.copytree(os.path.join(data, kind), os.path.join(folder, kind))


if __name__ == "__main__":
    main(sys.argv[1])
