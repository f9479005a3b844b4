#!/usr/bin/env bash
# Mixed precision, loss scaling, and derivatives of functions of tensors.
source tests/python/setup.bash
python -W error tests/python/amp.py
