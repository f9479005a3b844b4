#include "infer/generate.h"

#include <algorithm>
#include <cmath>

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
  for (int64_t i = 0; i < options.length; ++i) {
    const int64_t length = std::min<int64_t>(context, static_cast<int64_t>(tokens.size()));
    Array input = Array::empty(model.inputs()[0].second.dtype, {1, length});
    visit_dtype(input.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t t = 0; t < length; ++t)
        input.data<T>()[t] =
            static_cast<T>(tokens[tokens.size() - static_cast<size_t>(length - t)]);
    });
    const Array logits = model.run({input})[0];
    const int64_t words = logits.shape.back();
    if (logits.ndim() != 3 || words != vocabulary->size())
      fail(ErrorCode::kModel, "the model's first output is ", str(logits.shape),
           ", expected logits of ", vocabulary->size(), " tokens for each position");
    std::vector<double> last(static_cast<size_t>(words));
    for (int64_t w = 0; w < words; ++w) {
      last[static_cast<size_t>(w)] = logits.number((length - 1) * words + w);
      if (std::isnan(last[static_cast<size_t>(w)]))
        fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
    }
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
