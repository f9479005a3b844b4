#!/usr/bin/env bash
# Reports of the tools: threads by affinity, batch and rate, the memory plan, where the
# values of a config come from, what the data is, the record of a run, and what --debug adds.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
good=configs/quickstart/digits.yaml
says() { grep -qF -- "$1" "$folder/out" || { fail "the output lacks '$1'"; head -30 "$folder/out"; }; }

quiet 0 taskset -c 0 "$train" "$good" --dry-run train.accumulate=4
says "1 threads of 1 cores"
says "batch 64 = 4 micro-batches of 16"
says "1252 updates, 313 per epoch of 20000 samples"
says "learning rate 0.002: 4e-05 at the first update"
says "seed 0"
says "activations, gradients and temporaries"
says "it fits"
says "linear.weight  float32[1568, 128]"
quiet 0 "$train" "$good" --dry-run optimizer.base_batch=16
says "learning rate 0.008 (4 times optimizer.lr for this batch)"
quiet 0 "$train" "$good" --dry-run optimizer.base_batch=16 optimizer.batch_scaling=sqrt
says "learning rate 0.004 (2 times"
quiet 0 "$train" "$good" --dry-run --threads 3
says "3 threads"

quiet 0 "$train" "$good" --dump-config --origin optimizer.lr=5e-4
grep -q 'lr: 5e-4 *# command line' "$folder/out" || fail "no origin of an override"
grep -q "batch_size: 64 *# .*digits.yaml:1[0-9]" "$folder/out" || fail "no origin of a value in the file"
grep -q "beta1: 0.9 *# default" "$folder/out" || fail "no origin of a default"
"$train" "$good" --dump-config > "$folder/resolved.yaml"
quiet 0 "$train" "$folder/resolved.yaml" --dump-config
cmp -s "$folder/out" "$folder/resolved.yaml" || fail "a resolved config does not resolve to itself"

quiet 0 "$train" "$good" --check-data
says "samples: 20000"
says "10 classes: 0, 1, 2"
says "digit 10000"
says "in a batch: image: float32[1, 28, 28]"

# The page of an operation with weights has the form that the language calls.
for form in "conv1d(x, out_channels, kernel_size, " "group_norm(x, num_groups, " "fold(x, output_sizes, " \
  "prelu(x, num_parameters=1, " "bilinear(x1, x2, out_features, " "batch_norm(x, " "lstm(x, hidden_size"; do
  quiet 0 "$bin/paddle-op" show "${form%%(*}"
  says "As a layer: $form"
done

quiet 0 "$train" "$good" "data.train={kind: digits, size: 640}" data.valid= train.epochs=1 train.log_every=2 seed=5 deterministic=true --output "$folder/run"
says "data "
says " left"
for text in '"seed": 5' '"deterministic": true' '"samples": 640' '"threads":' '"config_digest":' '"program":'; do
  grep -qF "$text" "$folder/run/run.json" || fail "run.json lacks $text"
done
grep -q '"kind":"end".*"traces":.*"plans":.*"planned_bytes":' "$folder/run/metrics.jsonl" || fail "no end in metrics.jsonl"

# The place of an error and its callers; --debug adds what went before.
printf 'name: net\ninputs: {x: "float32[batch, 4]"}\nblocks:\n  inner(x): |\n    return linear(x, 3) + zeros([2, 5])\nmodel: |\n  y = inner(x)\noutputs: [y]\n' > "$folder/net.yaml"
expect 3 "net.yaml:5" "$bin/paddle-show" "$folder/net.yaml"
grep -q "^  called from .*net.yaml:7:7$" "$folder/error" || fail "the caller is missing"
(($(wc -l < "$folder/error") == 2)) || fail "more than the error and its caller"
most_lines=20
expect 3 "threads, at most" "$bin/paddle-show" "$folder/net.yaml" --debug
expect 4 "failed in: opening the data" "$train" "$good" "data.train={kind: idx, images: $folder/none}" --output "$folder/debug" --debug
grep -q "done: reading the config" "$folder/error" || fail "--debug does not tell what went before"
finish
