#include "conformance/every_operation.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "autograd/autograd.h"
#include "conformance/operators.h"
#include "conformance/results.h"
#include "inspect/both_modes.h"
#include "inspect/compare.h"
#include "inspect/numeric.h"
#include "ops/core/access.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

/// Calls of operations whose samples are none, or do not say what the operation needs.
constexpr std::pair<std::string_view, std::string_view> kCalls[] = {
    {"adagrad_update", "param=f32[2,3] grad=f32[2,3] moment=f32[2,3]{0.5,2} lr=f32(0.1)"},
    {"all_finite", "x=[f32[2,3],f32[4]]"},
    {"assert_true", "condition=bool(1,1)"},
    {"audio_compute_fbank_matrix", "sr=16000 n_fft=16 n_mels=4"},
    {"audio_create_dct", "n_mfcc=4 n_mels=6"},
    {"audio_fft_frequencies", "sr=16000 n_fft=8"},
    {"bernoulli", "x=f32[2,3]{0.1,0.9}"},
    {"bernoulli_of", "x=f32[2,3] p=0.3"},
    {"binomial", "count=f32(3,5,9) prob=f32[3]{0.1,0.9}"},
    {"binomial_counts", "count=f32(3,5,9) prob=f32[3]{0.1,0.9}"},
    {"bitwise_not", "x=i32(5,-1,0)"},
    {"blha_get_max_len",
     "seq_lens_encoder=i32(3,1,4) seq_lens_decoder=i32(1,5,9) batch_size=i32(3,3,3)"},
    {"broadcast_shape", "x_shape=[2,1] y_shape=[3]"},
    {"bucketize", "x=f32[2,3] sorted_sequence=f32(-1,0,0.5,2)"},
    {"dim_value", "dim=5"},
    {"divide_rounded", "x=f32[2,3] y=f32[2,3]{0.5,2} rounding_mode=floor"},
    {"dropout_mask", "x=f32[2,3] p=0.4 shape=[2,3]"},
    {"eig_factors", "x=f64[3,3]"},
    {"eigh_factors", "x=f64[3,3]"},
    {"empty", "shape=[2,3]"},
    {"eye", "num_rows=3"},
    {"fake_channel_wise_quantize_abs_max", "x=f32[3,4]"},
    {"fake_channel_wise_quantize_dequantize_abs_max", "x=f32[3,4]"},
    {"fake_quantize_abs_max", "x=f32[3,4]"},
    {"fake_quantize_dequantize_abs_max", "x=f32[3,4]"},
    {"fake_quantize_dequantize_moving_average_abs_max",
     "x=f32[3,4] in_scale=f32(1.5) in_accum=f32(1) in_state=f32(1)"},
    {"fake_quantize_moving_average_abs_max",
     "x=f32[3,4] in_scale=f32(1.5) in_accum=f32(1) in_state=f32(1)"},
    {"fake_quantize_range_abs_max", "x=f32[3,4] in_scale=f32(1.5)"},
    {"feature_alpha_dropout", "x=f32[2,3,4]"},
    {"fftfreq", "n=7"},
    {"fill_constant", "shape=[2,3] value=2"},
    {"fill_constant_batch_size_like", "input=f32[4,3] shape=[1,2] dtype=float32 value=3"},
    {"full", "shape=[2,3] fill_value=2.5"},
    {"full_like", "x=f32[2,3] fill_value=7"},
    {"gaussian", "shape=[2,3]"},
    {"geometric_", "x=f32[2,3] probs=0.3"},
    {"linspace", "start=0 stop=1 num=5"},
    {"lkj_cholesky_sample", "concentration=f32(1.5) dim=3"},
    {"logspace", "start=0 stop=2 num=4"},
    {"momentum_update", "param=f32[2,3] grad=f32[2,3] velocity=f32[2,3] lr=f32(0.1)"},
    {"ones", "shape=[2,3]"},
    {"poisson", "x=f32[2,3]{0.5,9}"},
    {"rand", "shape=[2,3]"},
    {"quantize", "x=f32[2,3] scale=f32(0.1) zero_point=i8(3)"},
    {"quantize_dynamic", "x=f32[2,3]"},
    {"randint", "low=3 high=9 shape=[2,3]"},
    {"randint_like", "x=f32[2,3] high=9"},
    {"randn", "shape=[2,3]"},
    {"randperm", "n=9"},
    {"rfftfreq", "n=7"},
    {"rprop_update",
     "param=f32[2,3] grad=f32[2,3] previous=f32[2,3] step_size=f32[2,3]{0.5,2} lr=f32(0.1)"},
    {"sequence_mask", "x=i64(1,3,2) maxlen=4"},
    {"shard_index", "input=i64(1,7,12) index_num=20 nshards=2 shard_id=0"},
    {"sparse_is_same_shape", "x_shape=[2,3] y_shape=[2,3]"},
    {"standard_gamma", "x=f32[2,3]{0.5,3}"},
    {"sum_of_squares", "x=f32[2,3]"},
    {"top_p_sampling", "x=f32[2,5]{0.1,1} ps=f32(0.7,0.9)"},
    {"tril_indices", "row=3"},
    {"triu_indices", "row=3"},
    {"truncated_gaussian", "shape=[2,3]"},
    {"truncated_gaussian_random", "shape=[2,3]"},
    {"uniform", "shape=[2,3]"},
    {"view_dtype", "x=f32[2,3] shape_or_dtype=int32"},
    {"zeros", "shape=[2,3]"},
};

