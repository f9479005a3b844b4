#!/usr/bin/env bash
# Gradients of every differentiable operation against finite differences, to second order, in both
# modes.
exec "$PADDLE_BIN/paddle-op" check --numeric --order 2
