#include "infer/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "decoding/stop_text.h"
#include "infer/text_codec.h"
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

/// The inputs of a language model: its tokens, and optional segments and positions.
struct TextInputs {
  std::string tokens;
  std::optional<int64_t> length;  ///< if the model takes texts of one length alone
};

bool stands_beside_tokens(const std::string& name) {
  return name == "segments" || name == "positions";
}

/// kUsage for a model with other inputs.
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

/// Runs a model on texts of growing length. Texts are padded to a power of two, so that few plans
/// are made, if the logits of a token do not depend on what follows it.
class TextRunner {
 public:
  TextRunner(program::Model& model, const TextInputs& inputs, int64_t context,
             const TextCodec& codec)
      : model_(model),
        fixed_(inputs.length),
        context_(context),
        words_(codec.size()),
        may_be_padded_(codec.may_be_padded()) {
    if (fixed_) pads_ = true;
  }

  /// The logits of the last of these tokens.
  std::vector<double> last_logits(std::span<const int64_t> tokens) {
    const auto length = static_cast<int64_t>(tokens.size());
    if (!pads_) pads_ = may_pad(tokens);
    return logits(tokens, *pads_ ? bin_of(length) : length, 0);
  }

 private:
  int64_t bin_of(int64_t length) const {
    if (fixed_) return *fixed_;
    constexpr int64_t kSmallest = 16;
    const auto bin = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
    return std::min(std::max(bin, kSmallest), std::max(context_, length));
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
    if (all.ndim() != 3 || (may_be_padded_ ? all.shape[2] < words_ : all.shape[2] != words_))
      fail(ErrorCode::kModel, "the model's first output is ", str(all.shape),
           ", expected logits of ", words_, " tokens for each position");
    std::vector<double> last(static_cast<size_t>(words_));
    const int64_t row = (static_cast<int64_t>(tokens.size()) - 1) * all.shape[2];
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
  std::optional<int64_t> fixed_;
  int64_t context_, words_;
  bool may_be_padded_;
  std::optional<bool> pads_;
};

}  // namespace

void check_options(const program::Model& model, const GenerateOptions& options) {
  const TextCodec codec(model, text_inputs(model).tokens);
  options.sampling.check();
  if (options.length < 0)
    fail(ErrorCode::kUsage, "length is ", options.length, ", expected at least 0");
  const decoding::StopFilter checked(options.stops);
  codec.encode(options.prompt);
}

void generate(program::Model& model, const GenerateOptions& options,
              const std::function<bool(const std::string&)>& emit) {
  check_options(model, options);
  const TextInputs inputs = text_inputs(model);
  TextCodec codec(model, inputs.tokens);
  model.reset();
  decoding::StopFilter filter(options.stops);
  int64_t context = context_of(model, options);
  if (inputs.length) context = std::min(context, *inputs.length);
  std::vector<int64_t> tokens = codec.encode(options.prompt);
  codec.begin(tokens);
  const Random random(options.seed, stream_of("generate"));
  TextRunner runner(model, inputs, context, codec);
  for (int64_t i = 0; i < options.length; ++i) {
    const size_t length = std::min(static_cast<size_t>(context), tokens.size());
    std::vector<double> last = runner.last_logits(std::span(tokens).last(length));
    decoding::penalize_repetitions(last, tokens, options.sampling.repetition_penalty);
    const int64_t token =
        decoding::sample_token(last, options.sampling, random.uniform(static_cast<uint64_t>(i)));
    if (codec.is_end(token)) break;
    tokens.push_back(token);
    const std::string piece = filter.add(codec.add(token));
    if ((!piece.empty() && !emit(piece)) || filter.is_stopped()) return;
  }
  const std::string held = codec.finish();
  std::string rest = held.empty() ? std::string() : filter.add(held);
  if (!filter.is_stopped()) rest += filter.finish();
  if (!rest.empty()) emit(rest);
}

}  // namespace paddle::infer
