#!/usr/bin/env bash
# Functions with gradients of their own, and hooks of gradients.
source tests/python/setup.bash
python -W error tests/python/hooks.py
