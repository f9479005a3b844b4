#!/usr/bin/env bash
# Parallel runs have the losses and weights of one process: simulated and with real processes, which
# have the same bits, for data and tensor parallel with uneven parts. Any layout continues any
# other's checkpoint. Bad sizes, lost ranks and signals end a run with one line and no orphans.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
launch="$bin/paddle-launch"
python3 - "$folder" <<'P'
import random, sys
random.seed(7)
with open(sys.argv[1] + "/text.txt", "w") as f:
    for _ in range(400):
        f.write("".join(random.choice("abcdefgh \n") for _ in range(10)))
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write(",".join(f"p{i}" for i in range(64)) + ",label\n")
    for i in range(46):  # batches of 16, 16 and 14
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(64)) +
                f",{-100 if i % 5 == 0 else i % 4}\n")
P
cat > "$folder/gpt.yaml" <<Y
model: $here/../../../models/char_gpt.yaml
params: {layers: 2, heads: 3, width: 12, vocab_size: 16, positions: 8, dropout: 0.1}
loss: cross_entropy(logits, targets)
optimizer: {name: adamw, lr: 1e-2}
clip: {global_norm: 1.0}
metrics: {perplexity: "perplexity(logits, targets)"}
data:
  batch_size: 5
  train: {kind: text, path: text.txt, context: 8, windows: random, split: {train: 0.9, valid: 0.1}, part: train}
  valid: {kind: text, path: text.txt, context: 8, windows: consecutive, split: {train: 0.9, valid: 0.1}, part: valid}
train: {steps: 6, log_every: 1, evaluate_every: 3, checkpoint_every: 3}
precision: float64
Y
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 64]"}
  model: |
    y = reshape(x, [batch, 1, 8, 8])
    y = relu(batch_norm(conv2d(y, 6, 3, padding=1)))
    y = max_pool2d(conv2d(y, 4, 3), 2)
    logits = linear(relu(linear(flatten(y), 10)), 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.05}
data:
  batch_size: 16
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {epochs: 2, log_every: 1}
precision: float64
Y
cat > "$folder/compare.py" <<'P'
"""compare.py BOUND A B...: losses, metrics and float64 weights of runs against those of run A."""
import json, struct, sys
def read(run):
    return [json.loads(line) for line in open(run + "/metrics.jsonl")]
def weights(run):
    raw = open(run + "/model/model.safetensors", "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    return {name: struct.unpack(f"<{(e['data_offsets'][1] - e['data_offsets'][0]) // 8}d",
                                raw[end + e["data_offsets"][0] : end + e["data_offsets"][1]])
            for name, e in json.loads(raw[8:end]).items() if e.get("dtype") == "F64"}
bound, first, wanted = float(sys.argv[1]), read(sys.argv[2]), weights(sys.argv[2])
for run in sys.argv[3:]:
    other, found = read(run), weights(run)
    if found.keys() != wanted.keys(): sys.exit(f"{run} has other weights")
    for name, values in wanted.items():
        worst = max(abs(a - b) for a, b in zip(values, found[name], strict=True))
        if not worst <= 1e-9: sys.exit(f"{run}: {name} differs by {worst}")
    if len(other) != len(first): sys.exit(f"{run} has {len(other)} lines, expected {len(first)}")
    for a, b in zip(first, other):
        if (a["kind"], a["step"]) != (b["kind"], b["step"]): sys.exit(f"{run}: {b} instead of {a}")
        for key in ("loss", "perplexity"):
            if key in a and not abs(a[key] - b[key]) <= bound * abs(a[key]):
                sys.exit(f"{run}: {key} {b[key]} at step {b['step']}, expected {a[key]}")
P
# Losses to twelve digits.
losses() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    line = json.loads(line)
    if line["kind"] == "train": print(line["step"], "%.9g" % line["loss"])' "$1"; }
run() {  # run NAME COMMAND…
  local name="$1"
  shift
  "$@" --output "$folder/$name" > "$folder/out" 2> "$folder/error" || fail "$name: $*"
}
same_losses() { python3 "$folder/compare.py" "$@" || fail "the losses differ"; }
same_files() {
  for file in model.safetensors optimizer.safetensors; do
    cmp "$folder/$1/checkpoints/latest/$file" "$folder/$2/checkpoints/latest/$file" || fail "$1 and $2: $file differs"
  done
}

