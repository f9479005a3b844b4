// Recipes for tables of texts, sounds and times: tagging, sequence to sequence, speech commands,
// recommender and time series.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/options.h"
#include "formats/sound/sound.h"
#include "recipes/csv_profile.h"
#include "recipes/recipes.h"
#include "recipes/template.h"

namespace paddle::recipes {
namespace {

data::CsvField text_field(const std::string& name, const std::string& column,
                          data::TokenKind tokens) {
  data::CsvField out;
  out.name = name, out.columns = {column};
  out.kind = data::ColumnKind::kText;
  out.tokens = tokens;
  out.max_length = 1 << 14;
  return out;
}

data::DatasetPtr open_fields(const CsvProfile& profile, std::vector<data::CsvField> fields) {
  data::CsvFileOptions csv = profile.format;
  csv.fields = std::move(fields);
  data::DatasetOptions options;
  options.source = std::move(csv);
  return data::make_dataset(options);
}

bool has_name(const Column& column, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    // RecBole writes the kind of a column after its name: "rating:float".
    return column.name.substr(0, column.name.find(':')) == name;
  });
}

/// The first two columns are what is read and what comes out of it.
void put_target_second(const RecipeRequest& request, CsvProfile& profile) {
  if (request.target.empty()) return;
  const size_t target = profile.column(request.target, "--target");
  const Column column = profile.columns[target];
  profile.columns.erase(profile.columns.begin() + static_cast<std::ptrdiff_t>(target));
  profile.columns.insert(profile.columns.begin() + 1, column);
}

/// Adds the notes about the file.
RecipeResult with_notes(RecipeResult result, const CsvProfile& profile) {
  result.found.insert(result.found.end(), profile.notes.begin(), profile.notes.end());
  return result;
}
Values format_values(const CsvProfile& profile, Values values) {
  values.emplace("block_format", profile.block_keys());
  values.emplace("flow_format", profile.flow_keys());
  return values;
}

}  // namespace

RecipeResult tagging(const RecipeRequest& request) {
  CsvProfile profile = inspect_csv(request);
  put_target_second(request, profile);
  // Tags have fewer different words than the sentences that they are for.
  const auto dataset =
      open_fields(profile, {text_field("a", profile.columns[0].name, data::TokenKind::kSpaces),
                            text_field("b", profile.columns[1].name, data::TokenKind::kSpaces)});
  const bool swapped =
      request.target.empty() && dataset->fields()[0].class_count < dataset->fields()[1].class_count;
  const size_t text = swapped ? 1 : 0, tags = swapped ? 0 : 1;
  data::Sample sample;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    dataset->read(i, {}, sample);
    if (sample[0].size() != sample[1].size())
      fail(ErrorCode::kData, dataset->location(i), ": ", sample[text].size(), " words have ",
           sample[tags].size(), " tags; both columns are separated by spaces");
  }
  data::CsvField exact = text_field("tags", profile.columns[tags].name, data::TokenKind::kSpaces);
  exact.lowercase = false;
  const int64_t tag_count = open_fields(profile, {exact})->fields()[0].class_count;
  const int64_t words = std::min<int64_t>(dataset->fields()[text].class_count, 30001);
  RecipeResult out;
  out.found = {str(profile.rows, " sentences in '", profile.columns[text].name, "' with ",
                   words - 1, " different words; ", tag_count - 1, " tags in '",
                   profile.columns[tags].name, "'")};
  out.config = fill_template(
      request, format_values(profile, {{"words", str(words)},
                                       {"epochs", str(epochs_for(profile.rows * 4 / 5, 150000, 8))},
                                       {"vocabulary", str(words - 1)},
                                       {"tags", str(tag_count)},
                                       {"text", yaml_text(profile.columns[text].name)},
                                       {"label", yaml_text(profile.columns[tags].name)}}));
  return with_notes(std::move(out), profile);
}

