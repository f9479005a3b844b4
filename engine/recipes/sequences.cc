// Recipes for tables of texts, sounds and times: tagging, sequence to sequence, speech commands,
// recommender and time series.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/options.h"
#include "formats/audio.h"
#include "recipes/csv_look.h"
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

data::DatasetPtr open_fields(const std::string& path, std::vector<data::CsvField> fields) {
  data::CsvFileOptions csv;
  csv.path = path;
  csv.fields = std::move(fields);
  data::DatasetOptions options;
  options.source = std::move(csv);
  return data::make_dataset(options);
}

std::string delimiter_of(const std::string& path) {
  return path.ends_with(".tsv") || path.ends_with(".tab") ? "tab" : ",";
}

bool has_name(const Column& column, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return column.name == name; });
}

}  // namespace

RecipeResult tagging(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  // Tags have fewer different words than the sentences that they are for.
  const auto dataset =
      open_fields(request.data, {text_field("a", look.columns[0].name, data::TokenKind::kSpaces),
                                 text_field("b", look.columns[1].name, data::TokenKind::kSpaces)});
  const bool swapped = dataset->fields()[0].class_count < dataset->fields()[1].class_count;
  const size_t text = swapped ? 1 : 0, tags = swapped ? 0 : 1;
  data::Sample sample;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    dataset->read(i, {}, sample);
    if (sample[0].size() != sample[1].size())
      fail(ErrorCode::kData, dataset->location(i), ": ", sample[text].size(), " words have ",
           sample[tags].size(), " tags; both columns are separated by spaces");
  }
  data::CsvField exact = text_field("tags", look.columns[tags].name, data::TokenKind::kSpaces);
  exact.lowercase = false;
  const int64_t tag_count = open_fields(request.data, {exact})->fields()[0].class_count;
  const int64_t words = std::min<int64_t>(dataset->fields()[text].class_count, 30001);
  RecipeResult out;
  out.found = {str(look.rows, " sentences in '", look.columns[text].name, "' with ", words - 1,
                   " different words; ", tag_count - 1, " tags in '", look.columns[tags].name,
                   "'")};
  out.config = fill_template(request, {{"words", str(words)},
                                       {"epochs", str(epochs_for(look.rows * 4 / 5, 150000, 8))},
                                       {"vocabulary", str(words - 1)},
                                       {"tags", str(tag_count)},
                                       {"text", yaml_text(look.columns[text].name)},
                                       {"label", yaml_text(look.columns[tags].name)}});
  return out;
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
  const CsvLook look = look_at_csv(request.data);
  const auto open = [&](data::TokenKind kind) {
    return open_fields(request.data, {text_field("source", look.columns[0].name, kind),
                                      text_field("target", look.columns[1].name, kind)});
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
  const int64_t epochs = epochs_for(look.rows * 9 / 10, 900000, 8);
  // Texts that are seen that often are learned by heart without these.
  const bool is_seen_often = epochs > 20 && !request.small;
  const auto tokens = [&](size_t field) {
    return str(std::min(dataset->fields()[field].class_count, kVocabulary + 1));
  };
  RecipeResult out;
  out.found = {str(look.rows, " pairs, '", look.columns[0].name, "' to '", look.columns[1].name,
                   "', read as ", by_character ? "characters" : "words", ", up to ", longest,
                   " of them")};
  out.config = fill_template(request, {{"tokens", by_character ? "characters" : "words"},
                                       {"epochs", str(epochs)},
                                       {"width", str(size.width)},
                                       {"layers", str(size.layers)},
                                       {"rate", size.rate},
                                       {"dropout", is_seen_often ? "0.1" : "0.0"},
                                       {"source", yaml_text(look.columns[0].name)},
                                       {"target", yaml_text(look.columns[1].name)},
                                       {"source_tokens", tokens(0)},
                                       {"target_tokens", tokens(1)},
                                       {"vocabulary", str(kVocabulary)},
                                       {"longest", str(longest)},
                                       {"smoothing", is_seen_often ? ", label_smoothing=0.1" : ""},
                                       // Padded lengths are rounded up, and a 0 begins a text.
                                       {"positions", str((longest + 15) / 16 * 16 + 32)}});
  return out;
}

