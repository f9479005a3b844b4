#!/usr/bin/env bash
# A run over MPI has the bits of a simulated one, with data parallel and pipelines. Other choices of
# PADDLE_TRANSPORT, and runs that MPI has not started, are refused.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.bash"
command -v mpirun > /dev/null || { echo "mpirun is missing"; exit 77; }
[[ -e "$bin/../lib/libpaddle_mpi.so" ]] || { echo "built without MPI"; exit 77; }
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
# On this machine only, with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export OMPI_MCA_hwloc_base_binding_policy=none
timeout 60 mpirun --oversubscribe -n 3 true > "$folder/out" 2>&1 ||
  { echo "mpirun starts no processes here"; exit 77; }
over_mpi() {
  timeout 60 mpirun --oversubscribe -n "$1" env PADDLE_TRANSPORT=mpi "$train" "$folder/net.yaml" \
    "${@:2}" > "$folder/out" 2> "$folder/error"
}
same() {
  local name="$1" ranks="$2"
  over_mpi "$ranks" "${@:3}" --output "$folder/$name" || fail "$name over MPI"
  "$train" "$folder/net.yaml" "${@:3}" --simulate "$ranks" --output "$folder/$name-simulated" \
    > "$folder/out" 2> "$folder/error" || fail "$name simulated"
  cmp -s "$folder/$name/model/model.safetensors" "$folder/$name-simulated/model/model.safetensors" ||
    fail "$name: other weights over MPI"
}
same data 3 parallel.data=3
same pipeline 2 parallel.pipeline=2 parallel.micro_batches=3

over_mpi 2 parallel.data=3 && fail "sizes that do not fit are accepted"
grep -q "is 3 ranks, the run has 2" "$folder/error" || fail "sizes that do not fit"
expect 2 "start the run with mpirun" env PADDLE_TRANSPORT=mpi "$bin/paddle-launch" -n 2 "$train" \
  "$folder/net.yaml" parallel.data=2
expect 2 "expected auto, tcp or mpi, found 'carrier'" env PADDLE_TRANSPORT=carrier \
  "$bin/paddle-launch" -n 2 "$train" "$folder/net.yaml" parallel.data=2
expect 6 "has no MPI" env PADDLE_TRANSPORT=mpi PADDLE_MPI_MODULE=/nosuch "$bin/paddle-launch" -n 2 \
  "$train" "$folder/net.yaml" parallel.data=2
finish
