#!/usr/bin/env bash
# Transports, tables and readers as plug-ins: templates are built, checked and used; a run of
# processes has the bits of the engine's own transport and table, ends when a rank is lost, and names
# that are unknown are errors.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
launch="$bin/paddle-launch"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS PADDLE_TRANSPORT
cd "$folder" || exit 1

says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }

for kind in transport table; do
  ok "$plugin" new "$kind" "my_$kind"
  says "paddle plugin check my_$kind.so --quick"
  expect 2 "already exists" "$plugin" new "$kind" "my_$kind"
  ok "$plugin" build "my_$kind.cc" -o "my_$kind.so"
  ok "$plugin" check "my_$kind.so" --quick --report report
  says "${kind}s"
  python3 - "$kind" << 'P' || fail "the report of $kind"
import json, sys
report = json.load(open("report/report.json"))
assert report["failed"] == 0 and report["skipped"] == 0, report
groups = [case["group"] for case in report["cases"]]
assert groups.count(sys.argv[1] + "s") >= 10 and set(groups) == {"load", sys.argv[1] + "s"}, groups
P
done
# A project of CMake, which the test of the installed files builds.
ok "$plugin" new reader of_cmake --cmake
says "cmake -S of_cmake -B of_cmake/build"
grep -qx "paddle_add_plugin(of_cmake SOURCES of_cmake.cc CHECK quick)" of_cmake/CMakeLists.txt || fail "CMakeLists.txt"
expect 2 "already exists" "$plugin" new reader of_cmake --cmake
expect 2 "is a file without code" "$plugin" new rules of_rules --cmake

# A device in C: its file is one of C, and operations run on it.
ok "$plugin" new device my_device
says "paddle plugin build my_device.c -o my_device.so"
ok "$plugin" build my_device.c -o my_device.so
[[ ! -s error ]] || fail "the template of a device has warnings"
ok "$plugin" check my_device.so --quick --group errors --report report
says "errors      7       0       0"
ok "$plugin" list --plugin my_device.so
says "devices my_device"
ok "$bin/paddle-op" run add "x=f32(1,2)" "y=f32(3,4)" --device my_device:1 --no-host-fallback --plugin my_device.so
says "[4, 6]"
expect 4 "embedding: the index 7 is not one of 2 rows" "$bin/paddle-op" run embedding "x=i64(1,7)" "weight=f32[2,3]" \
  --device my_device --plugin my_device.so
expect 6 "and running it on the host is rejected" "$bin/paddle-op" run cumsum "x=f32(1,2)" --device my_device \
  --no-host-fallback --plugin my_device.so

expect 2 "no case of the group tables" "$plugin" check my_transport.so --quick --group tables
ok "$plugin" check my_transport.so --quick --only my_transport.ring/mismatch
ok "$plugin" list --plugin my_transport.so --plugin my_table.so
says "transports my_transport.ring"
says "tables my_table.file_rows"

# A reader: checked with data, trained with, resumed exactly; damage and wrong keys are errors.
python3 - << 'P'
import random, struct
random.seed(1)
rows = b"".join(struct.pack("<i4f", 4, *(random.random() for _ in range(4))) for _ in range(300))
open("rows.fvecs", "wb").write(rows)
open("cut.fvecs", "wb").write(rows[:-3])
open("odd.fvecs", "wb").write(rows[:140] + struct.pack("<i", 9) + rows[144:])
open("empty.fvecs", "wb")
P
ok "$plugin" new reader my_reader
ok "$plugin" build my_reader.cc -o my_reader.so
ok "$plugin" check my_reader.so --quick
says "it needs data: name it with --key"
ok "$plugin" check my_reader.so --quick --key path=rows.fvecs --key limit=50 --report report
python3 - << 'P' || fail "the report of the reader"
import json
report = json.load(open("report/report.json"))
assert report["failed"] == 0 and report["skipped"] == 0, report
assert sum(case["group"] == "readers" for case in report["cases"]) == 6, report
P
[[ "$(run_bounded "$plugin" check my_reader.so --group readers --key path=odd.fvecs)" == 1 ]] || fail "a damaged vector passes"
says "odd.fvecs: vector 7: a vector of another length"
says "--key path=odd.fvecs"
cat > r.yaml << 'Y'
model:
  name: net
  inputs: {x: "float32[batch, 4]"}
  model: |
    y = linear(tanh(linear(x, 3)), 4)
  outputs: [y]
loss: mse_loss(y, x)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 16
  train: {kind: my_reader.fvecs, path: rows.fvecs, range: [0, 250]}
  valid: {kind: my_reader.fvecs, path: rows.fvecs, range: [250, 300]}
