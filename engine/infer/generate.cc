#include "infer/generate.h"

#include <algorithm>

#include "decoding/stop_text.h"
#include "infer/text_codec.h"
#include "infer/text_logits.h"
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
  const auto logits = next_token_logits(model, inputs, context, codec);
  for (int64_t i = 0; i < options.length; ++i) {
    const size_t length = std::min(static_cast<size_t>(context), tokens.size());
    std::vector<double> last = logits->of(tokens, tokens.size() - length);
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