namespace {

/// A transformer as large as its data allow: about a weight for each token of all texts.
struct TransformerSize {
  int64_t width, layers;  ///< of the encoder, and as many of the decoder
  const char* rate;       ///< of learning: larger networks take smaller steps
};

TransformerSize transformer_for(int64_t tokens) {
  constexpr TransformerSize kSizes[] = {
      {256, 4, "5e-4"}, {192, 3, "7e-4"}, {128, 2, "2e-3"}, {64, 2, "2e-3"}};
  constexpr int64_t kMatrices = 28;  // of width x width, in a layer of both
  for (const TransformerSize& each : kSizes)
    if (kMatrices * each.width * each.width * each.layers <= tokens) return each;
  return kSizes[std::size(kSizes) - 1];
}

}  // namespace

RecipeResult sequence_to_sequence(const RecipeRequest& request) {
  CsvProfile profile = inspect_csv(request);
  put_target_second(request, profile);
  const auto open = [&](data::TokenKind kind) {
    return open_fields(profile, {text_field("source", profile.columns[0].name, kind),
                                 text_field("target", profile.columns[1].name, kind)});
  };
  // Without spaces, the parts of a text are its characters.
  data::DatasetPtr dataset = open(data::TokenKind::kWords);
  int64_t words = 0;
  for (int64_t i = 0; i < dataset->size(); ++i) words += dataset->length_of(i);
  const bool by_character = words < 3 * dataset->size();
  if (by_character) dataset = open(data::TokenKind::kCharacters);
  constexpr int64_t kVocabulary = 16000;
  int64_t longest = 1, all = 0;
  data::Sample sample;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    dataset->read(i, {}, sample);
    longest = std::max({longest, sample[0].size(), sample[1].size()});
    all += sample[0].size() + sample[1].size();
  }
  longest = std::min<int64_t>(longest, 256);
  const TransformerSize size = transformer_for(all);
  const int64_t epochs = epochs_for(profile.rows * 9 / 10, 900000, 8);
  // Texts that are seen that often are learned by heart without these.
  const bool is_seen_often = epochs > 20 && !request.small;
  const auto tokens = [&](size_t field) {
    return str(std::min(dataset->fields()[field].class_count, kVocabulary + 1));
  };
  RecipeResult out;
  out.found = {str(profile.rows, " pairs, '", profile.columns[0].name, "' to '",
                   profile.columns[1].name, "', read as ", by_character ? "characters" : "words",
                   ", up to ", longest, " of them")};
  out.config = fill_template(
      request, format_values(profile, {{"tokens", by_character ? "characters" : "words"},
                                       {"epochs", str(epochs)},
                                       {"width", str(size.width)},
                                       {"layers", str(size.layers)},
                                       {"rate", size.rate},
                                       {"dropout", is_seen_often ? "0.1" : "0.0"},
                                       {"source", yaml_text(profile.columns[0].name)},
                                       {"target", yaml_text(profile.columns[1].name)},
                                       {"source_tokens", tokens(0)},
                                       {"target_tokens", tokens(1)},
                                       {"vocabulary", str(kVocabulary)},
                                       {"longest", str(longest)},
                                       {"smoothing", is_seen_often ? ", label_smoothing=0.1" : ""},
                                       // Padded lengths are rounded up, and a 0 begins a text.
                                       {"positions", str((longest + 15) / 16 * 16 + 32)}}));
  return with_notes(std::move(out), profile);
}

