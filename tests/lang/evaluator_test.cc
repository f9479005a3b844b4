// Models on types only: names and sizes of parameters, control flow, chains, errors.

#include <gtest/gtest.h>

#include "support/evaluate_types.h"

namespace paddle::lang {
namespace {

using namespace testing_support;

TEST(Evaluator, LeNetChain) {
  const Result run = run_text(R"(
name: lenet
inputs:
  image: float32[batch, 1, 28, 28]
model:
  - conv2d: {out_channels: 6, kernel_size: 3, padding: 1}
  - relu
  - max_pool2d: 2
  - conv2d: {out_channels: 16, kernel_size: 5}
  - relu
  - max_pool2d: 2
  - flatten: {start_axis: 1}
  - linear: 120
  - linear: 84
  - linear: 10
outputs: [logits]
)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "logits float32[batch, 10]\n");
  EXPECT_EQ(run.store.text(),
            "conv2d.bias float32[6]\nconv2d.weight float32[6, 1, 3, 3]\nconv2d_2.bias float32[16]\n"
            "conv2d_2.weight float32[16, 6, 5, 5]\nlinear.bias float32[120]\n"
            "linear.weight float32[400, 120]\nlinear_2.bias float32[84]\n"
            "linear_2.weight float32[120, 84]\nlinear_3.bias float32[10]\n"
            "linear_3.weight float32[84, 10]\n");
  EXPECT_EQ(run.store.inits.at("linear.weight"), "xavier_uniform");
}

TEST(Evaluator, ResnetNames) {
  const Result run = run_text(R"(
params: {depth: [3, 4, 6, 3], width: 64, classes: 1000}
inputs:
  image: float32[batch, 3, rows, columns]
blocks:
  conv_bn(x, channels, kernel, stride=1): |
    return batch_norm(conv2d(x, channels, kernel, stride=stride, padding=kernel // 2, bias=false))
  bottleneck(x, mid, stride=1): |
    y = relu(conv_bn(x, mid, 1))
    y = relu(conv_bn(y, mid, 3, stride))
    y = conv_bn(y, 4 * mid, 1)
    if stride != 1 or x.shape[1] != 4 * mid:
      x = conv_bn(x, 4 * mid, 1, stride)
    return relu(x + y)
model: |
  x = max_pool2d(relu(conv_bn(image, width, 7, 2)), 3, 2, padding=1)
  for stage, count in enumerate(depth):
    for i in range(count):
      x = bottleneck(x, width * 2 ** stage, stride=2 if i == 0 and stage > 0 else 1)
  logits = linear(mean(x, [2, 3]), classes)
outputs: [logits]
)",
                              true);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "logits float32[batch, 1000]\n");
  EXPECT_TRUE(run.store.types.count("conv_bn.conv2d.weight"));
  EXPECT_TRUE(run.store.types.count("bottleneck.2.0.conv_bn_2.batch_norm.weight"));
  EXPECT_TRUE(run.store.types.count("bottleneck.3.0.conv_bn_4.conv2d.weight"));
  EXPECT_FALSE(run.store.types.count("bottleneck.3.1.conv_bn_4.conv2d.weight"));
  EXPECT_EQ(run.store.kinds.at("conv_bn.batch_norm.running_mean"), "state ");
  int64_t parameters = 0;
  for (const auto& [path, type] : run.store.types) {
    if (run.store.kinds.at(path).empty())
      parameters += element_count(std::span<const Dim>(type.shape)).value();
  }
  EXPECT_EQ(parameters, 25557032);
  EXPECT_NE(run.store.updated.find("bottleneck.0.0.conv_bn.batch_norm.running_var"),
            std::string::npos);
}

TEST(Evaluator, GptBody) {
  const Result run = run_text(R"(
params: {layers: 4, heads: 4, width: 128, vocabulary: 65, context: 64}
inputs:
  tokens: int64[batch, seq]
blocks:
  attention(x): |
    b, s, w = x.shape
    qkv = linear(x, 3 * width).reshape([b, s, 3, heads, width // heads])
    q = qkv[:, :, 0]
    k = qkv[:, :, 1]
    v = qkv[:, :, 2]
    y = scaled_dot_product_attention(q, k, v, is_causal=true)
    return linear(y.reshape([b, s, width]), width)
  mlp(x): return linear(gelu(linear(x, 4 * width), approximate=true), width)
  layer(x): |
    x = x + attention(layer_norm(x))
    return x + mlp(layer_norm(x))
model: |
  pos = param("pos", [context, width], init=normal(0, 0.02))
  x = embedding(tokens, vocabulary, width, name="tok") + pos[:tokens.shape[1]]
  for i in range(layers):
    x = layer(x)
  x = layer_norm(x)
  logits = matmul(x, get("tok.weight"), transpose_y=true)
outputs: [logits]
)");
  EXPECT_EQ(run.error, "");
  EXPECT_TRUE(run.store.types.count("layer.3.mlp.linear_2.weight"));
  EXPECT_TRUE(run.store.types.count("layer.0.layer_norm_2.bias"));
  EXPECT_TRUE(run.store.types.count("tok.weight"));
  EXPECT_EQ(run.store.inits.at("pos"), "normal(0, 0.02)");
}

TEST(Evaluator, NamesOfParameters) {
  Result run = run_body(R"(for i in range(2):
  x = linear(linear(x, 4), 4, name="q")
  g = param("gain", [4])
y = linear(x, 4, share="tied") + linear(x, 4, share="tied")
f = linear
z = f(x, 3)
return z)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(
      run.store.text(),
      "gain.0 float32[4]\ngain.1 float32[4]\nlinear_2.0.bias float32[4]\nlinear_2.0.weight "
      "float32[4, 4]\n"
      "linear_2.1.bias float32[4]\nlinear_2.1.weight float32[4, 4]\nlinear_5.bias float32[3]\n"
      "linear_5.weight float32[4, 3]\nq.0.bias float32[4]\nq.0.weight float32[4, 4]\nq.1.bias "
      "float32[4]\n"
      "q.1.weight float32[4, 4]\ntied.bias float32[4]\ntied.weight float32[4, 4]\n");
}

TEST(Evaluator, NamingErrors) {
  EXPECT_NE(run_body("return linear(x, 4, name='a') + linear(x, 4, name='a')")
                .error.find("two different layers are called 'a'"),
            std::string::npos);
  EXPECT_NE(run_body("return relu(x, name='a')").error.find("this operation has none"),
            std::string::npos);
  EXPECT_NE(run_body("return linear(x, 4, share='a') + linear(x, 4, share='b', name='c')")
                .error.find("mutually exclusive"),
            std::string::npos);
  EXPECT_NE(
      run_body("return linear(x, 4, share='a') + layer_norm(x, share='a')").error.find("share"),
      std::string::npos);
  EXPECT_NE(run_body("a = linear(x, 4, share='t')\nreturn linear(x, 5, share='t')").error, "");
  EXPECT_NE(run_body("return get('nope.weight')").error.find("no parameter 'nope.weight'"),
            std::string::npos);
  EXPECT_NE(run_body("w = param('w', [x.shape[0], 3])\nreturn w").error.find("the dim 'n'"),
            std::string::npos);
  EXPECT_NE(run_body("return linear(x.transpose([1, 0]), 3)").error.find("the dim 'n'"),
            std::string::npos);
  EXPECT_NE(run_body("a = param('w', [3])\nb = param('w', [4])\nreturn b").error.find("elsewhere"),
            std::string::npos);
}

TEST(Evaluator, LayersWithGivenWeights) {
  Result run = run_body("w = param('w', [4, 5])\nreturn linear(x, weight=w)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[n, 5]\n");
  EXPECT_EQ(run.store.text(), "w float32[4, 5]\n");
  run = run_body("return linear(x, 3, bias=false, weight_init=normal(0, 1))");
  EXPECT_EQ(run.store.text(), "linear.weight float32[4, 3]\n");
  EXPECT_EQ(run.store.inits.at("linear.weight"), "normal(0, 1)");
  EXPECT_NE(run_body("return linear(x)").error.find("'out_features' is missing"),
            std::string::npos);
  EXPECT_NE(run_body("return linear(x, 3, bais=false)")
                .error.find("m.yaml:4:23: linear: unknown argument 'bais' (did you mean 'bias'"),
            std::string::npos);
  EXPECT_NE(run_body("return linear(x, 3, true, 4)").error.find("at most 3 arguments"),
            std::string::npos);
}

TEST(Evaluator, MultiHeadAttention) {
  Result run = run_body("h = x.unsqueeze(0)\nreturn multi_head_attention(h, 2, bias=false)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[1, n, 4]\n");
  EXPECT_EQ(run.store.text(),
            "multi_head_attention.k_weight float32[4, 4]\n"
            "multi_head_attention.out_weight float32[4, 4]\n"
            "multi_head_attention.q_weight float32[4, 4]\n"
            "multi_head_attention.v_weight float32[4, 4]\n");
  run = run_body(
      "h = x.unsqueeze(0)\nk = linear(h, 6)\n"
      "return multi_head_attention(h, 2, key=k, name='cross')");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.store.types.at("cross.k_weight").text(), "float32[6, 4]");
  EXPECT_EQ(run.store.types.at("cross.v_weight").text(), "float32[6, 4]");
  EXPECT_EQ(run.store.types.at("cross.out_bias").text(), "float32[4]");
  EXPECT_NE(run_body("return multi_head_attention(x.unsqueeze(0), 3)").error.find("must divide"),
            std::string::npos);
  EXPECT_NE(run_body("return multi_head_attention(x, 2)").error.find("[batch, sequence, width]"),
            std::string::npos);
  EXPECT_NE(run_body("return multi_head_attention(2)").error, "");
}

TEST(Evaluator, SpectralNormKeepsItsVectors) {
  const std::string body =
      "w = spectral_norm(param('w', [3, 4, 2], init=1), dim=1)\nreturn x @ w[0]";
  Result run = run_body(body, true);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[n, 2]\n");
  EXPECT_EQ(run.store.types.at("spectral_norm.u").text(), "float32[4]");
  EXPECT_EQ(run.store.types.at("spectral_norm.v").text(), "float32[6]");
  EXPECT_EQ(run.store.updated, "spectral_norm.u spectral_norm.v ");
  EXPECT_EQ(run_body(body).store.updated, "");
  EXPECT_NE(
      run_body("w = spectral_norm(param('w', [3, 4]), dim=2)\nreturn x").error.find("no axis 2"),
      std::string::npos);
}

TEST(Evaluator, CalledFrom) {
  const Result run = run_text(
      "inputs: {x: 'float32[n, 4]'}\nblocks:\n  g(x): return concat([x], 7)\n  f(x): return "
      "g(x)\nmodel: |\n  return f(x)\n");
  EXPECT_TRUE(run.error.starts_with("m.yaml:3:16: concat:")) << run.error;
  EXPECT_NE(run.error.find("\n  called from m.yaml:4:16\n  called from m.yaml:6:10"),
            std::string::npos)
      << run.error;
}

TEST(Evaluator, Recursion) {
  EXPECT_NE(run_text("inputs: {x: 'float32[n]'}\nblocks:\n  f(x): return g(x)\n  g(x): return "
                     "f(x)\nmodel: return f(x)\n")
                .error.find("calls itself (f → g → f)"),
            std::string::npos);
}

TEST(Evaluator, ControlFlowOnTensors) {
  EXPECT_EQ(run_body("if x.sum() > 0:\n  y = x * 2\nelse:\n  y = x\nreturn y").types(),
            "output float32[n, 4]\n");
  EXPECT_EQ(run_body("s = 0\nwhile s < x.sum():\n  s = s + 1\nreturn s").types(),
            "output int64[]\n");
  EXPECT_EQ(run_body("s = 0\nwhile s < 10:\n  s = s + x.sum()\nreturn s").types(),
            "output float32[]\n");
  EXPECT_EQ(run_body("y = x if k > 0 else -x\nreturn y").types(), "output float32[n, 4]\n");
  EXPECT_EQ(run_body("c = 0\nif k > 0:\n  c = 1\nreturn x * c").types(), "output float32[n, 4]\n");
  EXPECT_EQ(run_body("while k > 0:\n  x = linear(x, 4)\n  k = k - 1\nreturn x").store.text(),
            "linear.bias float32[4]\nlinear.weight float32[4, 4]\n");
  EXPECT_NE(
      run_body("if k > 0:\n  y = x\nreturn y").error.find("only one branch of the 'if' in line 4"),
      std::string::npos);
  EXPECT_EQ(run_body("if k > 0:\n  return x\nreturn -x").types(), "output float32[n, 4]\n");
  EXPECT_EQ(run_body("if k > 0:\n  if k > 1: return x\n  y = 2\nelif k < -1:\n  y = 3\nelse:\n  "
                     "return x\nreturn y * x")
                .types(),
            "output float32[n, 4]\n");
  EXPECT_NE(run_body("if k > 0:\n  return x\ny = x").error.find("needs a 'return' on the other"),
            std::string::npos);
  EXPECT_EQ(run_body("for i in range(2):\n  if k > i:\n    return x * 2\nreturn x").types(),
            "output float32[n, 4]\n");
  EXPECT_EQ(run_body("i = 0\nwhile true:\n  if k < i: break\n  i += 1\n  if k == 7: continue\n"
                     "  if k == 9: return i, x\nreturn -1, x * i\n")
                .error.find("'outputs' must name"),
            std::string("m.yaml:3:1: the model returns a tuple of 2: ").size());
  EXPECT_NE(run_body("if x > 0:\n  y = x\nelse:\n  y = -x\nreturn y").error.find("one element"),
            std::string::npos);
  EXPECT_NE(run_body("l = [x]\nwhile k > 0:\n  l.append(x)\n  k -= 1\nreturn l[0]")
                .error.find("in one case"),
            std::string::npos);
  EXPECT_NE(run_body("if k > 0:\n  y = x\nelse:\n  y = 'a'\nreturn y").error.find("in one case"),
            std::string::npos);
  EXPECT_EQ(run_body("return not (x > 0 and x < 1)").types(), "output bool[n, 4]\n");
}

TEST(Evaluator, States) {
  Result run = run_body(
      "s = state('mean', [4], init=0)\nif training:\n  update(s, 0.9 * s + 0.1 * "
      "x.mean(0))\nreturn x - get('mean')",
      true);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.store.updated, "mean ");
  EXPECT_NE(run_body("s = state('m', [4])\nupdate(s, s)\nreturn x").error.find("if training:"),
            std::string::npos);
  EXPECT_EQ(run_body("s = state('m', [4], scope='sequence')\nupdate(s, s + 1)\nreturn x").error,
            "");
  EXPECT_NE(run_body("s = state('m', [4], scope='seqence')\nreturn x")
                .error.find("did you mean 'sequence'"),
            std::string::npos);
  EXPECT_NE(
      run_body("s = state('m', [4])\nupdate(s, x)\nreturn x", true).error.find("the new value"),
      std::string::npos);
}

TEST(Evaluator, ChainsAndReferences) {
  Result run = run_text(R"(
params: {act: relu, classes: 3}
inputs: {x: "float32[batch, 8]"}
blocks:
  twice(x, size, act=relu):
    - linear: size
    - act
    - linear: {out_features: size, name: out}
model:
  - twice: 16
    as: first
  - twice: {size: 16, act: act}
  - add:
    from: [first, _]
  - concat: {axis: 1}
    from: [first, _, x]
  - linear: {out_features: classes, bias: false}
)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[batch, 3]\n");
  EXPECT_TRUE(run.store.types.count("twice_2.out.weight"));
  EXPECT_TRUE(run.store.types.count("twice.linear.weight"));
  run = run_text("inputs: {x: 'float32[n, 3]'}\nmodel: [conv3d: 3]\n");
  EXPECT_NE(run.error, "");
  run = run_text(
      "inputs: {x: 'float32[n, 1, 8, 8]'}\nmodel:\n  - conv2d: {out_channels: 4, kernel_size: 3, "
      "padding: SAME}\n");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[n, 4, 8, 8]\n");
  run = run_text("inputs: {a: 'float32[n]', b: 'float32[n]'}\nmodel: [relu]\n");
  EXPECT_NE(run.error.find("'from:'"), std::string::npos);
}

TEST(Evaluator, JsonModels) {
  const Result run = run_text(
      R"({"params": {"width": "2 * 8", "mode": "'SAME'"}, "inputs": {"x": "float32[n, 1, 8, 8]"},
 "model": "y = conv2d(x, width, 3, padding=mode)\nreturn y"})",
      false, "m.json");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[n, 16, 8, 8]\n");
}

