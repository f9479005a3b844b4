#!/usr/bin/env bash
# Memory shared with NumPy and PyTorch, where PADDLE_TEST_PYTHON has them.
source tests/python/setup.bash
python -c 'import numpy' 2> /dev/null || { echo "this Python has no NumPy (PADDLE_TEST_PYTHON)"; exit 77; }
python tests/python/arrays.py
