#include <algorithm>
#include <array>
#include <cmath>

#include "data/sources.h"

namespace paddle::data {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string first_path(const Dataset& dataset) {
  const auto paths = dataset.paths();
  return paths.empty() ? "" : paths[0] + ": ";
}

}  // namespace

std::string kind_of(const DatasetOptions& options) {
  return std::visit(
      Overloaded{[](const DigitsOptions&) { return "digits"; },
                 [](const IdxOptions&) { return "idx"; },
                 [](const CsvFileOptions& o) {
                   switch (o.format) {
                     case RecordFormat::kCsv:
                       break;
                     case RecordFormat::kJsonl:
                       return "jsonl";
                     case RecordFormat::kLines:
                       return "lines";
                     case RecordFormat::kTar:
                       return "tar";
                   }
                   return "csv";
                 },
                 [](const TextOptions&) { return "text"; },
                 [](const ImageFolderOptions&) { return "images"; },
                 [](const BoxOptions& o) {
                   return o.format == BoxOptions::Format::kCoco ? "coco" : "yolo";
                 },
                 [](const NpyOptions&) { return "npy"; }, [](const NpzOptions&) { return "npz"; },
                 [](const RandomOptions&) { return "random"; }},
      options.source);
}

namespace {

/// Shares in an order that does not depend on how they are written: training, validation, test,
/// then other names alphabetically.
std::vector<std::pair<std::string, double>> in_canonical_order(
    std::vector<std::pair<std::string, double>> shares) {
  constexpr std::array<std::string_view, 7> kOrder = {"train", "training",   "valid", "val",
                                                      "dev",   "validation", "test"};
  const auto rank = [&](const std::string& name) {
    return std::find(kOrder.begin(), kOrder.end(), name) - kOrder.begin();
  };
  std::sort(shares.begin(), shares.end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(a.first), a.first) < std::pair(rank(b.first), b.first);
  });
  return shares;
}

}  // namespace

Part resolve_part(const DatasetOptions& options, int64_t size, bool in_order) {
  const auto from_end = [&](int64_t at) { return at < 0 ? at + size : at; };
  Part part{from_end(options.begin.value_or(0)), from_end(options.end.value_or(size)), false};
  if (part.begin < 0 || part.end > size || part.begin > part.end)
    fail(ErrorCode::kConfig, "range [", options.begin.value_or(0), ", ", options.end.value_or(size),
         "] does not fit a dataset of ", size, " samples");
  if (options.split.empty()) {
    if (!options.part.empty())
      fail(ErrorCode::kConfig, "part: '", options.part,
           "' is given without `split`; add the shares, ",
           "such as split: {train: 0.9, valid: 0.1}");
    return part;
  }
  if (options.part.empty())
    fail(ErrorCode::kConfig, "split: `part` must say which of the shares is used");
  double total = 0;
  std::vector<std::string> names;
  for (const auto& [name, share] : options.split) {
    if (!(share >= 0)) fail(ErrorCode::kConfig, "split: the share of '", name, "' is ", share);
    total += share;
    names.push_back(name);
  }
  if (total > 1 + 1e-9)
    fail(ErrorCode::kConfig, "split: the shares add up to ", total, ", more than 1");
  // Bounds are rounded from running sums, so that shares of one whole leave nothing out.
  const int64_t base = part.begin, count = part.end - part.begin;
  double before = 0;
  for (const auto& [name, share] : in_canonical_order(options.split)) {
    if (name == options.part) {
      part.begin = base + std::llround(before * static_cast<double>(count));
      part.end = base + std::min<int64_t>(
                            count, std::llround((before + share) * static_cast<double>(count)));
      part.permuted = !in_order;
      return part;
    }
    before += share;
  }
  fail(ErrorCode::kConfig, "split: no part '", options.part, "'", did_you_mean(options.part, names),
       "; there are: ", join(names, ", "));
}

namespace {

/// The samples that range and split leave. The range comes first; a random split permutes what it
/// leaves.
DatasetPtr part_of(DatasetPtr whole, const DatasetOptions& options) {
  if (!options.begin && !options.end && options.split.empty() && options.part.empty()) return whole;
  DatasetOptions range;
  range.begin = options.begin, range.end = options.end;
  const Part kept = resolve_part(range, whole->size(), true);
  if (options.begin || options.end) whole = std::make_shared<Subset>(whole, kept.begin, kept.end);
  if (!options.split.empty() || !options.part.empty()) {
    DatasetOptions split;
    split.split = options.split, split.part = options.part;
    const Part part = resolve_part(split, whole->size(), options.split_in_order);
    whole = part.permuted
                ? std::make_shared<Subset>(whole, part.begin, part.end, options.split_seed)
                : std::make_shared<Subset>(whole, part.begin, part.end);
  }
  if (whole->size() == 0)
    fail(ErrorCode::kData, first_path(*whole), "range and split leave no samples");
  return whole;
}

}  // namespace

DatasetPtr make_dataset(const DatasetOptions& options) {
  const auto* text = std::get_if<TextOptions>(&options.source);
  std::shared_ptr<LearningDataset> learner;
  DatasetPtr whole =
      std::visit(Overloaded{[](const DigitsOptions& o) { return make_digits(o); },
                            [](const IdxOptions& o) { return make_idx(o); },
                            [&](const CsvFileOptions& o) -> DatasetPtr {
                              learner = make_csv(o);
                              return learner;
                            },
                            [&](const TextOptions& o) { return make_text(o, options); },
                            [](const ImageFolderOptions& o) { return make_image_folder(o); },
                            [](const BoxOptions& o) { return make_boxes(o); },
                            [](const NpyOptions& o) { return make_npy(o); },
                            [](const NpzOptions& o) { return make_npz(o); },
                            [](const RandomOptions& o) { return make_random(o); }},
                 options.source);
  if (whole->size() == 0) fail(ErrorCode::kData, first_path(*whole), "the dataset is empty");
  if (!text) whole = part_of(whole, options);
  if (learner) {
    std::vector<bool> used(static_cast<size_t>(learner->size()));
    for (int64_t i = 0; i < whole->size(); ++i)
      used[static_cast<size_t>(whole->source_index(i))] = true;
    learner->learn(used);
  }
  if (!options.scales.empty()) whole = make_scaled(whole, options.scales);
  return whole;
}

}  // namespace paddle::data