RecipeResult speech_commands(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  size_t sound = profile.columns.size();
  for (size_t c = 0; c < profile.columns.size() && sound == profile.columns.size(); ++c) {
    const auto cells = cells_of(profile, profile.columns[c]);
    if (!cells.empty() && formats::has_sound_ending(cells[0])) sound = c;
  }
  if (sound == profile.columns.size())
    fail(ErrorCode::kData, request.data, ": found no column with names of audio files");
  const Column* label = request.target.empty()
                            ? nullptr
                            : &profile.columns[profile.column(request.target, "--target")];
  for (const Column& each : profile.columns)
    if (request.target.empty() && &each != &profile.columns[sound] && each.values.size() >= 2 &&
        each.values.size() <= kMaxValues && !each.has_missing &&
        (!label || each.values.size() < label->values.size()))
      label = &each;
  if (!label) fail(ErrorCode::kData, request.data, ": found no label column");
  int64_t rate = 0, longest = 0, looked = 0;
  double seconds = 0;
  std::map<int64_t, int64_t> rates;
  const std::string folder = std::filesystem::path(request.data).parent_path().string();
  for (const std::string& cell : cells_of(profile, profile.columns[sound])) {
    if (looked++ == 200) break;
    const std::string path = cell.starts_with('/') ? cell : join_path(folder, cell);
    const auto file = MappedFile::open(path);
    const formats::SoundHeader header = formats::read_sound_header(file->bytes(), path);
    ++rates[header.rate];
    seconds =
        std::max(seconds, static_cast<double>(header.frames) / static_cast<double>(header.rate));
  }
  // The rate of most of them; the others are resampled.
  for (const auto& [each, count] : rates)
    if (rate == 0 || count > rates[rate]) rate = each;
  longest = static_cast<int64_t>(std::ceil(seconds * static_cast<double>(rate)));
  const auto classes = static_cast<int64_t>(label->values.size());
  RecipeResult out;
  out.found = {str(profile.rows, " sounds of ", rate, " Hz in '", profile.columns[sound].name,
                   "', up to ", longest / std::max<int64_t>(1, rate), " seconds; ", classes,
                   " classes in '", label->name, "'")};
  out.config = fill_template(
      request, format_values(profile, {{"count", str(classes)},
                                       {"epochs", str(epochs_for(profile.rows * 4 / 5, 25000, 10))},
                                       {"strides", request.small ? "[1, 1, 1]" : "[2, 2, 1]"},
                                       {"sound", yaml_text(profile.columns[sound].name)},
                                       {"label", yaml_text(label->name)},
                                       {"rate", str(rate)},
                                       {"longest", str(std::max<int64_t>(longest, rate / 10))},
                                       {"window", str(rate / 40)},  // 25 and 10 milliseconds
                                       {"hop", str(rate / 100)}}));
  return with_notes(std::move(out), profile);
}

