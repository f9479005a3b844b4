#!/usr/bin/env bash
# Functions that to_static runs as Python compute in compiled segments, with the results of Python.
source tests/python/setup.bash
python -W error tests/python/segments.py
