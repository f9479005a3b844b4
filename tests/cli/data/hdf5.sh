#!/usr/bin/env bash
# HDF5 files as training data: a run has the weights of the same arrays in an NPZ file; what is rejected.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cp tests/data/hdf5/table.h5 tests/data/hdf5/table.npz "$folder"
cd "$folder" || exit 1
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 4]"}
  model: |
    logits = linear(relu(linear(x, 8)), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 32
  train: {kind: hdf5, path: table.h5, arrays: {x: train/x, label: train/label}, split: {train: 0.8, valid: 0.2}, part: train}
  valid: {kind: hdf5, path: table.h5, arrays: {x: train/x, label: train/label}, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 5}
Y
status="$(run_bounded "$train" c.yaml --output stored)"
if [[ "$status" != 0 ]] && grep -q "HDF5 library" error; then
  echo "the HDF5 library is missing"
  exit 77
fi
[[ "$status" == 0 ]] || fail "training from HDF5 gave $status"
sed 's/kind: hdf5, path: table.h5, arrays: {x: train\/x, label: train\/label}/kind: npz, path: table.npz/' c.yaml > npz.yaml
ok "$train" npz.yaml --output arrays
cmp -s stored/model/model.safetensors arrays/model/model.safetensors || fail "HDF5 and NPZ give other weights"
ok "$train" c.yaml --output no --check-data
expect 4 "short" "$train" c.yaml --output no 'data.train.arrays={x: train/x, label: short}'
expect 4 "train/y" "$train" c.yaml --output no 'data.train.arrays={x: train/y, label: train/label}'
expect 4 "none.h5" "$train" c.yaml --output no data.train.path=none.h5
head -c 3000 table.h5 > cut.h5
expect 5 "damaged" "$train" c.yaml --output no data.train.path=cut.h5
finish
