#include "serve/hosted_model.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "text/load.h"

namespace paddle::serve {

ServedModel HostedModel::served() const {
  return {engine.get(), chat_template.get(), static_cast<int64_t>(std::time(nullptr))};
}

std::optional<HostedModel> host_model(const ModelEntry& entry, const EngineLimits& limits,
                                      Metrics& metrics, std::span<const HostedModel> others) {
  if (!llm::is_language_model(entry.path))
    fail(ErrorCode::kUsage, entry.path, ": expected a Hugging Face folder or a GGUF file");
  check_no_predict_settings(entry);
  const auto same = std::find_if(others.begin(), others.end(), [&](const HostedModel& other) {
    return other.entry.shares_weights(entry);
  });
  auto loaded =
      same != others.end()
          ? same->engine->model()
          : llm::load_shared(entry.path, {.family = entry.family,
                                          .activations = llm::activations(entry.activations),
                                          .weights = llm::weight_type(entry.weights_as)});
  if (!loaded) return std::nullopt;
  auto tokenizer = tokenizers::load_tokenizer(entry.path);
  HostedModel out;
  if (!tokenizer.chat_template.empty())
    out.chat_template = std::make_unique<jinja::Template>(tokenizer.chat_template, "chat template");
  const llm::RunnerOptions runner{.sequences = limits.streams,
                                  .context = entry.context,
                                  .cache = llm::cache_type(entry.kv),
                                  .adapter = entry.adapter,
                                  .paged = entry.cache == "paged",
                                  .tokens = entry.cache_tokens};
  out.entry = entry;
  EngineLimits of_model = limits;
  if (entry.chunk > 0) of_model.chunk = entry.chunk;
  of_model.speculate = entry.draft == "ngram";
  out.engine = std::make_unique<Engine>(entry.name, std::move(loaded), std::move(tokenizer), runner,
                                        of_model, metrics);
  return out;
}

}  // namespace paddle::serve
