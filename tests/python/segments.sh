#!/usr/bin/env bash
# What to_static runs as Python computes in compiled segments, with the results of Python.
source tests/python/setup.bash
python -W error tests/python/segments.py
