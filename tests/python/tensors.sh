#!/usr/bin/env bash
# Tensors, operators, indexing, gradients, errors and buffers.
source tests/python/setup.bash
python -W error tests/python/tensors.py
