#include <algorithm>
#include <cmath>

#include "data/datasets/sources.h"
#include "data/datasets/split.h"

namespace paddle::data {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

bool has_field(const CsvFileOptions& options, const std::string& name) {
  return std::any_of(options.fields.begin(), options.fields.end(),
                     [&](const CsvField& field) { return field.name == name; });
}

std::string first_path(const Dataset& dataset) {
  const auto paths = dataset.paths();
  return paths.empty() ? "" : paths[0] + ": ";
}

}  // namespace

std::string kind_of(const DatasetOptions& options) {
  return std::visit(
      Overloaded{[](const DigitsOptions&) { return std::string("digits"); },
                 [](const IdxOptions&) { return std::string("idx"); },
                 [](const CsvFileOptions& o) { return o.format; },
                 [](const TextOptions&) { return std::string("text"); },
                 [](const ImageFolderOptions&) { return std::string("images"); },
                 [](const BoxOptions& o) {
                   return std::string(o.format == BoxOptions::Format::kCoco ? "coco" : "yolo");
                 },
                 [](const NpyOptions&) { return std::string("npy"); },
                 [](const NpzOptions&) { return std::string("npz"); },
                 [](const RandomOptions&) { return std::string("random"); },
                 [](const Hdf5Options&) { return std::string("hdf5"); },
                 [](const SeriesOptions&) { return std::string("series"); },
                 [](const TokensOptions&) { return std::string("tokens"); },
                 [](const ChatOptions&) { return std::string("chat"); },
                 [](const MixtureOptions&) { return std::string("mixture"); },
                 [](const OwnSource& o) { return o.kind; }},
      options.source);
}

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
  // Bounds are rounded from running sums, so that shares of one whole leave nothing out.
  const auto [first, last] = bounds_of_part(options);
  const auto count = static_cast<double>(part.end - part.begin);
  const int64_t base = part.begin;
  part.begin = base + std::llround(first * count);
  part.end = base + std::llround(last * count);
  part.permuted = !in_order;
  return part;
}

namespace {

/// The samples that range and split leave. The range comes first; a random split permutes what it
/// leaves.
DatasetPtr part_of(DatasetPtr whole, const DatasetOptions& options) {
  const bool by_samples = splits_by_samples(options);
  if (!options.begin && !options.end && options.split.empty() && options.part.empty() &&
      !by_samples)
    return whole;
  DatasetOptions range;
  range.begin = options.begin, range.end = options.end;
  const Part kept = resolve_part(range, whole->size(), true);
  if (options.begin || options.end) whole = std::make_shared<Subset>(whole, kept.begin, kept.end);
  if (by_samples) {
    std::vector<int64_t> chosen = split_by_samples(*whole, options);
    if (chosen.empty())
      fail(ErrorCode::kData, first_path(*whole), "the split leaves no samples for part '",
           options.part, "'");
    whole = std::make_shared<Subset>(whole, std::move(chosen), describe_split(options));
  } else if (!options.split.empty() || !options.part.empty()) {
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
  // Windows are laid over what range and split leave, not the other way round.
  const bool is_cut = std::holds_alternative<TextOptions>(options.source) ||
                      std::holds_alternative<TokensOptions>(options.source) ||
                      std::holds_alternative<SeriesOptions>(options.source);
  if (is_cut && splits_by_samples(options))
    fail(ErrorCode::kConfig, kind_of(options), ": windows can only be split by shares in order");
  std::shared_ptr<LearningDataset> learner;
  DatasetPtr whole = std::visit(
      Overloaded{[](const DigitsOptions& o) { return make_digits(o); },
                 [](const IdxOptions& o) { return make_idx(o); },
                 [&](CsvFileOptions o) -> DatasetPtr {
                   for (const std::string* column :
                        {&options.split_stratify, &options.split_group, &options.split_time})
                     if (!column->empty() && !has_field(o, *column))
                       o.more_columns.push_back(*column);
                   learner = make_csv(o);
                   return learner;
                 },
                 [&](const TextOptions& o) { return make_text(o, options); },
                 [&](const TokensOptions& o) { return make_tokens(o, options); },
                 [](const ImageFolderOptions& o) { return make_image_folder(o); },
                 [](const BoxOptions& o) { return make_boxes(o); },
                 [](const NpyOptions& o) { return make_npy(o); },
                 [](const NpzOptions& o) { return make_npz(o); },
                 [](const RandomOptions& o) { return make_random(o); },
                 [](const Hdf5Options& o) { return make_hdf5(o); },
                 [&](const SeriesOptions& o) { return make_series(o, options); },
                 [](const ChatOptions& o) { return make_chat(o); },
                 [](const MixtureOptions& o) { return make_mixture(o); },
                 [](const OwnSource& o) { return o.open(); }},
      options.source);
  if (whole->size() == 0) fail(ErrorCode::kData, first_path(*whole), "the dataset is empty");
  if (!is_cut) whole = part_of(whole, options);
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
