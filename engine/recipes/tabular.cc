// CSV files: numbers are standardized, categories are embedded, a small network predicts the last
// column.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "data/vocabulary.h"
#include "recipes/csv_profile.h"
#include "recipes/recipes.h"

namespace paddle::recipes {
namespace {

std::string columns_text(const std::vector<const Column*>& columns) {
  std::string out;
  for (const Column* each : columns) out += (out.empty() ? "" : ", ") + yaml_text(each->name);
  return "[" + out + "]";
}

}  // namespace

namespace {

/// The class with the fewest rows and its share of them.
std::pair<std::string, double> rarest(const Column& target, int64_t rows) {
  const auto least =
      std::min_element(target.values.begin(), target.values.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return {least->first,
          static_cast<double>(least->second) / static_cast<double>(std::max<int64_t>(rows, 1))};
}

}  // namespace

RecipeResult tabular(const RecipeRequest& request, bool classification) {
  const CsvProfile profile = inspect_csv(request);
  const std::vector<Column>& columns = profile.columns;
  const size_t at =
      request.target.empty() ? columns.size() - 1 : profile.column(request.target, "--target");
  const Column& target = columns[at];
  const std::string place = str(request.data, ": the ", request.target.empty() ? "last " : "",
                                "column, '", target.name, "',");
  const std::string other = request.target.empty() ? "; --target names another column" : "";
  if (target.has_missing) fail(ErrorCode::kData, place, " has empty cells", other);
  if (classification && (target.values.size() < 2 || target.values.size() > kMaxValues))
    fail(ErrorCode::kData, place, " has ",
         target.values.size() > kMaxValues ? "over 1000" : "fewer than two",
         " different values; it should be the class (tabular-regression predicts numbers)", other);
  if (!classification && !target.is_number)
    fail(ErrorCode::kData, place, " is not a number (tabular-classification predicts classes)",
         other);
  std::vector<const Column*> numbers, categories;
  std::vector<std::string> times;
  bool missing = false;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c == at) continue;
    if (is_time(columns[c]) && !columns[c].is_number) {
      times.push_back("'" + columns[c].name + "'");
      continue;
    }
    (columns[c].is_number ? numbers : categories).push_back(&columns[c]);
    missing = missing || (columns[c].is_number && columns[c].has_missing);
  }
  if (numbers.empty() && categories.empty())
    fail(ErrorCode::kData, request.data, ": found no column besides '", target.name,
         "' but timestamps, which are not used as inputs");
  const int64_t rows = profile.rows;
  const int64_t batch = std::clamp<int64_t>(rows / 50, 8, 256);
  const int64_t buckets = 100;
  // A wide network learns few rows by heart; a linear part does most of the work there.
  const bool few = rows < 10000, very_few = rows < 2000;

  std::string inputs, parts, fields;
  if (!numbers.empty()) {
    inputs += str(inputs.empty() ? "" : ", ", "numbers: \"float32[batch, ", numbers.size(), "]\"");
    parts += "numbers";
    fields +=
        str("      - name: numbers                  # standardized with the training rows\n"
            "        columns: ",
            columns_text(numbers), "\n        scaling: standard\n",
            missing ? "        missing: nan             # 0 below, which is the mean\n" : "");
  }
  if (!categories.empty()) {
    inputs +=
        str(inputs.empty() ? "" : ", ", "categories: \"int64[batch, ", categories.size(), "]\"");
    parts += parts.empty() ? "e" : ", e";
    fields += str("      - name: categories               # hashed into ", buckets,
                  " rows a column\n        columns: ", columns_text(categories),
                  "\n        kind: categorical\n        buckets: ", buckets,
                  "\n        per_column: true\n");
  }
  fields += classification ? str("      - {name: label, columns: [", yaml_text(target.name),
                                 "], kind: categorical, scalar: true}\n")
                           : str("      - {name: label, columns: [", yaml_text(target.name),
                                 "], scalar: true, scaling: standard}\n");
  const int64_t outputs = classification ? static_cast<int64_t>(target.values.size()) : 1;

