#pragma once
// OpenAI's /v1/embeddings: vectors of texts by encoders.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/embedder.h"
#include "serve/serve_config.h"

namespace paddle::serve {

struct HostedEncoder {
  std::string name;
  std::unique_ptr<llm::Embedder> embedder;
  int64_t created = 0;
};

/// Loads an encoder. kModel if the model is none, kUsage for settings that do nothing for one.
HostedEncoder host_encoder(const ModelEntry& entry);

/// The response to a request's body. Throws ApiError (api.h) for what cannot be done as asked.
std::string answer_embeddings(std::string_view body, const std::vector<HostedEncoder>& encoders);

}  // namespace paddle::serve
