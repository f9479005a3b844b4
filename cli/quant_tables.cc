#include "quant_tables.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "common.h"
#include "common_observer.h"
#include "program/folders.h"
#include "program/saved_model.h"
#include "sections/sections.h"
#include "train/job/trainer.h"
#include "train/records/metrics_log.h"
#include "train/runs/evaluated_model.h"
#include "train/tables/publish.h"

namespace paddle::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The loss and the metrics of the run for a model folder.
ordered_json evaluated(const std::string& folder, const std::string& data) {
  train::EvaluatedModel subject = train::open_evaluated_folder(folder, {});
  const std::string wanted = !data.empty() ? data : subject.config.data.valid ? "valid" : "train";
  train::choose_evaluation_data(subject.config, wanted, "--data");
  train::settle_for_evaluation(subject.config);
  WarningObserver observer;
  train::Trainer trainer(std::move(subject.config), subject.options, observer);
  trainer.prepare().require_fit();
  const auto line = trainer.evaluate();
  if (!line) fail(ErrorCode::kUsage, "the evaluation was interrupted");
  ordered_json out = {{"samples", line->samples}};
  out["loss"] = train::number_or_null<ordered_json>(line->loss);
  for (const auto& [name, value] : line->metrics)
    out[name] = train::number_or_null<ordered_json>(value);
  return out;
}

}  // namespace

QuantTables::QuantTables(App& app)
    : tables_(app.add_subcommand("tables", "a model whose tables have rows in fewer bits")) {
  tables_->add_option("MODEL", model_, "a run, a checkpoint or a saved model with tables")
      ->required();
  tables_->add_option("-o,--output", output_, "the new folder")->required();
  tables_
      ->add_option("--dtype", dtype_,
                   "type of the rows: int8 (default) with one scale a row, float16 or bfloat16")
      ->check(one_dtype_of({"int8", "float16", "bfloat16"}));
  tables_->add_option("--data", data_,
                      "what the metrics are computed on, as in paddle eval (default: the "
                      "validation data of the run, else its training data)");
  tables_->add_flag("--no-check", no_check_, "do not compute the metrics");
  tables_->add_flag("--overwrite", overwrite_, "replace an existing folder");
  tables_->add_flag("--json", json_, "print one JSON object");
}

int QuantTables::run() const {
  if (!overwrite_ && (is_directory(output_) || file_exists(output_)))
    fail(ErrorCode::kUsage, output_, ": already exists (--overwrite replaces it)");
  const std::string source = program::find_model_folder(model_);
  const fs::path staged = output_ + ".unfinished";
  std::error_code error;
  fs::remove_all(staged, error);
  const std::string folder = (staged / "model").string();
  const train::ServedBytes bytes = train::write_served_model(source, folder, *parse_dtype(dtype_));
  if (bytes.before == 0) {
    fs::remove_all(staged, error);
    fail(ErrorCode::kUsage, model_, ": has no rows of tables (sparse_embedding)");
  }
  ordered_json report = {{"model", model_},
                         {"dtype", dtype_},
                         {"bytes", {{"before", bytes.before}, {"after", bytes.after}}}};
  if (!no_check_) {
    report["before"] = evaluated(source, data_);
    report["after"] = evaluated(folder, data_);
  }
  write_file_atomically((staged / "report.json").string(), report.dump(2) + "\n");
  program::put_in_place(staged, output_);
  if (json_) {
    print(report.dump() + "\n");
    return 0;
  }
  print_line(str(output_, "/model: rows of ", dtype_, ", ", human_bytes(bytes.before), " become ",
                 human_bytes(bytes.after)));
  if (no_check_) return 0;
  for (const auto& [name, before] : report["before"].items())
    print_line(str(name, ": ", before.dump(), " before, ", report["after"][name].dump(), " after"));
  return 0;
}

}  // namespace paddle::cli
