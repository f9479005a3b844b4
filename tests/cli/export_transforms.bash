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