RecipeResult speech_commands(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  size_t sound = look.columns.size();
  for (size_t c = 0; c < look.columns.size() && sound == look.columns.size(); ++c) {
    const auto cells = cells_of(request.data, c);
    if (!cells.empty() && (cells[0].ends_with(".wav") || cells[0].ends_with(".flac"))) sound = c;
  }
  if (sound == look.columns.size())
    fail(ErrorCode::kData, request.data, ": found no column with names of WAV or FLAC files");
  const Column* label = nullptr;
  for (const Column& each : look.columns)
    if (&each != &look.columns[sound] && each.values.size() >= 2 &&
        each.values.size() <= kMostValues && !each.has_missing &&
        (!label || each.values.size() < label->values.size()))
      label = &each;
  if (!label)
    fail(ErrorCode::kData, request.data, ": found no column of classes beside the sounds");
  int64_t rate = 0, longest = 0, looked = 0;
  const std::string folder = std::filesystem::path(request.data).parent_path().string();
  for (const std::string& cell : cells_of(request.data, sound)) {
    if (looked++ == 200) break;
    const std::string path = cell.starts_with('/') ? cell : join_path(folder, cell);
    const auto file = MappedFile::open(path);
    const formats::Sound read = formats::decode_sound(file->bytes(), path);
    if (rate != 0 && read.rate != rate)
      fail(ErrorCode::kData, path, ": has ", read.rate, " samples a second, others have ", rate,
           "; convert all to one rate");
    rate = read.rate;
    longest = std::max(longest, static_cast<int64_t>(read.samples.size()));
  }
  const auto classes = static_cast<int64_t>(label->values.size());
  RecipeResult out;
  out.found = {str(look.rows, " sounds of ", rate, " Hz in '", look.columns[sound].name,
                   "', up to ", longest / std::max<int64_t>(1, rate), " seconds; ", classes,
                   " classes in '", label->name, "'")};
  out.config = fill_template(request, {{"count", str(classes)},
                                       {"epochs", str(epochs_for(look.rows * 4 / 5, 25000, 10))},
                                       {"strides", request.small ? "[1, 1, 1]" : "[2, 2, 1]"},
                                       {"sound", yaml_text(look.columns[sound].name)},
                                       {"label", yaml_text(label->name)},
                                       {"rate", str(rate)},
                                       {"longest", str(std::max<int64_t>(longest, rate / 10))},
                                       {"window", str(rate / 40)},  // 25 and 10 milliseconds
                                       {"hop", str(rate / 100)}});
  return out;
}

RecipeResult recommender(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  size_t label = look.columns.size() - 1;
  for (size_t c = 0; c < look.columns.size(); ++c)
    if (has_name(look.columns[c], {"label", "click", "clicked", "rating"})) label = c;
  if (!look.columns[label].is_number)
    fail(ErrorCode::kData, request.data, ": the column '", look.columns[label].name,
         "' is to be predicted, but holds texts");
  std::vector<std::string> items, numbers;
  for (size_t c = 0; c < look.columns.size(); ++c) {
    if (c == label) continue;
    const Column& each = look.columns[c];
    // Numbers with a fraction are amounts; whole ones with many values are names of users or items.
    const bool is_amount =
        each.is_number && std::any_of(each.values.begin(), each.values.end(), [](const auto& v) {
          return v.find('.') != std::string::npos;
        });
    (is_amount ? numbers : items).push_back(yaml_text(each.name));
  }
  if (items.empty())
    fail(ErrorCode::kData, request.data,
         ": found no columns of categories, such as users and items");
  const auto& values = look.columns[label].values;
  const bool is_click = values.size() == 2 && values.contains("0") && values.contains("1");
  RecipeResult out;
  out.found = {str(look.rows, " rows; ", is_click ? "clicks" : "ratings", " in '",
                   look.columns[label].name, "', ", items.size(), " columns of categories, ",
                   numbers.size(), " of numbers")};
  Values v;
  v["categories"] = str(items.size());
  v["item_columns"] = join(items, ", ");
  v["label"] = yaml_text(look.columns[label].name);
  v["delimiter"] = delimiter_of(request.data);
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
  out.config = fill_template(request, v);
  return out;
}

RecipeResult time_series(const RecipeRequest& request) {
  const CsvLook look = look_at_csv(request.data);
  std::vector<std::string> numbers;
  for (const Column& each : look.columns)
    if (each.is_number && !each.has_missing) numbers.push_back(each.name);
  if (numbers.empty())
    fail(ErrorCode::kData, request.data, ": found no column of numbers without gaps");
  const std::string target = numbers.back();
  std::vector<std::string> others;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) others.push_back(yaml_text(numbers[i]));
  // A validation part of a fifth holds some windows.
  const int64_t horizon = std::clamp<int64_t>(look.rows / 60, 1, 24);
  const int64_t history = std::clamp<int64_t>(look.rows / 12, 2, 96);
  RecipeResult out;
  out.found = {str(look.rows, " rows; '", target, "' is forecast ", horizon, " rows ahead from ",
                   history, others.empty() ? "" : str(", with ", others.size(), " other columns"))};
  out.config = fill_template(request, {{"target", yaml_text(target)},
                                       {"covariates", join(others, ", ")},
                                       {"columns", str(others.size() + 1)},
                                       {"history", str(history)},
                                       {"horizon", str(horizon)}});
  return out;
}

}  // namespace paddle::recipes