std::vector<std::string> calls_for(const Op& op) {
  for (const auto& [name, call] : kCalls)
    if (name == op.name()) return {std::string(call)};
  return inspect::samples_of(op);
}

/// Whether the CPU cannot compute an operation either: it needs a library, such as LAPACK, that is
/// not installed.
bool is_missing_here(const Op& op) {
  for (const std::string& sample : calls_for(op)) try {
      const inspect::NamedCall call = parse(op, {sample, false});
      (void)inspect::run(
          inspect::Mode::kEager,
          [&](const Tensors& x) {
            const autograd::NoGradScope none;
            return call(x);
          },
          call.inputs());
      return false;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kDevice) return true;
    }
  return false;
}

/// The compiled results of each call on a device against those of the CPU.
std::string check_calls(const Op& op, Device device) {
  std::string why = "it has no samples";
  size_t accepted = 0;
  for (const std::string& sample : calls_for(op)) {
    std::optional<inspect::NamedCall> call;
    std::vector<Array> inputs;
    Results expected;
    const TensorFn function = [&](const Tensors& x) {
      const autograd::NoGradScope none;
      return (*call)(x);
    };
    try {
      call.emplace(parse(op, {sample, false}));
      for (const Array& x : call->inputs()) inputs.push_back(inspect::own_copy(x));
      expected = inspect::run(device.is_cpu() ? inspect::Mode::kEager : inspect::Mode::kCompiled,
                              function, inputs);
    } catch (const Error& e) {
      why = str(first_line(e.what()), "  [", sample, "]");
      continue;
    }
    ++accepted;
    const Results found = inspect::run(inspect::Mode::kCompiled, function, inputs, device);
    std::string bad = compare_each(found, expected);
    // Operands that do not belong together, such as a mean of other values, may mean other things
    // to a kernel than to the body, which a device without the kernel computes.
    if (!bad.empty() && op.def->decompose &&
        compare_each(found, results_of_body(op, *call, inputs)).empty())
      bad.clear();
    if (!bad.empty()) return str(bad, "  [", sample, "]");
  }
  return accepted > 0 ? "" : why;
}

}  // namespace

bool is_called(const Op& op) {
  return !op.def->provider && !(op.def->traits & (kControlFlow | kAllAccesses));
}

namespace {

/// The operations of a part: every kOperationParts-th one.
template <class Check>
std::string check_part(size_t part, const Check& check) {
  Coverage coverage;
  std::string wrong;
  size_t number = 0;
  for (const Op* op : all_ops()) {
    if (!is_called(*op) || number++ % kOperationParts != part) continue;
    std::optional<std::string> bad;
    try {
      bad = check(*op);
    } catch (const Error& e) {
      bad = first_line(e.what());
    }
    if (!bad || (!bad->empty() && is_missing_here(*op))) continue;
    ++coverage.all;
    if (bad->empty())
      ++coverage.operations;
    else if (wrong.empty())
      wrong = str(op->name(), ": ", *bad);
  }
  return wrong.empty() ? kNote + text(coverage)
                       : str(wrong, " (", text(coverage), " operations are right)");
}

}  // namespace

std::string text(const Coverage& coverage) {
  return str(coverage.operations, " of ", coverage.all);
}

std::optional<Coverage> parse_coverage(const std::string& text) {
  const std::string_view middle = " of ";
  const size_t at = text.find(middle);
  if (at == std::string::npos) return std::nullopt;
  Coverage out;
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto left = std::from_chars(begin, begin + at, out.operations);
  const auto right = std::from_chars(begin + at + middle.size(), end, out.all);
  if (left.ec != std::errc() || left.ptr != begin + at || right.ec != std::errc() ||
      right.ptr != end)
    return std::nullopt;
  return out;
}

std::vector<std::string> operations_left_out() {
  std::vector<std::string> out;
  for (const Op* op : all_ops())
    if (!op->def->provider && !is_called(*op)) out.emplace_back(op->name());
  return out;
}

std::string check_every_operation(const std::string& device, size_t part) {
  runtime::register_backends();
  const Device there = parse_device(device);
  return check_part(
      part, [&](const Op& op) -> std::optional<std::string> { return check_calls(op, there); });
}

std::string check_every_gradient(const std::string& device, size_t part) {
  runtime::register_backends();
  const Device there = parse_device(device);
  return check_part(part, [&](const Op& op) -> std::optional<std::string> {
    if (!op.differentiable() || inspect::samples_of(op).empty()) return std::nullopt;
    return inspect::check_gradient(op, 2, {inspect::Mode::kEager}, there);
  });
}

}  // namespace paddle::conformance
