#!/usr/bin/env bash
# Keys of plug-ins, transports and tables in a config, and readers of streams: checked, used, saved
# and resumed exactly; values that do not fit are errors with their place.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
launch="$bin/paddle-launch"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS PADDLE_TRANSPORT
root="$PWD"
cd "$folder" || exit 1
says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }

# --- a stream ---
python3 - << 'P'
import random
random.seed(1)
with open("log.txt", "w") as f:
    for i in range(300):
        x = [random.uniform(-1, 1) for _ in range(4)]
        f.write(" ".join(f"{v:.6f}" for v in x + [sum(x)]) + "\n")
lines = open("log.txt").read().split("\n")
lines[7] = "1 2 three 4 5"
open("bad.txt", "w").write("\n".join(lines))
open("empty.txt", "w")
P
ok "$plugin" build "$root/plugins/text_stream" -o stream.so
[[ ! -s error ]] || fail "the stream has warnings"
keys=(--key path=log.txt --key width=4)
ok "$plugin" check stream.so --quick "${keys[@]}" --key epoch_samples=200
says "readers     6       0       0"
cat > s.yaml << 'Y'
model:
  name: net
  inputs: {x: "float32[batch, 4]"}
  model: |
    prediction = squeeze(linear(tanh(linear(x, 3)), 1), [1])
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 16
  shuffle: false
  train: {kind: text_stream.lines, path: log.txt, width: 4, epoch_samples: 200}
train: {epochs: 4, log_every: 5, checkpoint_every: 7}
Y
# The stream has 300 samples, so the second epoch goes beyond its end.
ok "$train" s.yaml --output whole --plugin stream.so
ok "$train" s.yaml --output threads data.workers=3 --plugin stream.so
cmp -s whole/model/model.safetensors threads/model/model.safetensors || fail "threads change a run"
# The same samples from a file of numbers.
python3 - << 'P'
lines = open("log.txt").read().split("\n")[:300]
with open("rows.csv", "w") as f:
    f.write("a,b,c,d,y\n")
    for i in range(800):
        f.write(lines[i % 300].replace(" ", ",") + "\n")
P
ok "$train" s.yaml --output rows train.epochs=1 "data.train={kind: csv, path: rows.csv, fields: [{name: x, columns: [a, b, c, d], dtype: float32}, {name: y, columns: [y], scalar: true, dtype: float32}]}" \
  data.drop_last=false --plugin stream.so
python3 - << 'P' || fail "the losses are not those of the same samples in order"
import json
loss = lambda run: [round(json.loads(l)["loss"], 6) for l in open(f"{run}/metrics.jsonl") if '"train"' in l]
a, b = loss("whole"), loss("rows")
assert len(a) > 5 and len(b) > 5, (a, b)
assert a[:2] == b[:2], (a, b)  # 10 updates: the first epoch, before its last, shorter batch
P
ok "$train" s.yaml train.steps=20 train.epochs=0 --output half --plugin stream.so
grep -q '"data_place"' half/checkpoints/latest/state.json || fail "the checkpoint has no place of the stream"
ok "$train" --resume half train.steps=0 train.epochs=4 --plugin stream.so
cmp -s whole/model/model.safetensors half/model/model.safetensors || fail "a resumed run differs"
expect 3 "data.shuffle: the samples of text_stream.lines come in an order of their own" \
  "$train" s.yaml data.shuffle=true --output x --plugin stream.so
expect 3 "'epoch_samples' is missing in 'data.train'" "$train" s.yaml "data.train={kind: text_stream.lines, path: log.txt, width: 4}" \
  --output x --plugin stream.so
expect 4 "bad.txt:8: expected 5 numbers" "$train" s.yaml data.train.path=bad.txt --output x --plugin stream.so
ok "$train" s.yaml data.train.path=bad.txt data.on_bad_sample=skip data.max_bad_rate=0.5 --output skipped --plugin stream.so
expect 4 "text_stream.lines: the stream has no samples" "$train" s.yaml data.train.path=empty.txt --output x --plugin stream.so

# --- a transport and a table with keys ---
sed -e 's/PADDLE_PLUGIN(ring,/PADDLE_PLUGIN(keyed,/' \
  -e 's/\(plugin.transport<[A-Za-z]*>("ring", *\)/\1/' "$root/plugins/ring/ring.cc" > ring.cc
python3 - << 'P'
import re
s = open("ring.cc").read()
m = re.search(r"plugin\.transport<(\w+)>\(([^;]*)\);", s)
kind = m.group(1)
s = s[:m.start()] + f'''plugin.transport<Keyed>("ring", "with keys", "window: {{type: integer, default: 4, doc: messages}}\\nlabel: {{type: text}}");
  plugin.options("greeting: {{type: text, required: true}}", [](const paddle::plugin::Options& o) {{
    if (o.text("greeting") == "bad") throw paddle::plugin::Failure(PADDLE_CONFIG, "greeting: is bad");
    std::fprintf(stderr, "hello %s\\n", o.text("greeting").c_str());
  }});
  plugin.stop([] {{ std::fprintf(stderr, "goodbye\\n"); }});''' + s[m.end():]