TEST(Evaluator, DropoutFollowsTheMode) {
  EXPECT_EQ(run_body("return dropout(x, 0.1)", true).types(), "output float32[n, 4]\n");
  EXPECT_EQ(run_body("return dropout(x, 0.1)", false).types(), "output float32[n, 4]\n");
}

TEST(Evaluator, TablesOfRowsByKey) {
  const auto run = [](const std::string& body) {
    return run_text(
        "inputs: {u: 'int64[batch]', t: 'int32[batch, 5]', x: 'float32[batch, 4]'}\n"
        "model: |\n  return " +
        body + "\n");
  };
  const Result user = run("sparse_embedding(u, 8, name='user')");
  EXPECT_EQ(user.error, "");
  EXPECT_EQ(user.types(), "output float32[batch, 8]\n");
  EXPECT_EQ(user.store.text(), "user table float32[8]\n");
  EXPECT_EQ(user.store.inits.at("user"), "uniform(-0.05, 0.05)");
  const Result both =
      run("concat([sparse_embedding(t, dim=2, weight_init=normal(0, 0.1)), "
          "sparse_embedding(t, 3, weight_init=0)], -1)");
  EXPECT_EQ(both.types(), "output float32[batch, 5, 5]\n");
  EXPECT_EQ(both.store.text(),
            "sparse_embedding table float32[2]\nsparse_embedding_2 table float32[3]\n");
  EXPECT_EQ(both.store.inits.at("sparse_embedding"), "normal(0, 0.1)");
  for (const auto& [body, error] : std::vector<std::pair<std::string, std::string>>{
           {"sparse_embedding(x, 8)", "x must be int32, int64 or uint64, found float32[batch, 4]"},
           {"sparse_embedding(u)", "sparse_embedding: 'dim' is missing"},
           {"sparse_embedding(u, 0)", "dim must be at least 1, found 0"},
           {"sparse_embedding(u, 2.5)", "dim must be an integer, found"},
           {"sparse_embedding(u, batch)", "dim must be an integer, found"},
           {"sparse_embedding(u, 8, 9)", "at most 2 arguments, found 3"},
           {"sparse_embedding(u, 8, dims=3)", "unknown argument 'dims' (did you mean 'dim'?)"},
           {"sparse_embedding(u, 8, weight_init=xavier_uniform)",
            "xavier_uniform depends on the number of rows"},
           {"sparse_embedding(u, 8, name='a') + sparse_embedding(u, 8, name='a')",
            "two different layers are called 'a'"}}) {
    const std::string said = run(body).error;
    EXPECT_NE(said.find(error), std::string::npos) << body << ": " << said;
    EXPECT_EQ(said.find("m.yaml:3:"), 0u) << said;
  }
}

