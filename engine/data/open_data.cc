#include "data/open_data.h"

#include <algorithm>

#include "base/files.h"

namespace paddle::data {
namespace {

/// Files and folders that do not exist are reported at the key that names them.
void check_paths(const config::Node* part) {
  if (!part) return;
  const auto check = [](const config::Node& node) {
    if (node.is_scalar() && !node.text.empty() && !file_exists(node.text) &&
        !is_directory(node.text))
      throw Error(ErrorCode::kData, "No such file or folder: " + node.text, node.location());
  };
  for (const char* key : {"path", "images", "labels", "vocabulary_file", "files"})
    if (const config::Node* node = part->find(key)) {
      check(*node);
      for (const config::Node& item : node->items) check(item);
      for (const config::Entry& entry : node->entries) check(entry.value);
    }
}

/// The step takes batches of either alike.
void check_same_fields(const std::vector<Field>& train, const std::vector<Field>& valid) {
  for (size_t i = 0; i < train.size(); ++i) {
    const Field& wanted = train[i];
    const auto it = std::find_if(valid.begin(), valid.end(),
                                 [&](const Field& f) { return f.name == wanted.name; });
    if (it == valid.end())
      fail(ErrorCode::kConfig, "data.valid has no field '", wanted.name, "', which data.train has");
    if (it != valid.begin() + static_cast<ptrdiff_t>(i) || it->dtype != wanted.dtype ||
        it->shape.size() != wanted.shape.size())
      fail(ErrorCode::kConfig, "data.valid gives ", *it, ", data.train gives ", wanted,
           "; both must have the same fields in the same order");
  }
}

void warn_passed_over(const char* part, const Dataset& dataset,
                      std::vector<std::string>& warnings) {
  for (const std::string& line : dataset.passed_over())
    warnings.push_back(str("data.", part, ": ", line));
}

/// A validation sample that is trained on tells nothing about new ones.
void warn_overlap(const OpenData& data, std::vector<std::string>& warnings) {
  const std::string source = data.train->source();
  if (source.empty() || source != data.valid->source()) return;
  const std::vector<bool> train = data.train->used_sources(), valid = data.valid->used_sources();
  int64_t shared = 0, total = 0;
  for (size_t i = 0; i < valid.size(); ++i) {
    total += valid[i];
    shared += i < train.size() && train[i] && valid[i];
  }
  if (shared > 0)
    warnings.push_back(str("data.valid: ", shared, " of ", total, " samples of ", source,
                           " are also in data.train; give each its own `range` or `part`"));
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
  OpenData out;
  out.train = with_location(node("train"), [&] { return make_dataset(config.train); });
  out.train_loader = loader(node("train"), out.train, config.loader);
  warn_passed_over("train", *out.train, out.warnings);
  if (!config.valid) return out;
  DatasetOptions valid = *config.valid;
  with_location(node("valid"), [&] {
    apply_fitted(valid, out.train->fitted());
    out.valid = make_dataset(valid);
    return 0;
  });
  out.valid_loader = loader(node("valid"), out.valid, config.valid_loader);
  with_location(node("valid"), [&] {
    check_same_fields(out.train_loader->fields(), out.valid_loader->fields());
    return 0;
  });
  warn_passed_over("valid", *out.valid, out.warnings);
  warn_overlap(out, out.warnings);
  return out;
}

}  // namespace paddle::data
