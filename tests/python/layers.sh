#!/usr/bin/env bash
# Layers, optimizers, data and saved states.
source tests/python/setup.bash
python -W error tests/python/layers.py
