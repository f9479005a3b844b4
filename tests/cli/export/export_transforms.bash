# A run on small pictures that are resized, cropped, padded and normalized: $folder/pictures.
cat > "$folder/pictures.yaml" <<'Y'
model: {inputs: {image: "float32[batch, 3, 10, 12]"}, model: [{conv2d: {out_channels: 4, kernel_size: 3}}, relu, flatten, {linear: 3}], outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.01}
data:
  batch_size: 4
  train:
    kind: random
    size: 8
    fields:
      - {name: image, dtype: uint8, shape: [3, 13, 17], low: 0, high: 255}
      - {name: label, dtype: int64, low: 0, high: 3}
  transforms:
    - resize: {fields: image, height: 9, width: 12}
    - center_crop: {fields: image, height: 8, width: 9}
    - pad: {fields: image, pad: [2, 1, 1, 1], value: 7}
    - scale: {fields: image, factor: 0.00392156862745098}
    - normalize: {fields: image, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
train: {epochs: 1}
Y
"$bin/paddle-train" "$folder/pictures.yaml" --output "$folder/pictures" > "$folder/out" 2> "$folder/error" || fail "pictures.yaml"

# A run on texts of different lengths, in words: $folder/texts.
cat > "$folder/texts.csv" <<'Y'
text,label
"Don't stop: THE film isn't bad, it's good",good
"Ärger über ДОМ und Σοφία (ein Wort)",bad
"‘word’漢字かな 3.5% off",good
"",bad
"good good bad",good
"the film is BAD",bad
"one",good
"a  b	c",bad
Y
cat > "$folder/texts.yaml" <<'Y'
model:
  inputs: {text: "int64[batch, length]", text_mask: "bool[batch, length]"}
  model: |
    words = embedding(text, 50, 8)
    weight = unsqueeze(cast(text_mask, dtype="float32"), 2)
    logits = linear(sum(words * weight, axis=1) / (sum(weight, axis=1) + 1), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 4
  train:
    kind: csv
    path: texts.csv
    fields:
      - {name: text, columns: [text], kind: text, max_length: 8}
      - {name: label, columns: [label], kind: categorical, scalar: true}
train: {epochs: 3}
Y
"$bin/paddle-train" "$folder/texts.yaml" --output "$folder/texts" > "$folder/out" 2> "$folder/error" || fail "texts.yaml"