namespace {

/// Whole numbers of seconds since 1970, most of them different.
bool is_epoch(const Column& column, int64_t rows) {
  if (!column.is_number || column.has_fraction ||
      2 * std::ssize(column.values) < std::min<int64_t>(rows, kMaxValues))
    return false;
  return std::all_of(column.values.begin(), column.values.end(), [](const auto& value) {
    double number = 0;
    return data::cell_number(value.first, '.', number) && number > 1e8 && number < 1e13;
  });
}

/// The column to predict: as asked for, by its name, or the last one without times.
size_t rating_column(const RecipeRequest& request, const CsvProfile& profile) {
  if (!request.target.empty()) return profile.column(request.target, "--target");
  size_t label = profile.columns.size() - 1;
  while (label > 0 && is_time(profile.columns[label])) --label;
  while (label > 0 && is_epoch(profile.columns[label], profile.rows)) --label;
  for (size_t c = 0; c < profile.columns.size(); ++c)
    if (has_name(profile.columns[c], {"label", "click", "clicked", "rating"})) label = c;
  return label;
}

double mean_of(const CsvProfile& profile, const Column& column) {
  double sum = 0;
  int64_t count = 0;
  for (const std::string& cell : cells_of(profile, column)) {
    double number = 0;
    if (!data::cell_number(cell, profile.format.decimal, number)) continue;
    sum += number;
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

RecipeResult recommender(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  const size_t label = rating_column(request, profile);
  if (!profile.columns[label].is_number)
    fail(ErrorCode::kData, request.data, ": the column '", profile.columns[label].name,
         "' is the target, but holds text (--target names another)");
  RecipeResult out;
  std::vector<std::string> items, numbers, times;
  for (size_t c = 0; c < profile.columns.size(); ++c) {
    if (c == label) continue;
    const Column& each = profile.columns[c];
    // Numbers with a fraction are amounts; whole ones with many values are names of users or items.
    if (is_time(each) || is_epoch(each, profile.rows))
      times.push_back("'" + each.name + "'");
    else
      (each.is_number && each.has_fraction ? numbers : items).push_back(yaml_text(each.name));
  }
  if (items.empty())
    fail(ErrorCode::kData, request.data,
         ": found no columns of categories, such as users and items");
  const auto& values = profile.columns[label].values;
  const bool is_click = values.size() == 2 && values.contains("0") && values.contains("1");
  out.found = {str(profile.rows, " rows; ", is_click ? "clicks" : "ratings", " in '",
                   profile.columns[label].name, "', ", items.size(), " columns of categories, ",
                   numbers.size(), " of numbers")};
  if (!times.empty())
    out.found.push_back(join(times, ", ") + (times.size() == 1 ? " holds" : " hold") +
                        " times; left out");
  // Few rows are seen often, in small batches: what counts is the number of updates.
  constexpr int64_t kUpdates = 1500;
  const int64_t trained = std::max<int64_t>(profile.rows * 4 / 5, 1);
  const int64_t batch = std::clamp<int64_t>(trained / 40, 16, request.small ? 32 : 256);
  const int64_t updates = (trained + batch - 1) / batch;
  const int64_t epochs =
      request.small ? 3 : std::clamp<int64_t>(kUpdates / std::max<int64_t>(updates, 1), 8, 40);
  const bool few = profile.rows < 20000;
  const double share = mean_of(profile, profile.columns[label]);
  const double start = !is_click                ? share
                       : share > 0 && share < 1 ? std::log(share / (1 - share))
                                                : 0;
  Values v;
  v["categories"] = str(items.size());
  v["item_columns"] = join(items, ", ");
  v["label"] = yaml_text(profile.columns[label].name);
  v["start"] = format_double(std::round(start * 1000) / 1000);
  v["batch"] = str(batch);
  v["epochs"] = str(epochs);
  v["width"] = few ? "4" : "8";
  v["hidden"] = request.small ? "[32, 16]" : few ? "[32, 16]" : "[128, 64]";
  v["decay"] = few ? "0.1" : "0.02";
  v["loss"] =
      is_click ? "binary_cross_entropy_with_logits(score, label)" : "mse_loss(score, label)";
  v["metrics"] = is_click ? "  auc: auc(score, label)\n" : "  rmse: rmse(score, label)\n";
  v["best"] = is_click ? "auc" : "rmse";
  v["numbers_input"] =
      numbers.empty() ? "" : str("    numbers: \"float32[batch, ", numbers.size(), "]\"\n");
  v["numbers_model"] = numbers.empty() ? "" : "    x = concat([x, numbers], 1)\n";
  v["numbers_field"] = numbers.empty()
                           ? ""
                           : str("      - {name: numbers, columns: [", join(numbers, ", "),
                                 "], missing: fill, log: true, scaling: standard}\n");
  out.config = fill_template(request, format_values(profile, v));
  return with_notes(std::move(out), profile);
}

namespace {

/// The columns of a table of time series.
struct SeriesColumns {
  const Column *target = nullptr, *time = nullptr, *group = nullptr;
  std::vector<const Column*> others = {};
};

SeriesColumns series_columns(const RecipeRequest& request, const CsvProfile& profile,
                             RecipeResult& out) {
  SeriesColumns found;
  if (!request.time.empty()) found.time = &profile.columns[profile.column(request.time, "--time")];
  if (!request.group.empty())
    found.group = &profile.columns[profile.column(request.group, "--group")];
  for (const Column& each : profile.columns)
    if (request.time.empty() && !found.time && is_time(each)) found.time = &each;
  if (found.time && found.time->time == data::TimeForm::kNone)
    fail(ErrorCode::kData, request.data, ": the column '", found.time->name,
         "' does not hold timestamps of one format");
  // A text that repeats names the series of a row.
  std::vector<const Column*> texts;
  for (const Column& each : profile.columns)
    if (&each != found.time && !each.is_number && !each.has_missing &&
        static_cast<int64_t>(each.values.size()) * 4 <= profile.rows)
      texts.push_back(&each);
  if (!found.group && texts.size() == 1) found.group = texts[0];
  if (!found.group && texts.size() > 1) {
    std::vector<std::string> names;
    for (const Column* each : texts) names.push_back("'" + each->name + "'");
    out.found.push_back(str("several columns could identify the series (", join(names, ", "),
                            "): all rows are taken as one series; --group names one"));
  }
  for (const Column& each : profile.columns) {
    if (&each == found.time || &each == found.group) continue;
    if (each.is_number && !each.has_missing)
      found.others.push_back(&each);
    else if (each.is_number)
      out.found.push_back(str("'", each.name, "' has gaps; left out"));
    else
      out.found.push_back(str("'", each.name, "' is not a number; left out"));
  }
  if (found.others.empty())
    fail(ErrorCode::kData, request.data, ": found no numeric column without missing values");
  found.target = found.others.back();
  if (!request.target.empty()) {
    const Column* const asked = &profile.columns[profile.column(request.target, "--target")];
    const auto at = std::find(found.others.begin(), found.others.end(), asked);
    if (at == found.others.end())
      fail(ErrorCode::kData, request.data, ": --target: '", asked->name,
           "' is not a column of numbers without gaps");
    found.target = asked;
  }
  std::erase(found.others, found.target);
  return found;
}

}  // namespace

RecipeResult time_series(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  RecipeResult out;
  const SeriesColumns columns = series_columns(request, profile, out);
  std::vector<std::string> others;
  for (const Column* each : columns.others) others.push_back(yaml_text(each->name));
  int64_t rows = profile.rows, series = 1;  // of the shortest series
  if (columns.group) {
    series = static_cast<int64_t>(columns.group->values.size());
    if (columns.group->values.size() > kMaxValues) {
      rows = std::max<int64_t>(profile.rows / (series * 2), 1);
    } else {
      for (const auto& [name, count] : columns.group->values) rows = std::min(rows, count);
    }
  }
  // A validation part of a fifth holds some windows.
  const int64_t horizon = std::clamp<int64_t>(rows / 60, 1, 24);
  const int64_t history = std::clamp<int64_t>(rows / 12, 2, 96);
  out.found.insert(
      out.found.begin(),
      str(profile.rows, " rows", series > 1 ? str(" of ", series, " series") : "", "; '",
          columns.target->name, "' is forecast ", horizon, " rows ahead from ", history,
          others.empty() ? "" : str(", with ", others.size(), " other columns")));
  if (columns.group) out.found.push_back(str("'", columns.group->name, "' identifies the series"));
  if (!columns.time)
    out.found.emplace_back("no column of times: the rows are taken in the order of the file");
  else if (!columns.time->rises)
    out.found.push_back(
        str("'", columns.time->name, "'",
            columns.time->falls ? " runs backwards in the file" : " is not in order",
            "; the rows are sorted by it"));
  std::string keys = profile.flow_keys();
  if (columns.time) keys += ", time: " + yaml_text(columns.time->name);
  if (columns.group) keys += ", group: " + yaml_text(columns.group->name);
  out.config = fill_template(request, {{"target", yaml_text(columns.target->name)},
                                       {"covariates", join(others, ", ")},
                                       {"columns", str(others.size() + 1)},
                                       {"keys", keys},
                                       {"history", str(history)},
                                       {"horizon", str(horizon)}});
  return with_notes(std::move(out), profile);
}

}  // namespace paddle::recipes
