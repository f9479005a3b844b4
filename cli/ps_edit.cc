#include "ps_edit.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "common.h"
#include "common_observer.h"
#include "common_table.h"
#include "ps_tables.h"
#include "tables/record_table.h"
#include "train/config/run_config.h"
#include "train/job/trainer.h"
#include "train/tables/stored_edits.h"
#include "train/tables/table_import.h"

namespace paddle::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using train::StoredTable;

/// The formats of the tables that a config, or a folder with tables, has.
std::vector<tables::TableFormat> formats_of(const std::string& model) {
  std::vector<tables::TableFormat> out;
  if (is_directory(model)) {
    for (const StoredTable& table : stored_tables(model, "")) out.push_back(table.format);
    return out;
  }
  train::TrainOptions options;
  options.dry_run = true;
  WarningObserver observer;
  train::Trainer trainer(train::read_config(model, {}), options, observer);
  trainer.prepare();
  out = trainer.table_formats();
  if (out.empty()) fail(ErrorCode::kConfig, model, ": the model has no tables (sparse_embedding)");
  return out;
}

/// The state of a key at a save: of a row also the norm of its weights.
ordered_json state_json(const StoredTable& table, uint64_t key) {
  ordered_json found = found_json(table, key, false);
  if (found["found"] != "row") return found;
  double squares = 0;
  for (const ordered_json& value : found["weight"]) {
    const auto number = value.get<double>();
    squares += number * number;
  }
  ordered_json out = {{"found", "row"}, {"norm", std::sqrt(squares)}};
  out.update(found);
  return out;
}

/// The end of `shrink` and `merge`: the copy, and what is said of its tables.
int write_copy(const std::string& folder, const std::string& output,
               const std::vector<StoredTable>& tables, const ordered_json& report,
               const std::vector<std::string>& lines, bool json) {
  train::write_with_tables(folder, output, tables);
  if (json)
    print(report.dump() + "\n");
  else
    for (const std::string& line : lines) print_line(line);
  return 0;
}

/// The checkpoints of a run by step, or the one that is given.
std::vector<std::string> checkpoints_of(const std::string& model) {
  const fs::path folder = fs::path(model) / "checkpoints";
  if (!is_directory(folder.string())) return {train::table_source(model)};
  std::vector<std::string> out;
  for (const int64_t step : program::list_checkpoints(folder.string()))
    out.push_back((folder / std::to_string(step)).string());
  if (out.empty()) return {train::table_source(model)};
  return out;
}

}  // namespace

PsEdits::PsEdits(App& app)
    : plan_(app.add_subcommand("plan", "memory and disk that the tables of a config need")),
      shrink_(app.add_subcommand("shrink", "a copy of a checkpoint without some rows")),
      merge_(app.add_subcommand("merge", "a copy of a checkpoint with whole tables, no deltas")),
      import_(app.add_subcommand("import", "a table from text files")),
      history_(app.add_subcommand("history", "a row at each save of a run")) {
  plan_->add_option("MODEL", model_, "a config, or the folder of a run, checkpoint or saved model")
      ->required();
  plan_->add_option("--rows", rows_, "rows of each table (default: 1000000)")->check(kPositive);
  plan_->add_option("--ranks", ranks_, "ranks that share the tables (default: 1)")
      ->check(in_range(1, 1 << 20));
  for (App* command : {shrink_, merge_, history_})
    command
        ->add_option("MODEL", model_, "the folder of a run (its newest checkpoint) or a checkpoint")
        ->required();
  shrink_->add_option("--table", table_, "name of the table (default: all)");
  shrink_->add_option("--score-below", score_below_,
                      "remove rows whose score, decayed to the next day, is lower");
  shrink_->add_option("--unseen-days", unseen_days_, "remove rows without a use in as many days")
      ->check(kPositive);
  shrink_->add_option("--max-rows", max_rows_, "keep about as many rows: those of highest score")
      ->check(kPositive);
  shrink_->add_option("--show-weight", show_weight_, "weight of shows in the score (default: 0.1)");
  shrink_->add_option("--click-weight", click_weight_, "weight of clicks (default: 1)");
  shrink_->add_option("--decay", decay_, "factor of shows and clicks a day (default: 1)")
      ->check(in_range(0.0, 1.0));
  import_->add_option("FILE", files_, "text files with the rows of one table")->required();
  import_->add_option("--table", table_, "name of the table")->required();
  import_->add_option("--key-type", key_type_, "type of the keys (default: int64)")
      ->check(one_of({"int64", "uint64"}));
  import_
      ->add_option("--format", format_,
                   "csv: as paddle ps dump writes it; paddle: PaddlePaddle's text tables; tensors: "
                   "a matrix of a file of weights, such as that of torch's EmbeddingBag (default: "
                   "csv)")
      ->check(one_of({"csv", "paddle", "tensors"}));
  import_->add_option("--tensor", tensor_,
                      "of tensors: the name of the matrix (default: the only one)");
  import_->add_option(
      "--keys", keys_file_,
      "of tensors: a text file with the key of each row (default: the tensor keys)");
  history_->add_option("--table", table_, "name of the table (default: the only one)");
  history_->add_option("--key", key_, "the key of the row")->required();
  for (App* command : {shrink_, merge_, import_})
    command->add_option("-o,--output", output_, "the new folder")->required();
  for (App* command : {plan_, shrink_, merge_, import_, history_})
    command->add_flag("--json", json_, "print one JSON object");
}

