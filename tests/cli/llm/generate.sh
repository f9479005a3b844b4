#!/usr/bin/env bash
# Text generation with a small GPT trained for a moment: the same seed gives the same text, another
# seed another one; temperature 0 is the most likely text; characters that the model has never seen
# are reported with their position; models that write no text say so.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
for _ in $(seq 200); do printf 'the quick brown fox jumps over the lazy dog\n'; done > "$folder/text.txt"
net=("params={layers: 2, width: 32, heads: 2, vocab_size: 28}" "data.train={kind: text, path: $folder/text.txt, context: 32}" data.valid=
  train.steps=120 schedule=constant optimizer.lr=5e-3)
"$train" configs/text/char_gpt.yaml "${net[@]}" --output "$folder/run" > "$folder/out" || { cat "$folder/out"; exit 1; }
model="$folder/run/model"

text() { "$infer" "$model" --prompt "the " --length 40 "$@" 2> "$folder/error" || fail "$*"; }
same() { [[ "$1" == "$2" ]] || { : > "$folder/error"; fail "$3: '$1' and '$2'"; }; }
differ() { [[ "$1" != "$2" ]] || { : > "$folder/error"; fail "$3: both '$1'"; }; }
same "$(text --seed 1)" "$(text --seed 1)" "one seed"
same "$(text --seed 1 --threads 1)" "$(text --seed 1 --threads 2)" "threads"
differ "$(text --seed 1 --temperature 2)" "$(text --seed 2 --temperature 2)" "two seeds"
greedy="$(text --temperature 0)"
same "$greedy" "$(text --temperature 0 --seed 5)" "temperature 0"
same "$greedy" "$(text --top-k 1 --seed 6)" "top-k 1"
same "$greedy" "$(text --top-p 1e-9 --seed 7)" "top-p near 0"
[[ "$(tr '\n' ' ' < "$folder/text.txt")" == *"$(tr '\n' ' ' <<< "$greedy" | sed 's/ $//')"* ]] || { : > "$folder/error"; fail "it has learned '$greedy'"; }
same "$("$infer" "$folder/run/checkpoints/latest" --prompt "the " --length 40 --temperature 0)" "$greedy" "a checkpoint"
same "$("$infer" "$model" --prompt "the" --length 0)" "the" "no length"
rest="${greedy:4}"
same "$(text --temperature 0 --stop "${greedy:12:3}" --stop 9)" "the ${rest%%"${greedy:12:3}"*}" "a stop text"
same "$(text --min-p 1 --seed 6)" "$greedy" "min-p 1"
differ "$(text --temperature 0 --repetition-penalty 100)" "$greedy" "a repetition penalty"
quiet 0 "$infer" "$model" --prompt "" --length 5
long="$(head -c 300 "$folder/text.txt" | tr '\n' ' ')"
quiet 0 "$infer" "$model" --prompt "$long" --length 3

# With caches of keys and values in `step`, and without: the same text, also past the context, where the
# beginning of the text moves.
sed '/^functions:/,$d' models/char_gpt.yaml > "$folder/whole.yaml"
grep -q "func 'step'" "$model/module.txt" || fail "the model has no function step"
"$train" configs/text/char_gpt.yaml model="$folder/whole.yaml" "${net[@]}" --output "$folder/whole" > /dev/null || fail "without step"
for length in 20 60; do
  for options in "--seed 3" "--temperature 0"; do
    # shellcheck disable=SC2086
    same "$("$infer" "$folder/whole/model" --prompt "the quick" --length $length $options)" \
      "$("$infer" "$model" --prompt "the quick" --length $length $options)" "caches, $length tokens, $options"
  done
done
"$train" configs/text/char_gpt.yaml "${net[@]}" precision=float64 train.steps=2 --output "$folder/double" > /dev/null || fail "float64"
quiet 0 "$infer" "$folder/double/model" --prompt "the" --length 3

expect 4 "character 'é' at byte 1 is not in the vocabulary of 28 characters" "$infer" "$model" --prompt "xé" --length 3
[[ ! -s "$folder/out" ]] || fail "the prompt is printed before it is rejected"
for option in "--temperature -1" "--temperature nan" "--top-p 0" "--top-p 1.5" "--top-k -2" "--length -1" "--min-p 2" "--min-p -1" "--repetition-penalty 0" "--stop="; do
  # shellcheck disable=SC2086
  expect 2 "" "$infer" "$model" --prompt "a" $option
done
"$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 64}" data.valid= train.epochs=1 --output "$folder/digits" > /dev/null
expect 2 "takes 'image', which is not the tokens of a text" "$infer" "$folder/digits/model" --prompt a

# A model of bytes reads and writes bytes.
"$train" configs/text/char_gpt.yaml "${net[@]}" params.vocab_size=256 data.train.level=bytes train.steps=2 --output "$folder/bytes" > /dev/null || fail "bytes"
quiet 0 "$infer" "$folder/bytes/model" --prompt "é日" --length 3
finish
