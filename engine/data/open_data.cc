#include "data/open_data.h"

#include <algorithm>

#include "base/files.h"

namespace paddle::data {
namespace {

/// Files and folders that do not exist are reported at the key that names them.
void check_paths(const config::Node* part) {
  if (!part) return;
  const auto check = [](const config::Node& node) {
    const bool is_pattern = node.text.find_first_of("*?") != std::string::npos;
    if (node.is_scalar() && !node.text.empty() && !is_pattern && !file_exists(node.text) &&
        !is_directory(node.text))
      throw Error(ErrorCode::kData, "No such file or folder: " + node.text, node.location());
  };
  for (const char* key : {"path", "images", "labels", "annotations", "vocabulary_file", "files"})
    if (const config::Node* node = part->find(key)) {
      check(*node);
      for (const config::Node& item : node->items) check(item);
      for (const config::Entry& entry : node->entries) check(entry.value);
    }
  if (const config::Node* sources = part->find("sources"))
    for (const config::Entry& entry : sources->entries) check_paths(&entry.value);
}

/// The step takes batches of all parts alike.
void check_same_fields(const std::vector<Field>& train, const std::vector<Field>& valid,
                       const std::string& part) {
  for (size_t i = 0; i < train.size(); ++i) {
    const Field& wanted = train[i];
    const auto it = std::find_if(valid.begin(), valid.end(),
                                 [&](const Field& f) { return f.name == wanted.name; });
    if (it == valid.end())
      fail(ErrorCode::kConfig, "data.", part, " has no field '", wanted.name,
           "', which data.train has");
    if (it != valid.begin() + static_cast<ptrdiff_t>(i) || it->dtype != wanted.dtype ||
        it->shape.size() != wanted.shape.size())
      fail(ErrorCode::kConfig, "data.", part, " gives ", *it, ", data.train gives ", wanted,
           "; both must have the same fields in the same order");
  }
}

void warn_skipped_files(const char* part, const Dataset& dataset,
                        std::vector<std::string>& warnings) {
  for (const std::string& line : dataset.skipped_files())
    warnings.push_back(str("data.", part, ": ", line));
}

/// A sample that is trained on, or chosen by, says nothing about new ones.
void warn_overlap(const char* first, const Dataset& trained, const Dataset& other,
                  const std::string& part, std::vector<std::string>& warnings) {
  const std::string source = trained.source();
  if (source.empty() || source != other.source()) return;
  const std::vector<bool> train = trained.used_sources(), valid = other.used_sources();
  int64_t shared = 0, total = 0;
  for (size_t i = 0; i < valid.size(); ++i) {
    total += valid[i];
    shared += i < train.size() && train[i] && valid[i];
  }
  if (shared > 0)
    warnings.push_back(str("data.", part, ": ", shared, " of ", total, " samples of ", source,
                           " are also in data.", first, "; give each its own `range` or `part`"));
}

}  // namespace

OpenData open_data(const config::Node& document, const DataConfig& config) {
  const config::Node* section = document.find("data");
  const auto node = [&](const char* key) { return section ? section->find(key) : nullptr; };
  const config::Node* transforms = node("transforms");
  if (transforms && transforms->source_kind() == config::SourceKind::kDefault) transforms = nullptr;
  const auto loader = [&](const config::Node* part, const DatasetPtr& dataset,
                          const LoaderOptions& options) {
    return with_location(transforms ? transforms : part,
                         [&] { return std::make_unique<Loader>(dataset, options); });
  };
  check_paths(node("train"));
  if (config.valid) check_paths(node("valid"));
  if (config.test) check_paths(node("test"));
  OpenData out;
  out.train = with_location(node("train"), [&] {
    DatasetOptions options = config.train;
    choose_packing(options, config.takes_segments);
    return make_dataset(options);
  });
  LoaderOptions options = config.loader;
  if (options.shuffle) options.weights = mixture_weights(config.train, *out.train);
  if (!options.weights.empty()) {
    if (config.sampler)
      throw Error(ErrorCode::kConfig, "data.sampler: the mixture of data.train has weights already",
                  node("sampler") ? node("sampler")->location() : SourceLocation{});
    options.epoch_samples = std::get<MixtureOptions>(config.train.source).samples;
  }
  if (config.sampler && options.shuffle) {
    options.weights =
        with_location(node("sampler"), [&] { return sample_weights(*out.train, *config.sampler); });
    options.epoch_samples = config.sampler->samples;
  }
  out.train_loader = loader(node("train"), out.train, options);
  warn_skipped_files("train", *out.train, out.warnings);
  const auto open_part = [&](const char* key, const std::optional<DatasetOptions>& given,
                             DatasetPtr& dataset, std::unique_ptr<Loader>& opened) {
    if (!given) return;
    DatasetOptions options = *given;
    with_location(node(key), [&] {
      apply_fitted(options, out.train->fitted());
      choose_packing(options, config.takes_segments);
      dataset = make_dataset(options);
      return 0;
    });
    opened = loader(node(key), dataset, config.valid_loader);
    with_location(node(key), [&] {
      check_same_fields(out.train_loader->fields(), opened->fields(), key);
      return 0;
    });
    warn_skipped_files(key, *dataset, out.warnings);
    if (config.warns_of_overlap) warn_overlap("train", *out.train, *dataset, key, out.warnings);
  };
  open_part("valid", config.valid, out.valid, out.valid_loader);
  open_part("test", config.test, out.test, out.test_loader);
  if (config.warns_of_overlap && out.valid && out.test)
    warn_overlap("valid", *out.valid, *out.test, "test", out.warnings);
  return out;
}

}  // namespace paddle::data
