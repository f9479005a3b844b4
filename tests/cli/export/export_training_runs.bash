# Runs whose steps are exported, for tests that define `trains NAME CONFIG OVERRIDE…`.
cat > "$folder/digits.yaml" <<'Y'
model: net.yaml
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.05}
data:
  batch_size: 16
  train: {kind: digits, size: 96}
  transforms:
    - scale: {fields: image, factor: 0.004}
train: {epochs: 10}
Y
cat > "$folder/net.yaml" <<'Y'
inputs: {image: "float32[batch, 1, 28, 28]"}
model: |
  x = conv2d(image, 8, 3, stride=2, padding=1, bias=false)
  x = relu(batch_norm(x))
  y = conv2d(x, 8, 3, padding=1, groups=4)
  x = max_pool2d(x + y, 3, 2, padding=1)
  x = avg_pool2d(relu(x), 2)
  x = layer_norm(flatten(x, 1))
  logits = linear(gelu(linear(x, 16)), 10)
outputs: [logits]
Y
cat > "$folder/text.yaml" <<'Y'
model: models.yaml
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.01}
clip: {global_norm: 0.5}
data:
  batch_size: 8
  train:
    kind: random
    size: 64
    fields:
      - {name: tokens, dtype: int64, shape: [6], low: 0, high: 20}
      - {name: label, dtype: int64, low: 0, high: 3}
train: {epochs: 10}
Y
cat > "$folder/models.yaml" <<'Y'
inputs: {tokens: "int64[batch, length]"}
model: |
  x = embedding(tokens, 20, 16)
  parts = split(linear(layer_norm(x), 48), 3, axis=-1)
  q = reshape(parts[0], [batch, length, 2, 8])
  k = reshape(parts[1], [batch, length, 2, 8])
  v = reshape(parts[2], [batch, length, 2, 8])
  x = x + reshape(scaled_dot_product_attention(q, k, v), [batch, length, 16])
  logits = linear(mean(x, 1), 3)
outputs: [logits]
Y
trains sgd "$folder/digits.yaml"
trains momentum "$folder/digits.yaml" "optimizer={name: momentum, lr: 0.02, momentum: 0.9, nesterov: true}"
trains adamw "$folder/digits.yaml" "optimizer={name: adamw, lr: 0.003, weight_decay: 0.1}"
trains rmsprop "$folder/digits.yaml" "optimizer={name: rmsprop, lr: 0.001, centered: true}"
trains adagrad "$folder/digits.yaml" "optimizer={name: adagrad, lr: 0.01}"
trains lamb "$folder/digits.yaml" "optimizer={name: lamb, lr: 0.01}"
trains text "$folder/text.yaml"
trains frozen "$folder/digits.yaml" "frozen=[conv2d.*, batch_norm.*]"

# Gradients of recurrent layers.
for layer in "lstm(x, 6, num_layers=2)" "lstm(x, 6, direction='bidirect')" "gru(x, 6)" "gru(x, 6, direction='bidirect')" \
  "simple_rnn(x, 6)" "simple_rnn(x, 6, activation='relu')"; do
  kind="${layer%%(*}"
  outputs="y, h"
  [[ "$kind" == lstm ]] && outputs="y, (h, c)"
  cat > "$folder/recurrent.yaml" <<Y
inputs: {tokens: "int64[batch, length]"}
model: |
  x = embedding(tokens, 20, 8)
  $outputs = $layer
  logits = linear(mean(y, 1) + y[:, -1], 3)
outputs: [logits]
Y
  sed "s/models.yaml/recurrent.yaml/" "$folder/text.yaml" > "$folder/recurrent_run.yaml"
  trains "recurrent_$(tr -cd 'a-z2' <<< "$layer")" "$folder/recurrent_run.yaml"
done