  // A class of few rows makes the accuracy of always the other one high.
  constexpr double kRare = 0.1;
  const auto [rare, share] = rarest(target, rows);
  const bool is_uneven =
      classification &&
      (outputs == 2 ? share < kRare : share * static_cast<double>(outputs) < kRare);
  const std::string best = !classification ? "rmse"
                           : !is_uneven    ? "accuracy"
                           : outputs == 2  ? "auc"
                                           : "macro_f1";
  const char* const hint =
      request.target.empty() ? " (the last column; --target names another)" : "";
  RecipeResult out;
  out.found = {str(rows, " rows; ", numbers.size(), " columns of numbers, ", categories.size(),
                   " of categories"),
               classification ? str("'", target.name, "' has ", outputs, " classes", hint)
                              : str("'", target.name, "' is the number to predict", hint)};
  if (!times.empty())
    out.found.push_back(join(times, ", ") + (times.size() == 1 ? " holds" : " hold") +
                        " times; left out");
  if (is_uneven)
    out.found.push_back(str("only ", format_double(std::round(share * 1000) / 10),
                            "% of the rows are '", data::printable(rare.substr(0, 40)),
                            "': the best model ", "is that of the highest ", best,
                            ", not of the highest accuracy"));
  out.found.insert(out.found.end(), profile.notes.begin(), profile.notes.end());
  const std::string name = run_name(request);
  out.config = str("# ", classification ? "Classification" : "Regression", " of '", target.name,
                   "' from the other columns of a CSV file.\n#   paddle-train ",
                   std::filesystem::path(request.output).filename().string(),
                   "        trains, paddle-eval runs/", name,
                   " repeats the last numbers\nname: ", name, "\n\nmodel:\n  params: {width: ",
                   request.small ? "16, layers: 1"
                   : few         ? "64, layers: 1"
                                 : "256, layers: 2",
                   ", dropout: ",
                   !few             ? "0.05"
                   : classification ? "0.5"
                                    : "0.1",
                   "}\n  inputs: {", inputs, "}\n  model: |\n");
  if (!numbers.empty() && missing)
    out.config += "    numbers = where(isnan(numbers), 0.0, numbers)\n";
  if (!numbers.empty())
    out.config +=
        "    numbers = asinh(2 * numbers)       # far from the mean, the logarithm counts\n";
  if (!categories.empty())
    out.config +=
        str("    e = embedding(categories, ", buckets * static_cast<int64_t>(categories.size()),
            ", 8, weight_init=normal(0, 0.1))\n    e = reshape(e, [batch, ", 8 * categories.size(),
            "])\n");
  const std::string joined = str("concat([", parts, "], 1)");
  out.config += str("    x = ", few && classification ? str("dropout(", joined, ", 0.2)") : joined,
                    "\n    h = x\n    for i in range(layers):\n"
                    "      h = dropout(relu(linear(h, width)), dropout)\n");
  out.config +=
      classification
          ? str("    logits = linear(x, ", outputs, ") + linear(h, ", outputs,
                ")\n  outputs: [logits]\n\nloss: cross_entropy(logits, label)\n"
                "metrics:\n  accuracy: accuracy(logits, label)\n",
                outputs == 2 ? "  auc: auc(logits[:, 1] - logits[:, 0], label)\n"
                : is_uneven  ? "  macro_f1: f1(logits, label, average=\"macro\")\n"
                             : "")
          : std::string(
                "    value = squeeze(linear(x, 1) + linear(h, 1), 1)\n  outputs: [value]\n\n"
                "loss: mse_loss(value, label)\n"
                "metrics:                              # in the units of the file\n"
                "  mae: mae(value, label)\n  rmse: rmse(value, label)\n");
  const auto part = [&](const char* which) {
    return str("  ", which, ":\n    kind: csv\n    path: ", data_path(request),
               profile.block_keys(), "\n    split: {train: 0.8, valid: 0.2}\n    part: ", which,
               is_uneven ? "\n    split_stratify: label        # every class in its share" : "",
               "\n    fields:\n", fields);
  };
  out.config += str("\noptimizer: {name: adamw, lr: ",
                    very_few ? "1e-3"
                    : few    ? "2e-3"
                             : "3e-3",
                    ", weight_decay: ", few ? "0.1}" : "0.01}",
                    "\nschedule: {name: cosine, end_factor: 0.01}\n\n"
                    "data:\n  batch_size: ",
                    batch,
                    "\n  # Four fifths train, the rest validates; the split is the same in every "
                    "run.\n",
                    part("train"), part("valid"), "\ntrain:\n  epochs: ",
                    request.small ? 5
                    : very_few    ? 15
                    : few         ? 40
                                  : 30,
                    "\n  log_every: 20\n  evaluate_every: 1 epochs\n  best: ", best, "\n");
  return out;
}

}  // namespace paddle::recipes