TEST(Evaluator, Experts) {
  const auto run = [](const std::string& options, const std::string& from = "x") {
    return run_text("inputs: {x: 'float32[batch, 3, 4]', u: 'int64[batch]'}\nmodel:\n  - {from: " +
                    from + ", experts: {" + options + "}}\n");
  };
  const Result plain = run("count: 8, chosen: 2, inner: 6");
  EXPECT_EQ(plain.error, "");
  EXPECT_EQ(plain.types(), "output float32[batch, 3, 4]\n");
  EXPECT_EQ(plain.store.text(),
            "experts.down_weight float32[8, 6, 4]\nexperts.router_weight float32[4, 8]\n"
            "experts.up_weight float32[8, 4, 12]\n");
  const Result all =
      run("count: 8, chosen: 2, inner: 6, gate: {scores: sigmoid, normalize: none, scale: 2.5, "
          "groups: 4, chosen_groups: 2}, shared: {inner: 5, gate: sigmoid}, activation: gelu, "
          "balance: {bias: {rate: 0.01}}, capacity: none, weight_init: 'normal(0, 0.02)'");
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.types(), "output float32[batch, 3, 4]\n");
  EXPECT_NE(all.store.text().find("experts.shared_gate_weight float32[4, 1]"), std::string::npos)
      << all.store.text();
  EXPECT_NE(all.store.text().find("experts.up_weight float32[8, 4, 6]"), std::string::npos);
  for (const auto& [options, error] : std::vector<std::pair<std::string, std::string>>{
           {"count: 8, chosen: 2", "'inner' is missing"},
           {"count: 8, chosen: 9, inner: 6", "chosen must be from 1 to 8, not 9"},
           {"count: 0, chosen: 1, inner: 6", "count must be from 1 to"},
           {"count: 8, chosen: 2, inner: 2.5", "inner must be an integer, found"},
           {"count: 8, chosen: 2, inner: 6, capacities: none",
            "unknown argument 'capacities' (did you mean 'capacity'?)"},
           {"count: 8, chosen: 2, inner: 6, capacity: 1.25", "capacity must be none"},
           {"count: 8, chosen: 2, inner: 6, activation: tanh",
            "activation must be silu_gated, relu, gelu, not 'tanh'"},
           {"count: 8, chosen: 2, inner: 6, gate: softmax", "gate must be a map"},
           {"count: 8, chosen: 2, inner: 6, gate: {score: sigmoid}",
            "gate: unknown key 'score' (did you mean 'scores'?)"},
           {"count: 8, chosen: 2, inner: 6, gate: {normalize: chosen, scale: 0}",
            "gate.scale must be positive and finite, not 0"},
           {"count: 8, chosen: 2, inner: 6, gate: {groups: 3}",
            "8 experts are not a multiple of 3 groups"},
           {"count: 8, chosen: 3, inner: 6, gate: {groups: 4, chosen_groups: 1}",
            "gate.chosen_groups leaves 2 experts"},
           {"count: 8, chosen: 2, inner: 6, balance: {bias: {rates: 1}}",
            "balance.bias: unknown key 'rates' (did you mean 'rate'?)"},
           {"count: 8, chosen: 2, inner: 6, balance: {bias: {rate: -1}}",
            "balance.bias.rate must be positive"},
           {"count: 8, chosen: 2, inner: 6, shared: {gate: sigmoid}", "shared.inner is missing"},
           {"count: 8, chosen: 2, inner: 6, shared: 0", "shared must be from 1 to"}}) {
    const std::string said = run(options).error;
    EXPECT_NE(said.find(error), std::string::npos) << options << ": " << said;
    EXPECT_EQ(said.find("m.yaml:3:"), 0u) << said;
  }
  const std::string integers = run("count: 8, chosen: 2, inner: 6", "u").error;
  EXPECT_NE(integers.find("x must be floats [..., width], not int64[batch]"), std::string::npos)
      << integers;
}

