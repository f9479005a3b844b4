#include "infer/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "decoding/stop_text.h"
#include "tensor/random.h"

namespace paddle::infer {

namespace {

int64_t context_of(const program::Model& model, const GenerateOptions& options) {
  if (options.context > 0) return options.context;
  if (const auto& config = model.metadata().config)
    if (const config::Node* data = config->find("data"))
      if (const config::Node* train = data->find("train"))
        if (const config::Node* context = train->find("context")) return context->as_int();
  return 256;
}

/// Runs a model on texts of growing length. Texts are padded to a power of two, so that few plans
/// are made, if the logits of a token do not depend on what follows it.
class TextRunner {
 public:
  TextRunner(program::Model& model, int64_t context, int64_t words)
      : model_(model), context_(context), words_(words) {}

  /// The logits of the last of these tokens.
  std::vector<double> last_logits(std::span<const int64_t> tokens) {
    const auto length = static_cast<int64_t>(tokens.size());
    if (!pads_) pads_ = may_pad(tokens);
    return logits(tokens, *pads_ ? bin_of(length) : length, 0);
  }

 private:
  int64_t bin_of(int64_t length) const {
    constexpr int64_t kSmallest = 16;
    const auto bin = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
    return std::min(std::max(bin, kSmallest), std::max(context_, length));
  }

  std::vector<double> logits(std::span<const int64_t> tokens, int64_t length, int64_t padding) {
    Array input = Array::empty(model_.inputs()[0].second.dtype, {1, length});
    visit_dtype(input.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(input.data<T>(), length, static_cast<T>(padding));
      for (size_t t = 0; t < tokens.size(); ++t) input.data<T>()[t] = static_cast<T>(tokens[t]);
    });
    const Array all = model_.run({input})[0];
    if (all.ndim() != 3 || all.shape[2] != words_)
      fail(ErrorCode::kModel, "the model's first output is ", str(all.shape),
           ", expected logits of ", words_, " tokens for each position");
    std::vector<double> last(static_cast<size_t>(words_));
    const int64_t row = (static_cast<int64_t>(tokens.size()) - 1) * words_;
    for (int64_t w = 0; w < words_; ++w) {
      last[static_cast<size_t>(w)] = all.number(row + w);
      if (std::isnan(last[static_cast<size_t>(w)]))
        fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
    }
    return last;
  }

  /// Whether other tokens behind the text change nothing, and neither does the longer input but for
  /// rounding. States of the sequence begin anew.
  bool may_pad(std::span<const int64_t> tokens) {
    const auto length = static_cast<int64_t>(tokens.size());
    const int64_t padded = bin_of(length + 1);
    if (padded <= length || words_ < 2) return false;
    const auto plain = logits(tokens, length, 0);
    model_.reset();
    const auto zeros = logits(tokens, padded, 0);
    model_.reset();
    const auto others = logits(tokens, padded, words_ - 1);
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
  int64_t context_, words_;
  std::optional<bool> pads_;
};

}  // namespace

void check_options(const program::Model& model, const GenerateOptions& options) {
  const auto& vocabulary = model.metadata().vocabulary;
  if (!vocabulary)
    fail(ErrorCode::kUsage, "'", model.name(), "' has no vocabulary; it generates no text");
  if (model.inputs().size() != 1 || !is_integer(model.inputs()[0].second.dtype) ||
      model.inputs()[0].second.shape.size() != 2)
    fail(ErrorCode::kUsage, "'", model.name(),
         "' takes more than one array of tokens; it generates no text");
  options.sampling.check();
  if (options.length < 0)
    fail(ErrorCode::kUsage, "length is ", options.length, ", expected at least 0");
  const decoding::StopFilter checked(options.stops);
  vocabulary->encode(options.prompt);
}

void generate(program::Model& model, const GenerateOptions& options,
              const std::function<bool(const std::string&)>& emit) {
  check_options(model, options);
  const auto& vocabulary = model.metadata().vocabulary;
  model.reset();
  decoding::StopFilter filter(options.stops);
  const int64_t context = context_of(model, options);
  std::vector<int64_t> tokens = vocabulary->encode(options.prompt);
  // Without a prompt the text begins as a line does, or with the first token.
  if (tokens.empty()) tokens.push_back(vocabulary->find("\n").value_or(0));
  const Random random(options.seed, stream_of("generate"));
  TextRunner runner(model, context, vocabulary->size());
  for (int64_t i = 0; i < options.length; ++i) {
    const size_t length = std::min(static_cast<size_t>(context), tokens.size());
    std::vector<double> last = runner.last_logits(std::span(tokens).last(length));
    decoding::penalize_repetitions(last, tokens, options.sampling.repetition_penalty);
    const int64_t token =
        decoding::sample_token(last, options.sampling, random.uniform(static_cast<uint64_t>(i)));
    tokens.push_back(token);
    const std::string piece = filter.add(vocabulary->token(token));
    if ((!piece.empty() && !emit(piece)) || filter.is_stopped()) return;
  }
  if (const std::string rest = filter.finish(); !rest.empty()) emit(rest);
}

}  // namespace paddle::infer
