#!/usr/bin/env bash
# wer, cer and sacrebleu of a config compare texts: of tokens, of the best path of a CTC model, and
# of what a sequence-to-sequence model writes with beam search. They are the scores of the texts
# that paddle-infer gives, in every digit, and within 1e-6 those of jiwer and sacreBLEU where these
# are installed; paddle-eval repeats them, as do several ranks.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
words = "the cat sat on a mat, it's 3.50 or 4,000 yen; grün".split(" ")
with open("pairs.csv", "w") as f:
    f.write("source,target,spoken\n")
    for i in range(330):
        text = " ".join(random.choice(words) for _ in range(random.randrange(1, 7)))
        if i > 290 and i % 3 == 0:
            text += " Zebra"  # never seen in training, and with a capital
        f.write(f'"{text}","{text.upper() if i % 5 == 0 else text}","{text[::-1]}"\n')
P
data() {
  cat <<Y
data:
  batch_size: 32
  train:
    kind: csv
    path: pairs.csv
    fields: &fields
      - {name: source, columns: [source], kind: text, tokens: $1, max_length: 40}
      - {name: target, columns: [target], kind: text, tokens: $1, max_length: $2, lowercase: $3}
    split: {train: 0.8, valid: 0.2}
    part: train
  valid: {kind: csv, path: pairs.csv, fields: *fields, split: {train: 0.8, valid: 0.2}, part: valid}
  valid_batch_size: 23
Y
}
# Each token gives two steps, the second of which is often blank.
{
  cat <<'Y'
model:
  params: {tokens: 64}
  inputs: {source: "int64[batch, rows]"}
  model: |
    x = embedding(source, tokens, 24)
    before = concat([zeros_like(x[:, :1]), x[:, :-1]], 1)
    x = reshape(linear(relu(linear(concat([x, before], 2), 48)), 48), [batch, 2 * rows, 24])
    logits = linear(x, tokens)
  outputs: [logits]
step: |
  scores = model(source)
  lengths = cast(target_mask, "int64").sum(1)
  update(ctc_loss(transpose(scores, [1, 0, 2]), target, zeros_like(lengths) + scores.shape[1], lengths))
  path = argmax(scores, axis=2)
  before = concat([zeros_like(path[:, :1]), path[:, :-1]], 1)
  read = where(path == before, 0, path)
metrics:
  words: wer(predicted, target)
  characters: cer(predicted, target)
  bleu: sacrebleu(predicted, target)
  read_words: wer(read, target)
  read_ids: edit_rate(read, target)
  percent: 100 * cer(predicted, target)
predict: {kind: ctc, scores: logits, field: target}
optimizer: {name: adamw, lr: 0.01}
train: {epochs: 12, log_every: 1000, evaluate_every: 12 epochs, best: words}
Y
  data characters 40 false
} > ctc.yaml
# Words, of which some are unknown; targets are cut at 5 words, their references are not.
{
  cat <<'Y'
model:
  params: {tokens: 64, width: 24}
  inputs: {source: "int64[batch, rows]", source_mask: "bool[batch, rows]", target: "int64[batch, columns]"}
  model: |
    m = embedding(source, tokens, width)
    begun = concat([zeros_like(target[:, :1]), target], 1)
    x = embedding(begun, tokens, width) + param("places", [16, width], init=normal(0, 0.1))[:begun.shape[1]]
    q = reshape(linear(x, width), [batch, x.shape[1], 2, width // 2])
    places = param("rows", [64, width], init=normal(0, 0.1))[:rows]
    k = reshape(linear(m + places, width), [batch, rows, 2, width // 2])
    v = reshape(linear(m, width), [batch, rows, 2, width // 2])
    y = scaled_dot_product_attention(q, k, v, attn_mask=reshape(source_mask, [batch, 1, 1, rows]))
    logits = linear(relu(linear(concat([x, reshape(y, [batch, x.shape[1], width])], 2), 48)), tokens)
  outputs: [logits]
loss: |
  cross_entropy(logits, where(concat([ones_like(target_mask[:, :1]), target_mask], 1), concat([target, zeros_like(target[:, :1])], 1), -100))
metrics:
  bleu: sacrebleu(predicted, target)
  words: wer(predicted, target)
  characters: cer(predicted, target)
  ids: edit_rate(predicted, target)
predict: {kind: sequence, scores: logits, target: target, beams: 3}
optimizer: {name: adamw, lr: 0.02}
train: {epochs: 12, log_every: 1000, evaluate_every: 12 epochs, best: bleu}
Y
  data words 5 true
} > sequence.yaml
cat > same.py <<'P'
"""same.py SCORE_PROGRAM RUN PREDICTIONS [words]: the run's scores against those of the predicted texts."""
import csv, json, re, subprocess, sys
score, run, predictions = sys.argv[1:4]
by_words = len(sys.argv) > 4
rows = list(csv.DictReader(open("pairs.csv")))
found, references = [], []
for row in csv.DictReader(open(predictions)):
    found.append(row["text"])
    reference = rows[int(row["source"].split(":")[-1]) - 2]["target"]
    references.append(" ".join(re.findall(r"[\w]+(?:'\w+)*|[^\w\s]", reference.lower())) if by_words else reference)
line = [json.loads(l) for l in open(run + "/metrics.jsonl") if '"valid"' in l][-1]
assert len(found) == 66, len(found)
assert any(f != r for f, r in zip(found, references)) and any(f == r for f, r in zip(found, references)), "all alike"
open("found.txt", "w").write("\n".join(found) + "\n"), open("reference.txt", "w").write("\n".join(references) + "\n")
def of_files(kind):
    out = subprocess.run([score, kind, "found.txt", "reference.txt"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)
scores = {"words": of_files("wer"), "characters": of_files("cer"), "bleu": of_files("bleu")}
for name, found_scores in scores.items():
    assert line[name] in found_scores.values(), (name, line[name], found_scores)
if "percent" in line:
    assert line["percent"] == 100 * line["characters"] and line["read_words"] == line["words"], line
assert set(line["intervals"]) >= set(scores), line["intervals"]
try:
    import jiwer, sacrebleu
except ImportError:
    sys.exit()
for name, peer in (("words", jiwer.wer(references, found)), ("characters", jiwer.cer(references, found)),
                   ("bleu", sacrebleu.corpus_bleu(found, [references]).score)):
    assert abs(line[name] - peer) < 1e-6, (name, line[name], peer)
print("as jiwer and sacreBLEU")
P
last() { python3 -c 'import json, sys; line = [json.loads(l) for l in open(sys.argv[1] + "/metrics.jsonl") if "\"valid\"" in l][-1]; print([line[k] for k in sys.argv[2:]])' "$@" 2>&1 | tail -1; }
for kind in ctc sequence; do
  names=(words characters bleu)
  ok "$train" $kind.yaml --output $kind
  quiet 0 "$infer" $kind/model --data valid --output $kind.csv
  python3 same.py "$bin/paddle-score" $kind $kind.csv $([[ $kind == ctc ]] || echo words) > checked 2>&1 || fail "$kind: $(cat checked)"
  cat checked
  ok "$bin/paddle-eval" $kind
  python3 - out $kind <<'P' || fail "$kind: paddle-eval gives $(cat out)"
import json, sys
of_run = [json.loads(l) for l in open(sys.argv[2] + "/metrics.jsonl") if '"valid"' in l][-1]
again = json.loads(open(sys.argv[1]).read().strip().splitlines()[-1])
assert all(again[name] == of_run[name] for name in ("words", "characters", "bleu")), (again, of_run)
P
  for other in "parallel.data=2 --simulate 2" "--eager" "data.valid_batch_size=66"; do
    ok "$train" $kind.yaml --output other --overwrite optimizer.lr=0 train.epochs=1 train.evaluate_every="1 epochs" --init $kind/model/model.safetensors $other
    [[ "$(last other "${names[@]}")" == "$(last $kind "${names[@]}")" ]] || fail "$kind $other: $(last other "${names[@]}"), expected $(last $kind "${names[@]}")"
  done
done
# A value of that name that the step computes is the one that metrics see.
sed 's/  read = where/  predicted = where/; s/(read, /(predicted, /' ctc.yaml > own.yaml
ok "$train" own.yaml --output own
[[ "$(last own words)" == "$(last ctc words)" ]] || fail "predicted of the step: $(last own words), expected $(last ctc words)"
# ---- what does not fit ----
grep -v ^predict ctc.yaml > bare.yaml
expect 3 "metric 'words': 'predicted' is what a section \`predict:\` of kind ctc or sequence makes" "$train" bare.yaml --dry-run
expect 3 "'predicted' of a sequence is the first argument of" "$train" sequence.yaml --dry-run "metrics.words=average(predicted > 0)"
expect 3 "'predicted' of a sequence is the first argument of" "$train" sequence.yaml --dry-run "metrics.words=wer(predicted * 1, target)"
expect 3 "wer: label must be a field of the data with texts" "$train" ctc.yaml --dry-run "metrics.words=wer(predicted, target * 2)"
expect 3 "needs whole parameters on each rank" "$train" sequence.yaml --output split --overwrite parallel.data=1 parallel.tensor=2 --simulate 2
sed 's/kind: text, tokens: characters, max_length: 40, lowercase: false/dtype: int64, scalar: false/; s/columns: \[target\]/columns: [number]/' bare.yaml > numbers.yaml
sed '1s/$/,number/; 2,$s/$/,3/' pairs.csv > numbers.csv
expect 3 "the field 'target' of the data has no texts to compare with" "$train" numbers.yaml --dry-run data.train.path=numbers.csv data.valid.path=numbers.csv \
  'step=update(mean(model(source)))' "metrics={words: 'wer(source, target)'}"
finish
