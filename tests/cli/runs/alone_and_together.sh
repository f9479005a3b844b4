#!/usr/bin/env bash
# Predictions and evaluations of recipes do not depend on which rows share a batch.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(5)
def words(letters, most): return [random.choice(letters) for _ in range(random.randrange(1, most))]
with open("reviews.csv", "w") as file:
    file.write("review,stars\n")
    for i in range(120):
        text = words(["film", "was", "it", "and"], 40) + [random.choice(["great", "fine"] if i % 2 else ["awful", "dull"])]
        random.shuffle(text)
        file.write(" ".join(text) + f",{5 if i % 2 else 1}\n")
with open("pairs.csv", "w") as file:
    file.write("source,target\n")
    for _ in range(120):
        text = words("abcdefg", 12)
        file.write(" ".join(text) + "," + " ".join(reversed(text)) + "\n")
with open("tags.csv", "w") as file:
    file.write("words,tags\n")
    for _ in range(120):
        text = words("abcdefg", 14)
        file.write(" ".join(text) + "," + " ".join("X" if a == b else "Y" for a, b in zip(text, text[1:] + ["z"])) + "\n")
with open("prices.csv", "w") as file:
    file.write("a,town,price\n")
    for _ in range(120):
        a = random.gauss(0, 1)
        file.write(f"{a:.4f},{random.choice(['Rome', 'Oslo'])},{100 + 30 * a:.3f}\n")
P
for each in text-classification:reviews.csv sequence-to-sequence:pairs.csv tagging:tags.csv tabular-regression:prices.csv; do
  recipe="${each%%:*}"
  ok "$bin/paddle-new" "$recipe" --small --data "${each#*:}" -o "$recipe.yaml"
  ok "$train" "$recipe.yaml" --output "run-$recipe" train.epochs=2
  for batch in 1 64; do
    ok "$infer" "run-$recipe" --data valid --batch "$batch" --output "$batch.jsonl"
    ok "$bin/paddle-eval" "run-$recipe" "data.valid_batch_size=$batch"
    tail -n 1 out > "$batch.eval"
  done
  python3 - <<'P' || fail "$recipe: predictions or losses depend on the batch"
import json
def same(a, b):
    if isinstance(a, (list, dict)):
        pairs = zip(a, b) if isinstance(a, list) else [(a[k], b[k]) for k in a]
        return len(a) == len(b) and all(same(x, y) for x, y in pairs)
    return abs(a - b) <= 1e-5 * max(1, abs(a)) if isinstance(a, float) else a == b
rows = [[json.loads(line) for line in open(f"{batch}.jsonl")] for batch in (1, 64)]
assert len(rows[0]) > 5 and same(*rows), rows
losses = [json.load(open(f"{batch}.eval"))["loss"] for batch in (1, 64)]
assert same(*losses), losses
P
done
finish