bool PsEdits::parsed() const {
  const App* const all[] = {plan_, shrink_, merge_, import_, history_};
  return std::any_of(std::begin(all), std::end(all),
                     [](const App* each) { return each->parsed(); });
}

int PsEdits::run() {
  if (plan_->parsed()) return plan();
  if (shrink_->parsed()) return shrink();
  if (merge_->parsed()) return merge();
  if (import_->parsed()) return import();
  return history();
}

int PsEdits::plan() const {
  ordered_json out = {{"rows", rows_}, {"ranks", ranks_}, {"tables", ordered_json::array()}};
  Table lines({"table", "row", "states", "bytes a row", "in files", "memory of a rank", "files"});
  double memory = 0, disk = 0;
  for (const tables::TableFormat& format : formats_of(model_)) {
    // A record with the mark of its last change, and its share of the index: two buckets of four
    // bytes for three rows.
    const size_t columns = format.statistics.size() * sizeof(float);
    const tables::RecordTable records(format.dtype, format.width,
                                      static_cast<int64_t>(format.states.size()),
                                      columns + sizeof(uint32_t));
    const double of_row = static_cast<double>(records.record_bytes()) + 8.0 / 3;
    const double in_file = static_cast<double>(sizeof(uint64_t) + columns +
                                               records.row_bytes() * (1 + format.states.size()));
    // A page is at most a sixteenth of its shard, and half of the last one is free.
    constexpr double kFree = 1 + 1.0 / 32;
    const double of_rank =
        of_row * kFree * static_cast<double>(rows_) / static_cast<double>(ranks_);
    const double files = in_file * static_cast<double>(rows_);
    memory += of_rank;
    disk += files;
    out["tables"].push_back({{"name", format.name},
                             {"dtype", text(format.dtype)},
                             {"width", format.width},
                             {"states", format.states},
                             {"statistics", format.statistics},
                             {"row_bytes", of_row},
                             {"file_row_bytes", in_file},
                             {"memory_of_rank", std::llround(of_rank)},
                             {"file_bytes", std::llround(files)}});
    lines.add_row({format.name, str(text(format.dtype), "[", format.width, "]"),
                   join(format.states, ", "), str(std::llround(of_row)), str(std::llround(in_file)),
                   human_bytes(static_cast<uint64_t>(of_rank)),
                   human_bytes(static_cast<uint64_t>(files))});
  }
  out["memory_of_rank"] = std::llround(memory);
  out["file_bytes"] = std::llround(disk);
  if (json_) {
    print(out.dump() + "\n");
    return 0;
  }
  print(lines.text());
  print_line(str(rows_, " rows of each table on ", ranks_, ranks_ == 1 ? " rank" : " ranks", ": ",
                 human_bytes(static_cast<uint64_t>(memory)), " of memory a rank, ",
                 human_bytes(static_cast<uint64_t>(disk)), " a checkpoint"));
  return 0;
}

