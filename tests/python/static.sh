#!/usr/bin/env bash
# Functions that to_static compiles: what they give, write and differentiate to is what Python gives.
source tests/python/setup.bash
python -W error tests/python/static.py
