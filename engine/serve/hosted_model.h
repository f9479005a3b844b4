#pragma once
// A model that requests can ask: its engine and its chat template.

#include <memory>
#include <optional>
#include <span>

#include "serve/api.h"
#include "serve/engine.h"
#include "serve/serve_config.h"

namespace paddle::serve {

struct HostedModel {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<jinja::Template> chat_template;  ///< null if the model has none
  ModelEntry entry;

  ServedModel served() const;
};

/// Loads a model, or takes the weights of one of `others` if it is the same; nullopt if its family
/// has no function `step`. kUsage if it is not a language model.
std::optional<HostedModel> host_model(const ModelEntry& entry, const EngineLimits& limits,
                                      Metrics& metrics, std::span<const HostedModel> others = {});

}  // namespace paddle::serve
