// com.microsoft.nchwc: convolution and pooling in a blocked channel layout, which ONNX Runtime's
// optimizer emits at its highest level. Only weights are stored in blocks; activations are blocked
// between two such operators only, so they are kept as NCHW with channels zero-padded to whole
// blocks.

#include "onnx/graph/evaluator.h"
#include "onnx/ops/conv.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft.nchwc";

/// The file does not store the block size: it depends on the machine that wrote it.
int64_t native_block_size() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? 16 : 8;
#else
  return 16;
#endif
}

/// The block size implied by the shapes of weights, otherwise this machine's.
int64_t block_size(const NodeCall& c) {
  return *c.evaluator().prepared<int64_t>(c.node(), [&] {
    const formats::onnx::Graph& graph = c.evaluator().model().graph;
    std::map<std::string_view, int64_t> groups;  // by weight name
    for (const auto& node : graph.nodes)
      if (node.domain == kDomain && node.op_type == "Conv" && node.inputs.size() > 1) {
        const auto* group = node.find("group");
        groups[node.inputs[1]] = group ? group->i : 1;
      }
    for (const auto& t : graph.initializers) {
      const auto found = groups.find(t.name);
      if (found == groups.end() || t.shape.size() != 4) continue;
      const int64_t out = t.shape[0], in = t.shape[1];
      if (out % 16 != 0 || (found->second == 1 && in > 16 && in % 16 != 0)) return int64_t{8};
      if (found->second == 1 && in > 8 && in % 8 != 0) return int64_t{16};
    }
    return native_block_size();
  });
}

Values reorder_input(NodeCall& c) {
  Tensor x = c.tensor(0);
  c.check(x.ndim() == 4, "the input is ", x.type(), ", its rank must be 4");
  if (c.bool_attr("channels_last", false)) x = ops::transpose(x, {0, 3, 1, 2});
  const int64_t block = block_size(c), channels = constant_dim(x, 1);
  const int64_t missing = (block - channels % block) % block;
  if (missing == 0) return {x};
  Shape shape = x.shape();
  shape[1] = missing;
  return {ops::concat({x, ops::full(shape, 0.0, x.dtype())}, 1)};
}

Values reorder_output(NodeCall& c) {
  const int64_t channels = c.int_attr("channels", 0);
  Tensor y = c.tensor(0);
  c.check(y.ndim() == 4, "the input is ", y.type(), ", its rank must be 4");
  c.check(channels > 0 && channels <= constant_dim(y, 1), channels, " channels are not in ",
          y.type());
  if (channels != constant_dim(y, 1)) y = slice_axis(y, 1, 0, channels);
  return {c.bool_attr("channels_last", false) ? ops::transpose(y, {0, 2, 3, 1}) : y};
}

/// Converts weights [out / block, in / block, rows, columns, in of the block, out of the block] to
/// [out, in, rows, columns]; `in` is not blocked if it is smaller than a block or if each group is
/// one channel.
Tensor unblock_weights(const NodeCall& c) {
  const Array blocked = c.constant_array(1);
  c.check(blocked.shape.size() == 4 && blocked.dtype == DType::kF32, "the weight is ",
          text(blocked.dtype), " of rank ", blocked.shape.size());
  const int64_t block = block_size(c), out = blocked.shape[0], in = blocked.shape[1];
  const bool whole = c.int_attr("group", 1) == 1 ? in >= block : in > 1;
  const int64_t inner = whole ? block : 1, pixels = blocked.shape[2] * blocked.shape[3];
  c.check(out % block == 0 && in % inner == 0, "weights of ", out, " times ", in,
          " channels are not in blocks of ", block);
  Array unblocked = Array::empty(DType::kF32, blocked.shape);
  const float* from = blocked.data<float>();
  float* to = unblocked.data<float>();
  for (int64_t o = 0; o < out; o += block)
    for (int64_t i = 0; i < in; i += inner)
      for (int64_t pixel = 0; pixel < pixels; ++pixel)
        for (int64_t k = 0; k < inner; ++k)
          for (int64_t j = 0; j < block; ++j) to[((o + j) * in + i + k) * pixels + pixel] = *from++;
  return Tensor(unblocked);
}

Values conv(NodeCall& c) { return {fused_conv(c, c.tensor(0), unblock_weights(c))}; }

}  // namespace

OperatorTable contrib_nchwc_operators() {
  static constexpr Operator operators[] = {
      {"ReorderInput", 1, reorder_input},
      {"ReorderOutput", 1, reorder_output},
      {"Conv", 1, conv},
      {"MaxPool", 1, max_pool_rule},
      {"AveragePool", 1, average_pool_rule},
      {"GlobalMaxPool", 1, global_max_pool_rule},
      {"GlobalAveragePool", 1, global_average_pool_rule},
      {"Upsample", 1, nchwc_upsample_rule},
  };
  return operators;
}

}  // namespace paddle::onnx
