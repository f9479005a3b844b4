#include "data/datasets/bad_samples.h"

#include <algorithm>

namespace paddle::data {
namespace {

/// Calls `change` with the options of a dataset or, for a mixture, of each of its sources.
template <class F>
void change_sources(DatasetOptions& options, F&& change) {
  auto* mixture = std::get_if<MixtureOptions>(&options.source);
  if (!mixture) return change(options);
  for (auto& [name, source] : mixture->sources) {
    DatasetOptions own = *source;
    change_sources(own, change);
    source = std::make_shared<const DatasetOptions>(std::move(own));
  }
}

}  // namespace

bool keep_bad_samples(DatasetOptions& options) {
  bool any = false;
  change_sources(options, [&](DatasetOptions& own) {
    if (auto* boxes = std::get_if<BoxOptions>(&own.source)) any = boxes->drops_outside = true;
    auto* records = std::get_if<CsvFileOptions>(&own.source);
    if (!records) return;
    for (CsvField& field : records->fields) {
      if (field.kind == ColumnKind::kMask && !field.values.empty())
        any = field.ignores_others = true;
      if (field.kind != ColumnKind::kCategorical || field.buckets > 0) continue;
      any = true;
      if (field.missing == MissingPolicy::kDefault) field.missing = MissingPolicy::kCategory;
    }
  });
  return any;
}

void skip_bad_records(DatasetOptions& options) {
  change_sources(options, [](DatasetOptions& own) {
    if (auto* chat = std::get_if<ChatOptions>(&own.source)) chat->skips_bad = true;
  });
}

void require_targets(DataConfig& config, const std::vector<std::string>& inputs) {
  const auto require = [&](DatasetOptions& own) {
    auto* records = std::get_if<CsvFileOptions>(&own.source);
    if (!records) return;
    for (CsvField& field : records->fields)
      if (field.kind == ColumnKind::kCategorical && field.buckets == 0 &&
          field.missing == MissingPolicy::kDefault &&
          std::find(inputs.begin(), inputs.end(), field.name) == inputs.end())
        field.missing = MissingPolicy::kError;
  };
  change_sources(config.train, require);
  for (auto* part : {&config.valid, &config.test})
    if (*part) change_sources(**part, require);
}

}  // namespace paddle::data
