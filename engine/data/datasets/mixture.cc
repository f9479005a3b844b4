// Several datasets of the same fields as one.

#include <algorithm>

#include "data/datasets/sources.h"

namespace paddle::data {
namespace {

class Mixture final : public Dataset {
 public:
  Mixture(std::vector<std::string> names, std::vector<DatasetPtr> parts)
      : names_(std::move(names)), parts_(std::move(parts)) {
    fields_ = parts_[0]->fields();
    for (size_t p = 0; p < parts_.size(); ++p) {
      check_fields(p);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + parts_[p]->size());
      const auto sources = static_cast<int64_t>(parts_[p]->used_sources().size());
      source_begins_.push_back(source_begins_.empty() ? 0 : source_begins_.back() + last_sources_);
      last_sources_ = sources;
    }
  }
  std::vector<int64_t> part_sizes() const {
    std::vector<int64_t> out;
    for (const DatasetPtr& part : parts_) out.push_back(part->size());
    return out;
  }
  int64_t size() const override { return ends_.back(); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    const auto [part, own] = find(index);
    part->read(own, context, out);
  }
  void check(int64_t index) const override {
    const auto [part, own] = find(index);
    part->check(own);
  }
  std::vector<std::string> left_out() const override { return gather(&Dataset::left_out); }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    const auto [part, own] = find(index);
    return part->location(own, field, element);
  }
  std::string fingerprint() const override {
    std::string out;
    for (const DatasetPtr& part : parts_)
      if (const std::string one = part->fingerprint(); !one.empty())
        out += (out.empty() ? "" : " ") + one;
    return out;
  }
  std::vector<std::string> paths() const override { return gather(&Dataset::paths); }
  const Vocabulary* vocabulary(int64_t field) const override {
    return parts_[0]->vocabulary(field);
  }
  std::vector<Fitted> fitted() const override { return parts_[0]->fitted(); }
  int64_t source_index(int64_t index) const override {
    const size_t p = part_of(index);
    return source_begins_[p] + parts_[p]->source_index(index - begin_of(p));
  }
  std::vector<bool> used_sources() const override {
    std::vector<bool> out;
    for (const DatasetPtr& part : parts_) {
      const std::vector<bool> own = part->used_sources();
      out.insert(out.end(), own.begin(), own.end());
    }
    return out;
  }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    const auto [part, own] = find(index);
    return part->class_of(own, field);
  }
  std::optional<std::string> key_of(int64_t index, const std::string& column) const override {
    const auto [part, own] = find(index);
    return part->key_of(own, column);
  }
  int64_t length_of(int64_t index) const override {
    const auto [part, own] = find(index);
    return part->length_of(own);
  }
  std::vector<std::string> skipped_files() const override {
    return gather(&Dataset::skipped_files);
  }
  std::vector<std::string> warnings() const override { return gather(&Dataset::warnings); }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> out;
    for (size_t p = 0; p < parts_.size(); ++p)
      out.emplace_back("source " + names_[p], str(parts_[p]->size(), " samples"));
    return out;
  }

 private:
  void check_fields(size_t p) const {
    const std::vector<Field>& own = parts_[p]->fields();
    const bool same =
        own.size() == fields_.size() &&
        std::equal(own.begin(), own.end(), fields_.begin(), [](const Field& a, const Field& b) {
          return a.name == b.name && a.dtype == b.dtype && a.shape.size() == b.shape.size() &&
                 a.kind == b.kind && (a.max_length > 0) == (b.max_length > 0);
        });
    if (same) return;
    const auto list = [](const std::vector<Field>& fields) {
      std::vector<std::string> out;
      for (const Field& field : fields) out.push_back(field.text());
      return join(out, ", ");
    };
    fail(ErrorCode::kConfig, "mixture: source '", names_[p], "' has ", list(own), "; source '",
         names_[0], "' has ", list(fields_), "; all need the same fields in the same order");
  }
  int64_t begin_of(size_t p) const { return p == 0 ? 0 : ends_[p - 1]; }
  size_t part_of(int64_t index) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  }
  std::pair<const Dataset*, int64_t> find(int64_t index) const {
    const size_t p = part_of(index);
    return {parts_[p].get(), index - begin_of(p)};
  }
  std::vector<std::string> gather(std::vector<std::string> (Dataset::*lines)() const) const {
    std::vector<std::string> out;
    for (const DatasetPtr& part : parts_)
      for (std::string& line : ((*part).*lines)()) out.push_back(std::move(line));
    return out;
  }

  std::vector<std::string> names_;
  std::vector<DatasetPtr> parts_;
  std::vector<Field> fields_;
  std::vector<int64_t> ends_;           ///< samples up to the end of each part
  std::vector<int64_t> source_begins_;  ///< samples of the files of all parts before
  int64_t last_sources_ = 0;
};

}  // namespace

DatasetPtr make_mixture(const MixtureOptions& options) {
  if (options.sources.empty()) fail(ErrorCode::kConfig, "mixture: no source is given");
  std::vector<std::string> names;
  std::vector<DatasetPtr> parts;
  for (const auto& [name, source] : options.sources) {
    DatasetOptions own = *source;
    // The first source teaches scaling, vocabularies and classes to the others.
    if (!parts.empty()) apply_fitted(own, parts[0]->fitted());
    names.push_back(name);
    parts.push_back(make_dataset(own));
  }
  return std::make_shared<Mixture>(std::move(names), std::move(parts));
}

std::vector<double> mixture_weights(const DatasetOptions& options, const Dataset& dataset) {
  const auto* mixture = std::get_if<MixtureOptions>(&options.source);
  if (!mixture || mixture->weights.empty()) return {};
  ensure(mixture->weights.size() == mixture->sources.size(), "mixture: one weight per source");
  const std::vector<int64_t> sizes = dynamic_cast<const Mixture&>(dataset).part_sizes();
  std::vector<double> out;
  for (size_t s = 0; s < sizes.size(); ++s)
    out.insert(out.end(), static_cast<size_t>(sizes[s]),
               mixture->weights[s] / static_cast<double>(sizes[s]));
  return out;
}

}  // namespace paddle::data
