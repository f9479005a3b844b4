#!/usr/bin/env bash
# Copies, pickles, weak references, hooks of layers, changes of dtype, summaries.
source tests/python/setup.bash
python -W error tests/python/habits.py
