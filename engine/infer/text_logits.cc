#include "infer/text_logits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace paddle::infer {

namespace {

bool stands_beside_tokens(const std::string& name) {
  return name == "segments" || name == "positions";
}

/// Checks that the model's first output is logits of `rank` axes for the whole vocabulary. There
/// may be more of them: tables are often padded to a round number.
void check_vocabulary(const Array& logits, int64_t rank, int64_t vocab_size) {
  if (logits.ndim() != rank || logits.shape.back() < vocab_size)
    fail(ErrorCode::kModel, "the model's first output is ", str(logits.shape),
         ", expected logits of ", vocab_size, " tokens for each position");
}

/// The first `vocab_size` values of a row of the last axis; kModel for a NaN.
std::vector<double> row_of(const Array& logits, int64_t row, int64_t vocab_size) {
  std::vector<double> out(static_cast<size_t>(vocab_size));
  const int64_t begin = row * logits.shape.back();
  for (int64_t w = 0; w < vocab_size; ++w) {
    out[static_cast<size_t>(w)] = logits.number(begin + w);
    if (std::isnan(out[static_cast<size_t>(w)]))
      fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
  }
  return out;
}

/// Runs a model on texts of growing length. Texts are padded to a power of two, so that few plans
/// are made, if the logits of a token do not depend on what follows it.
class WholeTextLogits final : public TextLogits {
 public:
  WholeTextLogits(program::Model& model, const TextInputs& inputs, int64_t context,
                  const TextCodec& codec)
      : model_(model), fixed_(inputs.length), context_(context), vocab_size_(codec.size()) {
    if (fixed_) pads_ = true;
  }

  std::vector<double> of(std::span<const int64_t> text, size_t first) override {
    const std::span<const int64_t> tokens = text.subspan(first);
    const auto length = static_cast<int64_t>(tokens.size());
    if (!pads_) pads_ = may_pad(tokens);
    return logits(tokens, *pads_ ? bin_of(length) : length, 0);
  }

 private:
  int64_t bin_of(int64_t length) const {
    if (fixed_) return *fixed_;
    constexpr int64_t kMin = 16;
    const auto bin = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
    return std::min(std::max(bin, kMin), std::max(context_, length));
  }

  /// The input of this name for the tokens, padded to a length: all of one document.
  Array input_array(const std::string& name, DType dtype, std::span<const int64_t> tokens,
                    int64_t length, int64_t padding) const {
    Array input = Array::empty(dtype, {1, length});
    visit_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const to = input.data<T>();
      for (int64_t t = 0; t < length; ++t) {
        const bool is_text = t < static_cast<int64_t>(tokens.size());
        to[t] = static_cast<T>(name == "segments"    ? 1
                               : name == "positions" ? t
                               : is_text             ? tokens[static_cast<size_t>(t)]
                                                     : padding);
      }
    });
    return input;
  }

  std::vector<double> logits(std::span<const int64_t> tokens, int64_t length, int64_t padding) {
    std::vector<Array> inputs;
    for (const auto& [name, type] : model_.inputs())
      inputs.push_back(input_array(name, type.dtype, tokens, length, padding));
    const Array all = model_.run(inputs)[0];
    check_vocabulary(all, 3, vocab_size_);
    return row_of(all, std::ssize(tokens) - 1, vocab_size_);
  }

  /// Whether other tokens after the text change nothing, and neither does the longer input but for
  /// rounding. States of the sequence restart.
  bool may_pad(std::span<const int64_t> tokens) {
    const auto length = static_cast<int64_t>(tokens.size());
    const int64_t padded = bin_of(length + 1);
    if (padded <= length || vocab_size_ < 2) return false;
    const auto plain = logits(tokens, length, 0);
    model_.reset();
    const auto zeros = logits(tokens, padded, 0);
    model_.reset();
    const auto others = logits(tokens, padded, vocab_size_ - 1);
    model_.reset();
    constexpr double kRounding = 1e-4;
    double largest = 0, difference = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      largest = std::max(largest, std::abs(plain[i]));
      difference = std::max(difference, std::abs(plain[i] - zeros[i]));
    }
    return zeros == others && difference <= kRounding * largest;
  }

  program::Model& model_;
  std::optional<int64_t> fixed_;
  int64_t context_, vocab_size_;
  std::optional<bool> pads_;
};