int PsEdits::shrink() const {
  tables::RowPolicy policy;
  if (shrink_->count("--score-below") > 0) policy.score_below = score_below_;
  policy.unseen_days = unseen_days_;
  policy.max_rows = max_rows_;
  policy.show_weight = show_weight_;
  policy.click_weight = click_weight_;
  policy.decay = static_cast<float>(decay_);
  if (!policy.removes())
    fail(ErrorCode::kUsage,
         "nothing says which rows are removed; expected --score-below, "
         "--unseen-days or --max-rows");
  if (decay_ == 0) fail(ErrorCode::kUsage, "--decay: expected a factor above 0");
  const std::string folder = train::table_source(model_);
  const int64_t day = train::table_day_of(folder);
  std::vector<StoredTable> all = stored_tables(model_, "");
  if (!table_.empty()) stored_tables(model_, table_);  // rejects other names
  ordered_json out = {{"model", folder}, {"output", output_}, {"tables", ordered_json::array()}};
  std::vector<std::string> lines;
  for (StoredTable& table : all) {
    if (!table_.empty() && table.format.name != table_) continue;
    // The last day that is over.
    const int64_t removed = train::shrink_rows(table, policy, std::max<int64_t>(0, day - 1));
    out["tables"].push_back(
        {{"name", table.format.name}, {"removed", removed}, {"rows", table.count()}});
    lines.push_back(str("table ", table.format.name, ": removed ", removed, " rows, ",
                        table.count(), " rows are left"));
  }
  return write_copy(folder, output_, all, out, lines, json_);
}

int PsEdits::merge() const {
  const std::string folder = train::table_source(model_);
  const std::vector<StoredTable> all = stored_tables(model_, "");
  ordered_json out = {{"model", folder}, {"output", output_}, {"tables", ordered_json::array()}};
  std::vector<std::string> lines;
  for (const StoredTable& table : all) {
    size_t deltas = 0;
    if (is_directory(table.place)) deltas = tables::read_chain(table.place).delta_steps.size();
    out["tables"].push_back(
        {{"name", table.format.name}, {"deltas", deltas}, {"rows", table.count()}});
    lines.push_back(
        str("table ", table.format.name, ": ", table.count(), " rows from one base",
            deltas > 0 ? str(" and ", deltas, deltas == 1 ? " delta" : " deltas") : ""));
  }
  return write_copy(folder, output_, all, out, lines, json_);
}

int PsEdits::import() const {
  train::TableImport wanted;
  wanted.table = table_;
  wanted.key = *parse_dtype(key_type_);
  wanted.text = format_ == "csv"      ? train::TableText::kCsv
                : format_ == "paddle" ? train::TableText::kPaddle
                                      : train::TableText::kTensors;
  wanted.tensor = tensor_;
  wanted.keys_file = keys_file_;
  if (wanted.text != train::TableText::kTensors && !(tensor_.empty() && keys_file_.empty()))
    fail(ErrorCode::kUsage, "--tensor and --keys are for --format tensors");
  const StoredTable table = train::import_table(files_, wanted);
  train::write_table(output_, table);
  if (json_)
    print(ordered_json({{"output", output_},
                        {"table", table_},
                        {"rows", table.count()},
                        {"width", table.format.width},
                        {"states", table.format.states},
                        {"statistics", table.format.statistics}})
              .dump() +
          "\n");
  else
    print_line(str("wrote ", table.count(), " rows of ", table.format.width, " weights to ",
                   output_, "; init: {weights: ", output_,
                   "/model.safetensors} trains on with them"));
  return 0;
}

int PsEdits::history() const {
  ordered_json out = {{"model", model_}, {"key", key_}, {"saves", ordered_json::array()}};
  ordered_json last;
  const auto add = [&](int64_t step, const ordered_json& state) {
    if (state == last) return;
    ordered_json event = {{"step", step}};
    event.update(state);
    if (!json_) {
      std::string line = str("step ", step, ": ", state["found"].get<std::string>());
      for (const auto& [name, value] : state.items())
        if (name != "found" && name != "weight") line += str(", ", name, " ", value.dump());
      print_line(line);
    }
    out["saves"].push_back(std::move(event));
    last = state;
  };
  int64_t last_step = -1;
  for (const std::string& checkpoint : checkpoints_of(model_)) {
    const StoredTable table = one_stored_table(checkpoint, table_);
    const uint64_t key = train::parse_key(table, key_);
    if (is_directory(table.place)) {
      // Saves whose checkpoints have been removed.
      const tables::SavedChain chain = tables::read_chain(table.place);
      std::vector<int64_t> steps = {chain.base_step};
      steps.insert(steps.end(), chain.delta_steps.begin(), chain.delta_steps.end());
      const int shard = tables::shard_of(key);
      for (size_t deltas = 0; deltas + 1 < steps.size(); ++deltas)
        if (steps[deltas] > last_step) {
          StoredTable then;
          then.format = table.format;
          then.parts =
              tables::read_segments(table.place, table.format, {shard, shard + 1}, false, deltas);
          add(steps[deltas], state_json(then, key));
        }
    }
    last_step = train::step_of_checkpoint(checkpoint);
    add(last_step, state_json(table, key));
  }
  if (json_) print(out.dump() + "\n");
  return 0;
}

}  // namespace paddle::cli
