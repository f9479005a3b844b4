#!/usr/bin/env bash
# A model with tables whose rows NumPy looks up, run by ONNX Runtime: it predicts what paddle-infer
# does. Needs the Python packages numpy, onnxruntime and safetensors.
set -uo pipefail
source tests/cli/expect.bash
python3 -c "import numpy, onnxruntime, safetensors" 2> /dev/null ||
  { echo "numpy, onnxruntime or safetensors is missing"; exit 77; }
check="$PWD/tests/interop/external_tables.py"
cd "$folder" || exit 1
python3 - <<'P'
import numpy as np
random = np.random.default_rng(1)
users = random.integers(-2**63, 2**63 - 1, 500)
with open("data.csv", "w") as f:
    f.write("user,item,other,label\n")
    for i in range(2000):
        f.write(f"{users[i % 500]},{random.integers(90)},{random.integers(90)},{i % 2}\n")
np.savez("x.npz", user=np.concatenate([users[:60], [0, 5]]), items=random.integers(-5, 99, (62, 2)))
P
cat > c.yaml <<'Y'
model:
  name: pair
  inputs: {user: "int64[batch]", items: "int64[batch, 2]"}
  model: |
    u = sparse_embedding(user, 8, name="users", weight_init=normal(0, 1))
    i = sparse_embedding(items, 8, name="items", pool=mean, weight_init=normal(0, 1))
    logit = sum(u * i, 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 100
  train: {kind: csv, path: data.csv, fields: [{name: user, dtype: int64, scalar: true}, {name: items, columns: [item, other], dtype: int64}, {name: label, scalar: true}]}
train: {epochs: 2}
Y
ok "$train" c.yaml --output run
ok "$infer" run --input x.npz --output y.npz
ok "$bin/paddle-export" run -o net.onnx --inline-tables 0
python3 "$check" net.onnx x.npz y.npz 2> error || fail "ONNX Runtime predicts something else"
ok "$bin/paddle-export" run -o inside.onnx
python3 - <<'P' 2> error || fail "ONNX Runtime predicts something else with the tables inside"
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession("inside.onnx", providers=["CPUExecutionProvider"])
found = session.run(None, dict(np.load("x.npz")))[0]
np.testing.assert_allclose(found, np.load("y.npz")["logit"], rtol=1e-6, atol=1e-6)
P
finish
