#!/usr/bin/env bash
# Plug-ins that a program loads, and operations that it defines.
source tests/python/setup.bash
python -W error tests/python/plugins.py