at = s.index("PADDLE_PLUGIN(keyed")
s = "#include <cstdio>\n" + s[:at] + f'''
struct Keyed : {kind} {{
  explicit Keyed(const paddle::plugin::Rank& rank) : {kind}(rank) {{
    if (rank.rank() == 0)
      std::fprintf(stderr, "window %lld label %s\\n", static_cast<long long>(rank.options().integer("window")),
                   rank.options().text("label").c_str());
  }}
}};
''' + s[at:]
open("keyed.cc", "w").write(s)
s = open("%s/plugins/file_rows/file_rows.cc" % __import__("os").environ["PADDLE_INCLUDE"].removesuffix("/include")).read()
m = re.search(r"plugin\.table<(\w+)>\(([^;]*)\);", s)
kind = m.group(1)
s = s[:m.start()] + 'plugin.table<Keyed>("rows", "with keys", "note: {type: text, default: none}");' + s[m.end():]
at = s.index("PADDLE_PLUGIN(file_rows")
s = "#include <cstdio>\n" + s[:at] + f'''
struct Keyed : {kind} {{
  explicit Keyed(const paddle_table_spec& spec) : {kind}(spec) {{
    std::fprintf(stderr, "table %s note %s\\n", spec.name, paddle::plugin::options_of(spec).text("note").c_str());
  }}
}};
''' + s[at:]
open("rows.cc", "w").write(s)
with open("ids.csv", "w") as f:
    f.write("a,b,y\n")
    for i in range(32):
        f.write(f"{i % 5},{i % 3},{i % 4}\n")
P
ok "$plugin" build keyed.cc -o keyed.so
ok "$plugin" build rows.cc -o rows.so
cat > c.yaml << 'Y'
plugins: [{path: keyed.so, options: {greeting: you}}, rows.so]
model:
  name: net
  inputs: {keys: "int64[batch, 2]"}
  model: |
    first = sparse_embedding(keys, 4, name="first")
    second = sparse_embedding(keys, 4, name="second")
    prediction = squeeze(linear(tanh(sum(first + second, 1)), 1), [1])
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 8
  train:
    kind: csv
    path: ids.csv
    fields:
      - {name: keys, columns: [a, b], dtype: int64}
      - {name: y, columns: [y], scalar: true, dtype: float32}
parallel: {data: 2}
train: {epochs: 2, log_every: 1}
Y
ok "$launch" -n 2 "$train" c.yaml --output plain
keyed=(parallel.transport.kind=keyed.ring parallel.transport.window=9 parallel.transport.label=blue)
timeout 60 "$launch" -n 2 "$train" c.yaml "${keyed[@]}" "tables={second: {store: file_rows.rows, note: there}}" --output keyed > out 2> error \
  || fail "a run with keys"
for text in "hello you" "window 9 label blue" "table second note there" "goodbye"; do
  grep -qF "$text" error keyed/log* 2> /dev/null || { fail "no '$text'"; }
done
! grep -q "table first" error || fail "the table first is kept by a plug-in, too"
cmp -s plain/model/model.safetensors keyed/model/model.safetensors || fail "a run with keys differs"
grep -q "greeting: you" keyed/config.yaml || fail "the saved config lacks the options of the plug-in"
grep -q "path: keyed >= 1.0.0" keyed/config.yaml || fail "the saved config does not name the plug-in"

# Defaults, and values that do not fit.
PADDLE_TRANSPORT=keyed.ring timeout 60 "$launch" -n 2 "$train" c.yaml --output defaults > out 2> error || fail "by environment: $(tail -n 3 error)"
expect 3 "'parallel.transport.window': expected an integer, found 'wide'" "$launch" -n 2 "$train" c.yaml \
  parallel.transport.kind=keyed.ring parallel.transport.window=wide --output x
expect 3 "unknown key 'windw' in 'parallel.transport' (did you mean 'window'?)" "$launch" -n 2 "$train" c.yaml \
  parallel.transport.kind=keyed.ring parallel.transport.windw=3 --output x
expect 3 "did you mean 'note'?" "$train" c.yaml parallel.data=1 "tables={second: {store: file_rows.rows, nte: x}}" --output x
expect 3 "did you mean 'file_rows.rows'?" "$train" c.yaml parallel.data=1 "tables={second: {store: file_rows.row}}" --output x
expect 3 "unknown key 'greting' in 'plugins.options'" "$train" c.yaml parallel.data=1 \
  "plugins=[{path: keyed.so, options: {greting: x}}, rows.so]" --output x
expect 6 "start: greeting: is bad" "$train" c.yaml parallel.data=1 "plugins=[{path: keyed.so, options: {greeting: bad}}, rows.so]" --output x
expect 2 "needs the option 'greeting', which only a config gives" "$plugin" list --plugin keyed.so
expect 3 "keys: kind: is not a name for a key" "$plugin" list --plugin "$(
  sed 's/"window: {/"kind: {/' keyed.cc > kind.cc && "$plugin" build kind.cc -o kind.so > /dev/null && echo kind.so)"
ok "$plugin" check rows.so --quick --group tables --key note=x
finish