TEST(Evaluator, InitialValues) {
  const Array a =
      initial_value({Initializer::Kind::kXavierUniform, 0, 0, {}}, "w", {100, 50}, DType::kF32, 1);
  double low = 0, high = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    low = std::min(low, a.number(i)), high = std::max(high, a.number(i));
  EXPECT_NEAR(high, 0.2, 0.001);
  EXPECT_NEAR(low, -0.2, 0.001);
  const Array q =
      initial_value({Initializer::Kind::kOrthogonal, 0, 0, {}}, "w", {3, 5}, DType::kF64, 1);
  double dot = 0, norm = 0;
  for (int64_t i = 0; i < 5; ++i)
    dot += q.number(i) * q.number(5 + i), norm += q.number(i) * q.number(i);
  EXPECT_NEAR(dot, 0, 1e-12);
  EXPECT_NEAR(norm, 1, 1e-12);
}

TEST(Evaluator, LossBodies) {
  MapStore store;
  ShapeInterpreter interpreter;
  const InterpreterScope scope(interpreter);
  EvaluationOptions options;
  options.store = &store;
  TensorType logits, label;
  logits.shape = {Dim::symbol("batch", 1), Dim(10)};
  label.dtype = DType::kI64;
  label.shape = {Dim::symbol("batch", 1)};
  const Node node = config::parse_document("loss: cross_entropy(logits, label)\n", "c.yaml");
  Diagnostics diagnostics;
  const Code code = read_code(*node.find("loss"), diagnostics);
  const Value loss = run_code(
      code, {{"logits", abstract_tensor(logits)}, {"label", abstract_tensor(label)}}, options);
  ASSERT_TRUE(loss.is_tensor());
  EXPECT_EQ(loss.tensor().ndim(), 0);
}

}  // namespace
}  // namespace paddle::lang
