// CSV files with texts and their classes: words are embedded, a convolution sees three at a time,
// and a linear layer classifies their mean and maximum.

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "data/tokens.h"
#include "data/vocabulary.h"
#include "recipes/csv_profile.h"
#include "recipes/recipes.h"

namespace paddle::recipes {
namespace {

/// Word statistics of the texts of a column.
struct TextProfile {
  int64_t words = 0;      ///< different ones that occur at least twice
  int64_t median = 0;     ///< words in a text
  int64_t long_text = 0;  ///< 99 of 100 texts are at most so long
};

TextProfile profile_text(const CsvProfile& profile, const Column& column) {
  std::unordered_map<std::string, int64_t> counts;
  std::vector<int64_t> lengths;
  for (const std::string& cell : cells_of(profile, column)) {
    if (data::invalid_utf8(cell)) continue;
    const std::string text = data::lowercase(cell);
    const auto words = data::split_tokens(text, data::TokenKind::kWords, 1 << 16);
    lengths.push_back(static_cast<int64_t>(words.size()));
    for (const std::string_view word : words) ++counts[std::string(word)];
  }
  TextProfile out;
  for (const auto& [word, count] : counts) out.words += count >= 2;
  std::sort(lengths.begin(), lengths.end());
  if (lengths.empty()) return out;
  out.median = lengths[lengths.size() / 2];
  out.long_text = lengths[lengths.size() * 99 / 100];
  return out;
}

}  // namespace

RecipeResult text_classification(const RecipeRequest& request) {
  const CsvProfile profile = inspect_csv(request);
  const auto is_class = [&](const Column& column) {
    return column.values.size() >= 2 && column.values.size() <= kMaxValues && !column.has_missing;
  };
  // The longest cells are the text; the class is the column with the fewest values besides it.
  const auto text =
      std::max_element(profile.columns.begin(), profile.columns.end(),
                       [](const Column& a, const Column& b) { return a.bytes < b.bytes; });
  const Column* label = request.target.empty()
                            ? nullptr
                            : &profile.columns[profile.column(request.target, "--target")];
  for (const Column& each : profile.columns)
    if (request.target.empty() && &each != &*text && is_class(each) &&
        (!label || each.values.size() < label->values.size()))
      label = &each;
  if (text->is_number)
    fail(ErrorCode::kData, request.data, ": found no column with text among ",
         profile.columns.size(), " columns of numbers");
  if (!label)
    fail(ErrorCode::kData, request.data, ": found no label column besides the text in '",
         text->name, "': one without empty cells and with 2 to ", kMaxValues, " different values");

  const TextProfile words = profile_text(profile, *text);
  const int64_t vocabulary = std::clamp<int64_t>(words.words, 100, 30000);
  const int64_t longest = std::clamp<int64_t>((words.long_text + 31) / 32 * 32, 32, 512);
  const auto classes = static_cast<int64_t>(label->values.size());
  const int64_t batch = std::clamp<int64_t>(profile.rows / 50, 8, 64);
  RecipeResult out;
  out.found = {str(profile.rows, " rows; the text is in '", text->name,
                   "', half of the texts have ", words.median, " words or fewer"),
               str("the class is in '", label->name, "' with ", classes, " different values")};
  out.found.insert(out.found.end(), profile.notes.begin(), profile.notes.end());
  const std::string name = run_name(request);
  const std::string fields = str(
      "      - name: text                     # words of the training rows; others share id 0\n"
      "        columns: [",
      yaml_text(text->name), "]\n        kind: text\n        max_length: ", longest,
      "          # longer texts are cut\n        vocabulary_size: ", vocabulary,
      "\n        min_count: ", profile.rows > 1000 ? 2 : 1, "\n      - {name: label, columns: [",
      yaml_text(label->name), "], kind: categorical, scalar: true}\n");
  const auto part = [&](const char* which) {
    return str("  ", which, ":\n    kind: csv\n    path: ", data_path(request),
               profile.block_keys(), "\n    split: {train: 0.8, valid: 0.2}\n    part: ", which,
               "\n    fields:\n", fields);
  };
  out.config = str(
      "# Classification of the texts in '", text->name, "' by '", label->name,
      "'.\n#   paddle-train ", std::filesystem::path(request.output).filename().string(),
      "        trains, paddle-eval runs/", name, " repeats the last numbers\nname: ", name,
      R"(

params: {width: )",
      request.small ? 16 : 64, R"(}
model:
  params: {width: 64, vocab_size: )",
      vocabulary + 1, ", dropout: 0.3}\n", R"(  inputs:
    text: "int64[batch, length]"             # padded with 0 to the longest text of a batch
    text_mask: "bool[batch, length]"         # true where there is a word
  model: |
    mask = unsqueeze(cast(text_mask, "float32"), 2)
    x = embedding(text, vocab_size, width, weight_init=normal(0, 0.1)) * mask
    x = dropout(x, dropout)
    mean = x.sum(1) / maximum(mask.sum(1), 1)
    y = relu(conv1d(transpose(x, [0, 2, 1]), width, 3, padding=1)) * transpose(mask, [0, 2, 1])
    h = dropout(concat([mean, y.max(2)], 1), dropout)
    logits = linear(h, )",
      classes, R"()
  outputs: [logits]

loss: cross_entropy(logits, label)
metrics:
  accuracy: accuracy(logits, label)
)",
      classes > 2 ? "  macro_f1: f1(logits, label, average=\"macro\")\n" : "", R"(
optimizer: {name: adamw, lr: 3e-3, weight_decay: 0.01}
schedule: {name: cosine, end_factor: 0.01}

data:
  batch_size: )",
      batch,
      "\n  # Batches of texts of similar lengths. Four fifths train, the rest validates; the split "
      "is the\n  # same in every run.\n",
      part("train"), part("valid"), "\ntrain:\n  epochs: ", request.small ? 3 : 10,
      "\n  log_every: 20\n  evaluate_every: 1 epochs\n  best: accuracy\n");
  return out;
}

}  // namespace paddle::recipes
