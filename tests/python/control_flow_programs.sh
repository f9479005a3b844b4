#!/usr/bin/env bash
# 60 programs with decisions and loops by tensors: to_static gives what Python gives, and at least 57 are one graph.
source tests/python/setup.bash
python -W error tests/python/control_flow_report.py > /dev/null
