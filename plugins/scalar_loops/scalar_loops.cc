// A compiler of graphs: it takes regions of elementwise float32 operations and computes them block
// by block, so that values stay in the cache between operations. Operands are of one shape, or
// scalars. The engine hands over each region with its operations, values and sizes.

#include <paddle/plugin/plugin.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace {

using namespace paddle::plugin;

using Function = float (*)(float, float);

const std::map<std::string_view, std::pair<int, Function>>& functions() {
  static const std::map<std::string_view, std::pair<int, Function>> all = {
      {"add", {2, [](float a, float b) { return a + b; }}},
      {"subtract", {2, [](float a, float b) { return a - b; }}},
      {"multiply", {2, [](float a, float b) { return a * b; }}},
      {"divide", {2, [](float a, float b) { return a / b; }}},
      {"abs", {1, [](float a, float) { return std::fabs(a); }}},
      {"sqrt", {1, [](float a, float) { return std::sqrt(a); }}},
      {"exp", {1, [](float a, float) { return std::exp(a); }}},
      {"tanh", {1, [](float a, float) { return std::tanh(a); }}},
      {"relu", {1, [](float a, float) { return a > 0 || a != a ? a : 0; }}},
  };
  return all;
}

bool same_shape(const paddle_view& a, const paddle_view& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

/// A compiled region: its operations in order.
class Loops {
 public:
  static bool supports(std::string_view operation, const Request& request) {
    const auto known = functions().find(operation);
    if (known == functions().end() ||
        request.operands() != static_cast<uint32_t>(known->second.first))
      return false;
    const paddle_view& result = request.result(0);
    if (result.dtype != PADDLE_FLOAT32 || result.rank == 0) return false;
    for (uint32_t i = 0; i < request.operands(); ++i) {
      const paddle_view& x = request.operand(i);
      if ((x.flags & PADDLE_VIEW_ABSENT) || x.dtype != PADDLE_FLOAT32) return false;
      if (x.rank != 0 && !same_shape(x, result)) return false;
    }
    return true;
  }

  explicit Loops(const Region& region) : operands_(region.operands()) {
    // Sizes that are not known when operations are claimed may turn out to differ.
    const paddle_view& shape = region.value(region.node(0).results()[0]);
    count_ = count_of(shape);
    for (uint32_t i = 0; i < region.nodes(); ++i) {
      const Node node = region.node(i);
      if (!same_shape(region.value(node.results()[0]), shape)) throw Declined();
      const auto operands = node.operands();
      for (const int32_t operand : operands)
        if (const paddle_view& x = region.value(operand); x.rank != 0 && !same_shape(x, shape))
          throw Declined();
      steps_.push_back({functions().at(node.operation()).second, operands[0], operands.back(),
                        node.results()[0]});
    }
    for (uint32_t i = 0; i < operands_; ++i)
      is_scalar_.push_back(region.value(static_cast<int32_t>(i)).rank == 0);
    results_.assign(region.results().begin(), region.results().end());
    if (steps_.size() > kMostSteps) throw Declined();
  }

  void run(const Run& run) const {
    run.parallel(count_, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kBlock)
        run_block(run, at, std::min(kBlock, end - at));
    });
  }

 private:
  static constexpr int64_t kBlock = 256;
  static constexpr size_t kMostSteps = 64;

  struct Step {
    Function function;
    int32_t left, right, result;  // numbers of values
  };

  void run_block(const Run& run, int64_t at, int64_t size) const {
    // The values of the steps, which the block keeps on the stack.
    std::array<std::array<float, kBlock>, kMostSteps> made;
    const auto value = [&](int32_t number) -> const float* {
      const auto i = static_cast<uint32_t>(number);
      if (i >= operands_) return made[i - operands_].data();
      return run.in<float>(i) + (is_scalar_[i] ? 0 : at);
    };
    const auto is_scalar = [&](int32_t number) {
      return static_cast<uint32_t>(number) < operands_ && is_scalar_[static_cast<size_t>(number)];
    };
    for (const Step& step : steps_) {
      const float *left = value(step.left), *right = value(step.right);
      const int64_t left_step = is_scalar(step.left) ? 0 : 1;
      const int64_t right_step = is_scalar(step.right) ? 0 : 1;
      float* const out = made[static_cast<uint32_t>(step.result) - operands_].data();
      for (int64_t i = 0; i < size; ++i)
        out[i] = step.function(left[i * left_step], right[i * right_step]);
    }
    for (uint32_t r = 0; r < results_.size(); ++r)
      std::copy_n(value(results_[r]), size, run.out<float>(r) + at);
  }

  uint32_t operands_;
  int64_t count_ = 0;
  std::vector<Step> steps_;
  std::vector<bool> is_scalar_;
  std::vector<int32_t> results_;
};

}  // namespace

PADDLE_PLUGIN(scalar_loops, "1.0.0", plugin) {
  plugin.summary("computes regions of elementwise operations block by block");
  plugin.compiler<Loops>("loops", "loops over blocks of elements", PADDLE_COMPILER_TRAINING, 2);
}