/// Runs the function `step` on the tokens that its caches lack.
class CachedTextLogits final : public TextLogits {
 public:
  CachedTextLogits(std::unique_ptr<program::Model> step, std::unique_ptr<TextLogits> whole,
                   const TextCodec& codec)
      : step_(std::move(step)),
        whole_(std::move(whole)),
        slots_(step_->cache_slots()),
        vocab_size_(codec.size()) {}

  static bool fits(const program::Model& step) {
    if (step.inputs().size() != 4 || step.cache_slots() == 0) return false;
    return std::all_of(step.inputs().begin(), step.inputs().end(), [](const auto& input) {
      const auto& [name, type] = input;
      return (name == "tokens" || is_positions(name) || name == "starts" || name == "wanted") &&
             type.dtype == DType::kI64 && type.shape.size() == 1;
    });
  }

  std::vector<double> of(std::span<const int64_t> tokens, size_t first) override {
    // Where the beginning moves, every position does, and nothing cached can be used.
    if (first > 0 || std::ssize(tokens) > slots_) return whole_->of(tokens, first);
    std::vector<double> logits;
    while (cached_ < tokens.size()) {
      const size_t count = std::min(tokens.size() - cached_, kMaxRows);
      const Array out = run(tokens.subspan(cached_, count));
      cached_ += count;
      if (cached_ < tokens.size()) continue;
      check_vocabulary(out, 2, vocab_size_);
      logits = row_of(out, 0, vocab_size_);
    }
    return logits;
  }

 private:
  static constexpr size_t kMaxRows = 256;  ///< of a run
  static bool is_positions(const std::string& name) {
    return name == "positions" || name == "token_positions";
  }

  /// The logits of the last of these tokens, [1, vocab_size]. Rows are padded to a power of two, so
  /// that few plans are made; padding has the position -1, which is not cached.
  Array run(std::span<const int64_t> tokens) {
    const auto rows = static_cast<int64_t>(std::bit_ceil(tokens.size()));
    std::vector<Array> inputs;
    for (const auto& [name, type] : step_->inputs()) {
      Array input = Array::zeros(DType::kI64, {name == "wanted" ? 1 : rows});
      auto* const to = input.data<int64_t>();
      if (name == "wanted") to[0] = std::ssize(tokens) - 1;
      if (name == "tokens") std::copy(tokens.begin(), tokens.end(), to);
      for (int64_t i = 0; is_positions(name) && i < rows; ++i)
        to[i] = i < std::ssize(tokens) ? static_cast<int64_t>(cached_) + i : -1;
      inputs.push_back(std::move(input));
    }
    return step_->run(inputs)[0];
  }

  std::unique_ptr<program::Model> step_;
  std::unique_ptr<TextLogits> whole_;
  int64_t slots_, vocab_size_;
  size_t cached_ = 0;
};

}  // namespace

TextInputs text_inputs(const program::Model& model) {
  TextInputs out;
  for (const auto& [name, type] : model.inputs()) {
    const bool fits = is_integer(type.dtype) && type.shape.size() == 2;
    if (!fits || (!stands_beside_tokens(name) && !out.tokens.empty()))
      fail(ErrorCode::kUsage, "'", model.name(), "' takes '", name,
           "', which is not the tokens of a text; it generates no text");
    if (stands_beside_tokens(name)) continue;
    out.tokens = name;
    out.length = type.shape[1].constant();
  }
  if (out.tokens.empty())
    fail(ErrorCode::kUsage, "'", model.name(), "' takes no tokens; it generates no text");
  return out;
}

std::unique_ptr<TextLogits> next_token_logits(program::Model& model, const TextInputs& inputs,
                                              int64_t context, const TextCodec& codec) {
  auto whole = std::make_unique<WholeTextLogits>(model, inputs, context, codec);
  if (model.precision() == DType::kF64) return whole;  // caches are in float32
  std::unique_ptr<program::Model> step = model.other_function("step");
  if (!step || !CachedTextLogits::fits(*step)) return whole;
  return std::make_unique<CachedTextLogits>(std::move(step), std::move(whole), codec);
}

}  // namespace paddle::infer
