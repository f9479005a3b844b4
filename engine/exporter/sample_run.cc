#include "exporter/sample_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/execute.h"
#include "runtime/loop_limit.h"
#include "tensor/random.h"

namespace paddle::exporter {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// Random values for the inputs; integers are below `limit`, so that they can be indices.
std::vector<Array> random_inputs(const program::Model& model, const Sizes& sizes, uint64_t seed,
                                 int64_t limit) {
  std::vector<Array> out;
  for (const auto& [name, type] : model.inputs()) {
    Dims shape;
    for (const Dim& dim : type.shape) {
      const auto size = dim.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
      });
      shape.push_back(size.value_or(1));
    }
    const Random random(seed, stream_of("export " + name));
    const int64_t count = element_count(std::span<const int64_t>(shape));
    Array values = Array::empty(DType::kF64, shape);
    for (int64_t i = 0; i < count; ++i) {
      const double u = random.uniform(static_cast<uint64_t>(i));
      values.data<double>()[i] = is_float(type.dtype)  ? 4 * u - 2
                                 : is_bool(type.dtype) ? (u < 0.5 ? 0 : 1)
                                                       : std::floor(u * static_cast<double>(limit));
    }
    out.push_back(values.cast(type.dtype));
  }
  return out;
}

constexpr int64_t kMaxElements = int64_t{1} << 24;

/// Elements of all inputs, or more than kMaxElements.
int64_t input_elements(const program::Model& model, const Sizes& sizes) {
  double total = 0;
  for (const auto& [name, type] : model.inputs()) {
    double count = 1;
    for (const Dim& dim : type.shape) {
      const auto size = dim.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
      });
      count *= static_cast<double>(size.value_or(1));
    }
    total += count;
  }
  return total > static_cast<double>(kMaxElements) ? kMaxElements + 1 : static_cast<int64_t>(total);
}

/// Whether a symbol is the first axis of an input: most often the batch, which may be small.
bool is_leading(const program::Model& model, const std::string& symbol) {
  return std::any_of(model.inputs().begin(), model.inputs().end(), [&](const auto& input) {
    const Shape& shape = input.second.shape;
    return !shape.empty() && shape[0].text() == symbol;
  });
}

}  // namespace

std::vector<std::string> free_symbols(const program::Model& model) {
  std::vector<std::string> out;
  for (const auto& [name, type] : model.inputs())
    for (const Dim& dim : type.shape) dim.collect_symbols(out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<SampleRun> run_on_samples(program::Model& model,
                                        const std::map<std::string, int64_t>& fixed,
                                        int64_t binding, std::string* rejection) {
  const std::vector<std::string> symbols = free_symbols(model);
  // Random inputs may make a loop endless.
  constexpr int64_t kMaxTurns = int64_t{1} << 16;
  const runtime::LoopLimit limited(kMaxTurns);
  const auto begun = std::chrono::steady_clock::now();
  struct Scale {
    int64_t leading, others;
    // Different sizes for different symbols, so that none can stand for another. A model may want
    // them equal without saying so.
    bool distinct = true;
  };
  for (const Scale scale : {Scale{1, 1},
                            {1, 8},
                            {1, 32},
                            {1, 112},
                            {1, 224},
                            {8, 8},
                            {32, 32},
                            {2, 4, false},
                            {1, 32, false},
                            {1, 224, false}})
    for (const int64_t limit : {16, 2, 1}) {
      SampleRun out;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const auto given = fixed.find(symbols[i]);
        out.sizes[symbols[i]] =
            given != fixed.end()
                ? given->second
                : (binding + 1) * (is_leading(model, symbols[i]) ? scale.leading : scale.others) +
                      (scale.distinct ? static_cast<int64_t>(i) : 0);
      }
      if (input_elements(model, out.sizes) > kMaxElements) continue;
      out.inputs = random_inputs(model, out.sizes, static_cast<uint64_t>(binding), limit);
      try {
        model.reset();
        for (const Array& each : model.run(out.inputs))
          out.outputs.push_back(runtime::copied(each));
        return out;
      } catch (const Error& e) {
        if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kDevice) throw;
        if (rejection && rejection->empty()) *rejection = e.message();
        constexpr std::chrono::seconds kMaxTime(15);
        if (std::chrono::steady_clock::now() - begun > kMaxTime) return std::nullopt;
      }
    }
  return std::nullopt;
}

}  // namespace paddle::exporter