# --- losses, weights and bits ---
run gpt "$train" "$folder/gpt.yaml"
for layout in 2x1 1x2 3x1 1x3 2x2; do
  sizes="parallel.data=${layout%x*} parallel.tensor=${layout#*x}"
  ranks=$((${layout%x*} * ${layout#*x}))
  # shellcheck disable=SC2086
  run "gpt.$layout" "$train" "$folder/gpt.yaml" $sizes --simulate "$ranks"
done
same_losses 1e-10 "$folder"/gpt "$folder"/gpt.*x*/
run gpt.real "$launch" -n 4 --logs "$folder/logs" paddle-train "$folder/gpt.yaml" parallel.data=2 parallel.tensor=2
same_files gpt.real gpt.2x2
[[ -s "$folder/logs/rank-3.log" ]] || fail "there is no log of rank 3"
run net "$train" "$folder/net.yaml"
for layout in 3x1 1x2 2x2; do
  sizes="parallel.data=${layout%x*} parallel.tensor=${layout#*x}"
  # shellcheck disable=SC2086
  run "net.$layout" "$train" "$folder/net.yaml" $sizes --simulate $((${layout%x*} * ${layout#*x}))
done
same_losses 1e-10 "$folder"/net "$folder"/net.*x*/
run f32 "$train" "$folder/gpt.yaml" precision=float32
run f32.2x2 "$train" "$folder/gpt.yaml" precision=float32 parallel.data=2 parallel.tensor=2 --simulate 4
same_losses 1e-5 "$folder/f32" "$folder/f32.2x2"
run f16 "$train" "$folder/gpt.yaml" precision=float16
run f16.2x3 "$train" "$folder/gpt.yaml" precision=float16 parallel.data=2 parallel.tensor=3 --simulate 6
same_losses 1e-2 "$folder/f16" "$folder/f16.2x3"
run parts "$train" "$folder/gpt.yaml" train.accumulate=5 parallel.tensor=2 --simulate 2
run parts.one "$train" "$folder/gpt.yaml" train.accumulate=5
same_losses 1e-10 "$folder/parts.one" "$folder/parts"

# --- storage in parts changes no bits, but for the order of sums in norms ---
for stage in 0 1 2 3; do
  run "stage$stage" "$train" "$folder/gpt.yaml" clip.global_norm=1e30 train.accumulate=5 parallel.data=3 parallel.tensor=2 parallel.sharding="$stage" parallel.reduce=each --simulate 6
done
for stage in 1 2 3; do same_files stage0 "stage$stage"; done

# --- gradients of micro-batches are summed once for an update, with the losses of one rank ---
sums=("$folder/gpt.yaml" data.batch_size=7 train.accumulate=3)
run sums.one "$train" "${sums[@]}"
for stage in 0 1; do
  run "sums.$stage" "$train" "${sums[@]}" parallel.data=3 parallel.sharding="$stage" --simulate 3
done
"$train" "${sums[@]}" parallel.data=3 --simulate 3 --dry-run --output "$folder/dry" > "$folder/out"
grep -qE "sends in each micro-batch: 1.[0-9] KiB in 2 comm.all_reduce; in each update: 4[0-9].[0-9] KiB in 1 comm.all_reduce" "$folder/out" ||
  fail "gradients are not summed in the update: $(grep sends "$folder/out")"
run sums.each "$train" "${sums[@]}" parallel.data=3 parallel.reduce=each --simulate 3
run sums.tensor "$launch" -n 4 paddle-train "${sums[@]}" parallel.data=2 parallel.tensor=2
run sums.pipe "$train" "${sums[@]}" parallel.data=2 parallel.pipeline=2 parallel.micro_batches=3 train.accumulate=1 --simulate 4
run sums.bubble "$train" "${sums[@]}" parallel.data=2 parallel.pipeline=2 parallel.micro_batches=3 train.accumulate=1 parallel.schedule=zero_bubble --simulate 4
same_files sums.0 sums.1
same_losses 1e-10 "$folder/sums.one" "$folder"/sums.{0,1,each,tensor,pipe,bubble}
# A micro-batch of one sample has its gradient whole on each rank, next to others that are split.
run sums.single.one "$train" "$folder/gpt.yaml" data.batch_size=3 train.accumulate=2
run sums.single "$train" "$folder/gpt.yaml" data.batch_size=3 train.accumulate=2 parallel.data=2 --simulate 2
same_losses 1e-10 "$folder/sums.single.one" "$folder/sums.single"
run sums.scaled.one "$train" "${sums[@]}" precision=float16
run sums.scaled "$train" "${sums[@]}" precision=float16 parallel.data=2 --simulate 2
same_losses 1e-2 "$folder/sums.scaled.one" "$folder/sums.scaled"
run clipped "$train" "$folder/gpt.yaml" parallel.data=3 --simulate 3
run clipped.sharded "$train" "$folder/gpt.yaml" parallel.data=3 parallel.sharding=3 --simulate 3
same_losses 1e-12 "$folder/clipped" "$folder/clipped.sharded"
# Neither do the size of buckets and their overlap, simulated or not.
run buckets "$train" "$folder/gpt.yaml" parallel.data=3 parallel.bucket=2KiB --simulate 3 --dump-ir "$folder/buckets.ir"
same_files clipped buckets
grep -q "comm.start_all_reduce" "$folder"/buckets.ir/train.*.trace.txt || fail "small buckets do not travel early"
run buckets.real "$launch" -n 3 paddle-train "$folder/gpt.yaml" parallel.data=3 parallel.bucket=2KiB parallel.overlap=always
same_files clipped buckets.real
"$train" "$folder/gpt.yaml" parallel.data=2 parallel.sharding=3 --simulate 2 --dry-run --output "$folder/dry" > "$folder/out"
grep -qF "split: layer.0.feed_forward.linear.weight" "$folder/out" || fail "stage 3 does not split the weights"
grep -qE "sends in each step: .* comm.reduce_scatter" "$folder/out" || fail "stage 3 does not sum gradients in parts"
grep -qE "^ +1 +[0-9.]+ KiB" "$folder/out" || fail "a dry run does not show the memory of rank 1"

# --- pipelines have the bits of the same micro-batches one after the other ---
deep=(params.layers=4 data.batch_size=8)
run deep.parts "$train" "$folder/gpt.yaml" "${deep[@]}" train.accumulate=4
pipe() {  # pipe NAME RANKS SETTINGS…
  local name="$1" ranks="$2"
  shift 2
  run "deep.$name" "$train" "$folder/gpt.yaml" "${deep[@]}" parallel.micro_batches=4 "$@" --simulate "$ranks"
}
for schedule in f_then_b 1f1b zero_bubble; do
  pipe "$schedule" 2 parallel.pipeline=2 parallel.schedule=$schedule
  same_files deep.parts "deep.$schedule"
done
pipe four 4 parallel.pipeline=4
same_files deep.parts deep.four
pipe interleaved 2 parallel.pipeline=2 parallel.schedule=interleaved
same_files deep.parts deep.interleaved
pipe again 2 parallel.pipeline=2 parallel.recompute=full
grep -qE "recompute: 4 layers; the stages keep .* for each micro-batch" "$folder/out" || fail "recompute within a pipeline does not say what it saves"
pipe again.bubble 4 parallel.pipeline=2 parallel.data=2 parallel.schedule=zero_bubble 'parallel.recompute={layers: ["*.feed_forward"]}'
wide=(params.layers=4 data.batch_size=256 train.steps=1 parallel.micro_batches=4 parallel.pipeline=2 parallel.data=2 --simulate 4)
run wide "$train" "$folder/gpt.yaml" "${wide[@]}"
run wide.budget "$train" "$folder/gpt.yaml" "${wide[@]}" 'parallel.recompute={budget: 6 MiB}'
grep -qE "recompute: [123] of 4 layers; the stages keep" "$folder/out" || fail "a budget within a pipeline does not say what it does: $(grep recompute "$folder/out")"
same_losses 1e-10 "$folder/wide" "$folder/wide.budget"
pipe budget.least 2 parallel.pipeline=2 'parallel.recompute={budget: 1 KiB}'
grep -qE "recompute: 4 of 4 layers; .* more than the budget of 1 KiB" "$folder/out" || fail "a budget that is too small should be told"
pipe exact 2 parallel.pipeline=2 compile.exact=true
pipe exact.again 2 parallel.pipeline=2 compile.exact=true parallel.recompute=full
same_files deep.exact deep.exact.again
pipe data 4 parallel.pipeline=2 parallel.data=2
pipe tensor 6 parallel.pipeline=2 parallel.tensor=3
pipe sharded 4 parallel.pipeline=2 parallel.data=2 parallel.sharding=3 parallel.schedule=zero_bubble
same_losses 1e-10 "$folder/deep.parts" "$folder"/deep.*/
run deep.real "$launch" -n 4 paddle-train "$folder/gpt.yaml" "${deep[@]}" parallel.micro_batches=4 parallel.pipeline=2 parallel.data=2
same_files deep.real deep.data
run net.pipe "$train" "$folder/net.yaml" parallel.pipeline=2 parallel.micro_batches=2 data.drop_last=true --simulate 2
run net.parts "$train" "$folder/net.yaml" train.accumulate=2 data.drop_last=true
same_losses 1e-10 "$folder/net.parts" "$folder/net.pipe"
# Micro-batches of two sizes: 16 samples are 5, 5 and 6, the 14 of the last batch 4, 5 and 5.
run thirds.parts "$train" "$folder/net.yaml" train.accumulate=3
for schedule in 1f1b zero_bubble; do
  run "thirds.$schedule" "$train" "$folder/net.yaml" parallel.pipeline=2 parallel.micro_batches=3 parallel.schedule=$schedule --simulate 2
  same_files thirds.parts "thirds.$schedule"
done
run thirds.data "$launch" -n 4 paddle-train "$folder/net.yaml" parallel.pipeline=2 parallel.data=2 parallel.micro_batches=3
same_losses 1e-10 "$folder/thirds.parts" "$folder/thirds.data"
# Stages exchange values by operations.
run messages "$train" "$folder/gpt.yaml" "${deep[@]}" train.steps=1 parallel.pipeline=2 parallel.micro_batches=4 --simulate 2 --dump-ir "$folder/messages.ir"
for rank in . rank1; do
  for operation in comm.send comm.recv; do
    grep -qE "$operation\(.*rank = [01]" "$folder/messages.ir/$rank"/accumulate.*.txt || fail "no $operation in the dump of $rank"
  done
done
"$train" "$folder/gpt.yaml" "${deep[@]}" parallel.pipeline=2 parallel.micro_batches=4 --simulate 2 --dry-run --output "$folder/dry" > "$folder/out"
grep -qF "stage 1 on rank 1" "$folder/out" || fail "a dry run does not show the stages"
grep -qF "ranks wait for 25%" "$folder/out" || fail "a dry run does not show the idle time"
run half.pipe "$train" "$folder/gpt.yaml" "${deep[@]}" train.steps=3 parallel.pipeline=2 parallel.micro_batches=4 --simulate 2
"$launch" -n 2 paddle-train --resume "$folder/half.pipe" train.steps=6 parallel.data=2 parallel.pipeline=1 > "$folder/out" 2> "$folder/error" \
  || fail "a pipeline's checkpoint does not continue with another layout"
same_losses 1e-10 "$folder/deep.parts" "$folder/half.pipe"

# --- several optimizers, accumulated ---
cat > "$folder/gan.yaml" <<Y
models: {g: $here/../../../models/digits_generator.yaml, d: $here/../../../models/digits_critic.yaml}
optimizers: {d: {name: adam, lr: 1e-3}, g: {name: adam, lr: 1e-3}}
step: |
  fake = g(randn([image.shape[0], 32]))
  d_loss = softplus(-d(image)).mean() + softplus(d(detach(fake))).mean()
  update(d_loss, optimizer="d")
  g_loss = softplus(-d(fake)).mean()
  update(g_loss, optimizer="g", every=2)
data:
  batch_size: 8
  train: {kind: digits, size: 64, seed: 1}
  transforms: [{scale: {fields: image, factor: 0.00392156862745098}}]
train: {steps: 5, log_every: 1, accumulate: 2}
precision: float64
Y
run gan.one "$train" "$folder/gan.yaml"
run gan.data "$train" "$folder/gan.yaml" parallel.data=2 --simulate 2
run gan.sharded "$launch" -n 2 paddle-train "$folder/gan.yaml" parallel.data=2 parallel.sharding=3
for other in data sharded; do
  diff <(losses "$folder/gan.one") <(losses "$folder/gan.$other") > "$folder/error" || fail "gan.$other has other losses:"
done
most_lines=1
expect 3 "is not possible with 'optimizers': the stages" "$train" "$folder/gan.yaml" parallel.pipeline=2 --simulate 2 --output "$folder/bad"
sed -e 's/^  d_loss = .*/  score = d(fake)/' -e 's/^  update(d_loss.*/  update(softplus(score).mean(), optimizer="d")/' \
  -e 's/^  g_loss = .*/  g_loss = softplus(-score).mean()/' "$folder/gan.yaml" > "$folder/old.yaml"
expect 3 "before an earlier update of the step has changed it" "$train" "$folder/old.yaml" --output "$folder/bad"

# --- the sequence in parts, and values that are computed again ---
run sequence "$train" "$folder/gpt.yaml" parallel.tensor=3 parallel.sequence=true --simulate 3
run sequence.data "$train" "$folder/gpt.yaml" parallel.tensor=2 parallel.data=2 parallel.sequence=true --simulate 4
same_losses 1e-10 "$folder/gpt" "$folder/sequence" "$folder/sequence.data"
run again "$train" "$folder/gpt.yaml" parallel.recompute=full
grep -q "recompute: 2 of 2 layers" "$folder/out" || fail "recompute does not say what it does"
run again.some "$train" "$folder/gpt.yaml" 'parallel.recompute={layers: ["*.attention"]}'
same_files gpt again
same_files gpt again.some
run again.two "$train" "$folder/gpt.yaml" parallel.recompute=full parallel.tensor=2 parallel.data=2 --simulate 4
same_files gpt.2x2 again.two

# --- collectives in dumps, placements in a dry run ---
run dump "$train" "$folder/gpt.yaml" parallel.tensor=2 --simulate 2 train.steps=1 --dump-ir "$folder/ir"
grep -q "comm.all_reduce" "$folder"/ir/train.*.trace.txt || fail "no collective in the dump"
grep -q "comm\." "$folder"/ir/train.*.logical.txt && fail "a collective in the logical function"
"$train" "$folder/gpt.yaml" parallel.tensor=3 --simulate 3 --dry-run --output "$folder/dry" > "$folder/out"
grep -qF "layer.0.attention.linear.weight  [12, 36 tensor in each of 3 parts]" "$folder/out" || fail "the heads are not split"
"$train" "$folder/gpt.yaml" parallel.tensor=3 --simulate 3 --dry-run --output "$folder/dry" \
  'parallel.place=[{match: ["*.attention.*"], shard: {}}]' > "$folder/out"
grep -q "split: .*attention" "$folder/out" && fail "place does not keep the attention whole"

# --- checkpoints of any layout ---
run half "$train" "$folder/gpt.yaml" train.steps=3 parallel.tensor=3 --simulate 3
"$launch" -n 2 paddle-train --resume "$folder/half" train.steps=6 parallel.data=2 parallel.tensor=1 > "$folder/out" 2> "$folder/error" \
  || fail "resume with another layout"
same_losses 1e-10 "$folder/gpt" "$folder/half"
quiet 0 "$bin/paddle-eval" "$folder/half"

# --- bad input: one line, exit 3 or 2 ---
most_lines=1
expect 3 "data 2 x tensor 1 is 2 ranks, the run has 1" "$train" "$folder/gpt.yaml" parallel.data=2 --output "$folder/bad"
[[ ! -e "$folder/bad" ]] || fail "a rejected run left a folder"
expect 3 "data 2 x tensor 1 is 2 ranks, the run has 3" "$launch" -n 3 paddle-train "$folder/gpt.yaml" parallel.data=2 --output "$folder/bad"
expect 3 "pipeline 2 x data 1 x tensor 1 is 2 ranks, the run has 1" "$train" "$folder/gpt.yaml" parallel.pipeline=2 parallel.micro_batches=5 --output "$folder/bad"
expect 3 "a batch of 5 samples cannot have 6 micro-batches" "$train" "$folder/gpt.yaml" parallel.pipeline=6 --simulate 6 --output "$folder/bad"
expect 3 "needs a multiple of the 2 ranks of pipeline, found 5" "$train" "$folder/gpt.yaml" parallel.pipeline=2 parallel.schedule=interleaved parallel.micro_batches=5 --simulate 2 --output "$folder/bad"
expect 3 "leave one of them out" "$train" "$folder/gpt.yaml" parallel.pipeline=2 parallel.micro_batches=5 train.accumulate=1 train.accumulate=2 --simulate 2 --output "$folder/bad"
expect 3 "orders a pipeline, whose size is 1" "$train" "$folder/gpt.yaml" parallel.schedule=interleaved --output "$folder/bad"
expect 3 "only 'schedule: interleaved' has several stages" "$train" "$folder/gpt.yaml" parallel.pipeline=2 parallel.chunks=2 parallel.micro_batches=5 --simulate 2 --output "$folder/bad"
expect 3 "expected an amount of memory such as 4 MiB, found 'much'" "$train" "$folder/gpt.yaml" parallel.bucket=much --output "$folder/bad"
expect 3 "there is no operation 'inw' (did you mean 'inv'?)" "$train" "$folder/gpt.yaml" 'parallel.rules={inw: "[a] -> [a]"}' --output "$folder/bad"
expect 3 "rule '[a] > [a]': there is no '->'" "$train" "$folder/gpt.yaml" 'parallel.rules={inv: "[a] > [a]"}' --output "$folder/bad"
expect 3 "the step has no operation 'inv'" "$train" "$folder/gpt.yaml" 'parallel.rules={inv: "[n, ...] -> [n, ...]"}' parallel.data=2 --simulate 2 --output "$folder/bad"
[[ ! -e "$folder/bad" ]] || fail "a rejected run left a folder: $(ls -A "$folder/bad")"
expect 3 "can be cut into at most" "$train" "$folder/gpt.yaml" data.batch_size=50 parallel.pipeline=50 --simulate 50 --output "$folder/bad"
expect 3 "did you mean '1f1b'" "$train" "$folder/gpt.yaml" parallel.pipeline=2 parallel.schedule=1f1 --simulate 2 --output "$folder/bad"
expect 3 "parallel.sharding shards over 'data', whose size is 1" "$train" "$folder/gpt.yaml" parallel.tensor=2 parallel.sharding=1 --simulate 2 --output "$folder/bad"
expect 3 "parallel.schedule orders a pipeline, whose size is 1" "$train" "$folder/gpt.yaml" parallel.data=2 parallel.schedule=zero_bubble --simulate 2 --output "$folder/bad"
for key in "bucket=1 MiB" reduce=each overlap=always collectives=ring transport=tcp; do
  expect 3 "parallel.${key%=*} has no effect on one rank" "$train" "$folder/gpt.yaml" "parallel.$key" --output "$folder/bad"
done
expect 3 "whose size is 1" "$train" "$folder/gpt.yaml" parallel.sequence=true --output "$folder/bad"
expect 3 "no layer matches none.*" "$train" "$folder/gpt.yaml" 'parallel.recompute={layers: ["none.*"]}' --output "$folder/bad"
expect 3 "expected an amount of memory such as 8 GiB, found 'much'" "$train" "$folder/gpt.yaml" 'parallel.recompute={budget: much}' --output "$folder/bad"
expect 3 "no parameter matches *.nothing" "$train" "$folder/gpt.yaml" parallel.tensor=2 --simulate 2 --output "$folder/bad" 'parallel.place=[{match: ["*.nothing"], shard: {1: tensor}}]'
expect 2 "--eager runs on one rank" "$train" "$folder/gpt.yaml" parallel.data=2 --simulate 2 --eager --output "$folder/bad"
expect 2 "cannot start 'no-such-program'" "$launch" -n 2 no-such-program
expect 4 "rank 1: error: my own trouble" "$launch" -n 2 sh -c '[ "$PADDLE_RANK" = 0 ] && exec sleep 1; echo "error: my own trouble" >&2; exit 4'

# --- lost ranks and signals ---
expect 7 "rank 1 was killed by signal 9" "$launch" -n 3 sh -c '[ "$PADDLE_RANK" = 1 ] && kill -9 $$; exec sleep 1'
expect 7 "rank 2 has been stopped" "$launch" -n 3 --dead-after 0.5 sh -c '[ "$PADDLE_RANK" = 2 ] && kill -STOP $$; exec sleep 2'
"$launch" -n 2 paddle-train "$folder/gpt.yaml" parallel.data=2 train.steps=1000000 train.evaluate_every=never train.checkpoint_every=never \
  --output "$folder/stopped" > "$folder/out" 2> "$folder/error" &
launcher=$!
for _ in $(seq 900); do grep -q "step 1 " "$folder/out" && break; sleep 0.1; done
kill -TERM "$launcher"
wait "$launcher"
[[ $? == 143 ]] || fail "a run that SIGTERM stops should exit with 143"
[[ -e "$folder/stopped/checkpoints/latest/state.json" ]] || fail "a stopped run leaves no checkpoint"
finish