train: {epochs: 3, log_every: 5, checkpoint_every: 1 epochs}
Y
ok "$bin/paddle-train" r.yaml --output read --plugin my_reader.so
ok "$bin/paddle-train" r.yaml train.epochs=1 --output again --plugin my_reader.so
ok "$bin/paddle-train" --resume again train.epochs=3 --plugin my_reader.so
cmp -s read/model/model.safetensors again/model/model.safetensors || fail "a resumed run with a reader differs"
touch -d "2020-01-01" rows.fvecs
ok "$bin/paddle-train" --resume again train.epochs=4 --plugin my_reader.so
grep -qF "data.train has changed since the run began: its fingerprint is another one" error || fail "other data is not noticed"
ok "$bin/paddle-train" r.yaml --check-data --plugin my_reader.so
says "fingerprint: "
for damage in "cut: its end is missing" "odd: vector 7: a vector of another length" "empty: has no vectors"; do
  expect 4 "${damage%%:*}.fvecs:${damage#*:}" "$bin/paddle-train" r.yaml "data.train.path=${damage%%:*}.fvecs" --output x --plugin my_reader.so
done
expect 3 "did you mean 'path'?" "$bin/paddle-train" r.yaml data.train.pth=x --output x --plugin my_reader.so
expect 3 "'data.train.limit': expected an integer" "$bin/paddle-train" r.yaml data.train.limit=many --output x --plugin my_reader.so
expect 3 "my_reader.fvecs" "$bin/paddle-train" r.yaml --output x

# A run of two processes with a table.
python3 - << 'P'
import random
random.seed(3)
with open("rows.csv", "w") as f:
    f.write("a,b,y\n")
    for i in range(64):
        f.write(f"{random.randrange(2**62)},{random.randrange(30)},{random.randrange(-3, 4)}\n")
P
cat > c.yaml << 'Y'
model:
  name: net
  inputs: {keys: "int64[batch, 2]"}
  model: |
    rows = sparse_embedding(keys, 4, name="emb")
    prediction = squeeze(linear(tanh(sum(rows, 1)), 1), [1])
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: keys, columns: [a, b], dtype: int64}
      - {name: y, scalar: true, dtype: float32}
parallel: {data: 2}
train: {epochs: 3, log_every: 1, checkpoint_every: 1 epochs}
Y
same() {  # same A B: the models and last checkpoints have equal bytes
  local file
  for file in model/model.safetensors checkpoints/latest/model.safetensors checkpoints/latest/optimizer.safetensors; do
    cmp -s "$1/$file" "$2/$file" || fail "$file of $1 and $2 differ"
  done
}
ok "$launch" -n 2 "$bin/paddle-train" c.yaml --output own
PADDLE_TRANSPORT=my_transport.ring ok "$launch" -n 2 "$bin/paddle-train" c.yaml --output ring --plugin my_transport.so
same own ring
ok "$launch" -n 2 "$bin/paddle-train" c.yaml train.tables=my_table.file_rows --output rows --plugin my_table.so
same own rows
# Continued from a checkpoint.
ok "$launch" -n 2 "$bin/paddle-train" c.yaml train.epochs=2 train.tables=my_table.file_rows --output half --plugin my_table.so
ok "$launch" -n 2 "$bin/paddle-train" --resume half train.epochs=3 --plugin my_table.so
same own half

# Plug-ins of the config, and of the environment.
{ cat c.yaml && echo "plugins: [my_table.so]"; } > p.yaml
PADDLE_PLUGINS=my_transport.so PADDLE_TRANSPORT=my_transport.ring ok "$launch" -n 2 "$bin/paddle-train" p.yaml \
  train.tables=my_table.file_rows --output config
same own config

# The transport that the config names.
ok "$launch" -n 2 "$bin/paddle-train" p.yaml parallel.transport=my_transport.ring "plugins=[my_table.so, my_transport.so]" \
  train.tables=my_table.file_rows --output named
same own named
grep -q "transport: my_transport.ring" named/config.yaml || fail "the saved config names no transport"
expect 3 "did you mean 'my_transport.ring'?" "$launch" -n 2 "$bin/paddle-train" p.yaml parallel.transport=my_transport.rng \
  "plugins=[my_transport.so]" --output x

# Names that are unknown.
expect 3 "'train.tables': expected one of memory, my_table.file_rows as 'kind', found 'my_table.nowhere'" \
  "$bin/paddle-train" c.yaml parallel.data=1 train.tables=my_table.nowhere --plugin my_table.so --output x
PADDLE_TRANSPORT=my_transport.ring expect 2 "name a plug-in with --plugin or PADDLE_PLUGINS" \
  "$launch" -n 2 "$bin/paddle-train" c.yaml --output x

# A rank that is lost ends the others.
cat > lost.bash << 'S'
if [[ $PADDLE_RANK == 1 ]]; then
  "$@" &
  for ((i = 0; i < 200; ++i)); do grep -q . lost/log 2> /dev/null && break; sleep 0.05; done
  sleep 1
  kill -9 $!
  wait $! 2> /dev/null
  exit 7
fi
exec "$@"
S
export PADDLE_TRANSPORT=my_transport.ring
timeout 100 "$launch" -n 2 bash lost.bash "$bin/paddle-train" c.yaml train.epochs=100000 \
  train.checkpoint_every=100000 --output lost --plugin my_transport.so > out 2> error
status=$?
[[ $status != 0 && $status != 124 ]] || { fail "a lost rank: status $status"; tail -c 600 error; }
finish
