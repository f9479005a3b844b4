#!/usr/bin/env bash
# Folders of sentence-transformers: poolings, joined ones, dense layers, prompts, and modules and settings
# that are not supported. The vectors of two tokens follow from those of the first and the last one.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
make_llama
encoder="$folder/encoder"
cp -r tests/llm/data/bert "$encoder"
cp "$model/tokenizer.json" "$encoder/"

cat > "$folder/modules.py" <<'PYTHON'
import json, os, random, struct, sys
base, poolings, *modules = sys.argv[1:]
names = {"Transformer": "", "Pooling": "1_Pooling"}
listed = [{"idx": i, "name": str(i), "path": names.get(m, "%d_%s" % (i, m)), "type": "sentence_transformers.models." + m} for i, m in enumerate(["Transformer", "Pooling", *modules])]
json.dump(listed, open(base + "/modules.json", "w"))
os.makedirs(base + "/1_Pooling", exist_ok=True)
keys = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
json.dump({"word_embedding_dimension": 32, **{"pooling_mode_" + k: k in poolings.split(",") for k in keys}}, open(base + "/1_Pooling/config.json", "w"))
random.seed(3)
for each in listed[2:]:
    os.makedirs(base + "/" + each["path"], exist_ok=True)
    if not each["type"].endswith("Dense"):
        continue
    weight = [[random.gauss(0, 0.2) for _ in range(32)] for _ in range(5)]
    bias = [random.gauss(0, 0.2) for _ in range(5)]
    data = struct.pack("<160f", *sum(weight, [])) + struct.pack("<5f", *bias)
    head = json.dumps({"linear.weight": {"dtype": "F32", "shape": [5, 32], "data_offsets": [0, 640]}, "linear.bias": {"dtype": "F32", "shape": [5], "data_offsets": [640, 660]}}).encode()
    open(base + "/" + each["path"] + "/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + data)
    json.dump({"in_features": 32, "out_features": 5, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}, open(base + "/" + each["path"] + "/config.json", "w"))
    json.dump([weight, bias], open(base + "/dense.json", "w"))
PYTHON
modules() { python3 "$folder/modules.py" "$encoder" "$@"; }
vectors() { "$infer" "$encoder" --embed "$folder/lines.txt" --output "$folder/$1.jsonl" 2> "$folder/error" || fail "--embed, $1"; }

echo 78 > "$folder/lines.txt"
for pooling in cls_token mean_tokens max_tokens mean_sqrt_len_tokens weightedmean_tokens lasttoken; do
  modules "$pooling" && vectors "$pooling"
done
modules lasttoken,cls_token,mean_tokens && vectors joined
modules mean_tokens Dropout Normalize && vectors normalized
modules mean_tokens Dense && vectors dense
modules mean_tokens Dense Normalize && vectors dense_normalized
python3 - "$folder" "$encoder" 2> "$folder/error" <<'PYTHON' || fail "vectors"
import json, math, sys
folder, encoder = sys.argv[1:]
read = lambda name: json.loads(open(f"{folder}/{name}.jsonl").readline())["embedding"]
def same(name, wanted):
    got = read(name)
    assert len(got) == len(wanted) and all(abs(a - b) < 1e-5 for a, b in zip(got, wanted)), (name, got, wanted)
first, last = read("cls_token"), read("lasttoken")
assert max(abs(a - b) for a, b in zip(first, last)) > 1e-3
pairs = list(zip(first, last))
mean = [(a + b) / 2 for a, b in pairs]
same("mean_tokens", mean)
same("max_tokens", [max(a, b) for a, b in pairs])
same("mean_sqrt_len_tokens", [(a + b) / math.sqrt(2) for a, b in pairs])
same("weightedmean_tokens", [(a + 2 * b) / 3 for a, b in pairs])
same("joined", first + mean + last)
unit = lambda x: [v / math.sqrt(sum(w * w for w in x)) for v in x]
same("normalized", unit(mean))
weight, bias = json.load(open(encoder + "/dense.json"))
dense = [math.tanh(sum(w * x for w, x in zip(row, mean)) + b) for row, b in zip(weight, bias)]
same("dense", dense)
same("dense_normalized", unit(dense))
PYTHON

# Texts before they are tokens: the default prompt, small letters, blanks at the ends.
modules mean_tokens
echo '{"prompts": {"query": "12", "none": ""}, "default_prompt_name": "query"}' > "$encoder/config_sentence_transformers.json"
echo '{"max_seq_length": 5, "do_lower_case": true}' > "$encoder/sentence_bert_config.json"
vectors prompted
expect 4 "the text has 6 tokens; the model's context is 5" "$infer" "$encoder" --embed - <<< 3456
rm "$encoder/config_sentence_transformers.json"
echo "  1278 " > "$folder/lines.txt"
vectors whole
cmp -s "$folder/prompted.jsonl" "$folder/whole.jsonl" || fail "a default prompt"
echo B > "$folder/lines.txt"
expect 4 "a text without tokens" "$infer" "$encoder" --embed "$folder/lines.txt"
rm "$encoder/sentence_bert_config.json"
ok "$infer" "$encoder" --embed "$folder/lines.txt"

# Whatever changes vectors and is not there is an error that names it.
rejected() { expect 5 "$1" "$infer" "$encoder" --embed "$folder/lines.txt"; }
modules mean_tokens CNN && rejected "modules.json: [2].type: 'sentence_transformers.models.CNN' is not supported"
modules mean_tokens Normalize Dense && rejected "'sentence_transformers.models.Dense' is not supported at this place"
modules none && rejected "1_Pooling/config.json: no pooling is switched on"
modules mean_tokens Dense
sed -i 's/Tanh/Mish/' "$encoder/2_Dense/config.json" && rejected "activation_function: 'torch.nn.modules.activation.Mish' is not supported"
modules cls_token,mean_tokens Dense && rejected "in_features: is 32, the vectors have 64 numbers"
modules mean_tokens Dense
rm "$encoder/2_Dense/model.safetensors" && rejected "2_Dense: has neither model.safetensors nor pytorch_model.bin"
modules mean_tokens
sed -i 's/"pooling_mode_lasttoken"/"pooling_mode_median": true, &/' "$encoder/1_Pooling/config.json" && rejected "pooling_mode_median: this pooling is not supported"
modules mean_tokens
sed -i 's/{/{"include_prompt": false, /' "$encoder/1_Pooling/config.json"
ok "$infer" "$encoder" --embed "$folder/lines.txt"
echo '{"prompts": {"query": "12"}, "default_prompt_name": "query"}' > "$encoder/config_sentence_transformers.json"
rejected "include_prompt: pooling without the tokens of the prompt is not supported"
echo '{"prompts": {"query": "12"}, "default_prompt_name": "other"}' > "$encoder/config_sentence_transformers.json"
rejected "config_sentence_transformers.json: prompts: there is no 'other'"
finish
