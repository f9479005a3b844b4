#!/usr/bin/env bash
# A run over MPI or Gloo has the bits of a simulated one, with data parallel and pipelines, and a
# rank that is lost is named. Other choices of PADDLE_TRANSPORT, and runs that MPI has not started,
# are rejected.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 16]"}
  model: |
    h = relu(linear(x, 24))
    logits = linear(h, 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-2}
data:
  batch_size: 9
  train:
    kind: random
    size: 50
    fields: [{name: x, shape: [16]}, {name: label, dtype: int64, low: 0, high: 4}]
train: {steps: 12, log_every: 1}
Y
tested=0

over_mpi() {
  timeout 60 mpirun --oversubscribe -n "$1" env PADDLE_TRANSPORT=mpi "$train" "$folder/net.yaml" \
    "${@:2}" > "$folder/out" 2> "$folder/error"
}
over_gloo() {
  PADDLE_TRANSPORT=gloo timeout 60 "$launch" -n "$1" "$train" "$folder/net.yaml" "${@:2}" \
    > "$folder/out" 2> "$folder/error"
}
# same TRANSPORT NAME RANKS ARGUMENTS…
same() {
  local name="$2-$1"
  "over_$1" "$3" "${@:4}" --output "$folder/$name" || fail "$name"
  [[ -d "$folder/$2-simulated" ]] ||
    "$train" "$folder/net.yaml" "${@:4}" --simulate "$3" --output "$folder/$2-simulated" \
      > "$folder/out" 2> "$folder/error" || fail "$2 simulated"
  cmp -s "$folder/$name/model/model.safetensors" "$folder/$2-simulated/model/model.safetensors" ||
    fail "$name: other weights than simulated"
}
all_layouts() {
  same "$1" data 3 parallel.data=3
  same "$1" pipeline 2 parallel.pipeline=2 parallel.micro_batches=3
  same "$1" grid 4 parallel.data=2 parallel.pipeline=2 parallel.micro_batches=3 \
    parallel.schedule=1f1b parallel.sharding=3
  tested=$((tested + 1))
}

# On this machine only, with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export OMPI_MCA_hwloc_base_binding_policy=none
if [[ ! -e "$bin/../lib/libpaddle_mpi.so" ]]; then
  echo "MPI is not tested: built without it"
elif ! timeout 60 mpirun --oversubscribe -n 3 true > "$folder/out" 2>&1; then
  echo "MPI is not tested: mpirun starts no processes here"
else
  all_layouts mpi
  over_mpi 2 parallel.data=3 && fail "sizes that do not fit are accepted"
  grep -q "is 3 ranks, the run has 2" "$folder/error" || fail "sizes that do not fit"
  expect 2 "start the run with mpirun" env PADDLE_TRANSPORT=mpi "$launch" -n 2 "$train" \
    "$folder/net.yaml" parallel.data=2
fi

if [[ ! -e "$bin/../lib/libpaddle_gloo.so" ]]; then
  echo "Gloo is not tested: built without it"
else
  all_layouts gloo
  PADDLE_TRANSPORT=gloo "$launch" -n 2 "$train" "$folder/net.yaml" parallel.data=2 \
    train.steps=1000000 train.log_every=10 --output "$folder/killed" \
    > "$folder/out" 2> "$folder/error" &
  launcher=$!
  while [[ ! -s "$folder/killed/metrics.jsonl" ]] && kill -0 "$launcher" 2> "$folder/ignored"; do
    sleep 0.1
  done
  kill -KILL "$(pgrep -P "$launcher" | tail -n 1)" || fail "the run to be killed has ended"
  status=0
  wait "$launcher" || status=$?
  ((status == 7)) || fail "a killed rank gives $status, expected 7"
  grep -q "was killed by signal 9" "$folder/error" || fail "a killed rank is not named"
fi

expect 2 "expected one of auto, tcp, gloo, mpi, found 'carrier'" env PADDLE_TRANSPORT=carrier \
  "$launch" -n 2 "$train" "$folder/net.yaml" parallel.data=2
expect 6 "has no MPI" env PADDLE_TRANSPORT=mpi PADDLE_MPI_MODULE=/nosuch "$launch" -n 2 \
  "$train" "$folder/net.yaml" parallel.data=2
expect 6 "has no Gloo" env PADDLE_TRANSPORT=gloo PADDLE_GLOO_MODULE=/nosuch "$launch" -n 2 \
  "$train" "$folder/net.yaml" parallel.data=2
((tested > 0 || failures > 0)) || exit 77
finish
