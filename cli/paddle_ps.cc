// paddle-ps: the tables of a run, a checkpoint or a saved model: rows, statistics, sizes, whether
// their files are whole, and changed copies (ps_edit.h); versions for serving
// (ps_publish.h); and a server of tables (ps_serve.h).

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_table.h"
#include "ps_edit.h"
#include "ps_publish.h"
#include "ps_serve.h"
#include "ps_tables.h"
#include "tables/row_policy.h"
#include "tables/shards.h"
#include "train/tables/stored_tables.h"
#include "train/tables/table_import.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;
using tables::TableContent;
using train::StoredTable;

struct PsArguments {
  std::string model, table, output;
  std::vector<std::string> keys;
  bool json = false, states = false, overwrite = false;
};

ordered_json key_json(const StoredTable& table, uint64_t key) {
  return table.is_signed() ? ordered_json(static_cast<int64_t>(key)) : ordered_json(key);
}

int count(const PsArguments& a) {
  const std::vector<StoredTable> all = cli::stored_tables(a.model, a.table);
  ordered_json out = {{"model", train::table_source(a.model)}, {"tables", ordered_json::array()}};
  cli::Table rows({"table", "rows", "waiting", "row", "states", "bytes", "rows in a shard"});
  for (const StoredTable& table : all) {
    std::vector<int64_t> shards(tables::kShards);
    for (const TableContent& part : table.parts)
      for (int64_t i = 0; i < part.keys.size(); ++i)
        ++shards[static_cast<size_t>(
            tables::shard_of(static_cast<const uint64_t*>(part.keys.raw())[i]))];
    const auto [fewest, most] = std::minmax_element(shards.begin(), shards.end());
    const std::string row = str(text(table.format.dtype), "[", table.format.width, "]");
    out["tables"].push_back({{"name", table.format.name},
                             {"rows", table.count()},
                             {"waiting", table.waiting_count()},
                             {"key", text(table.format.key)},
                             {"dtype", text(table.format.dtype)},
                             {"width", table.format.width},
                             {"states", table.format.states},
                             {"statistics", table.format.statistics},
                             {"bytes", table.bytes()},
                             {"shards", {{"fewest", *fewest}, {"most", *most}}},
                             {"place", table.place}});
    rows.add_row({table.format.name, std::to_string(table.count()),
                  std::to_string(table.waiting_count()), row, join(table.format.states, ", "),
                  human_bytes(table.bytes()), str(*fewest, " to ", *most)});
  }
  cli::print(a.json ? out.dump() + "\n" : rows.text());
  return 0;
}

int show(const PsArguments& a) {
  const StoredTable table = cli::one_stored_table(a.model, a.table);
  ordered_json out = {{"table", table.format.name}, {"keys", ordered_json::array()}};
  for (const std::string& text : a.keys) {
    const uint64_t key = train::parse_key(table, text);
    ordered_json each = {{"key", key_json(table, key)}};
    each.update(cli::found_json(table, key, true));
    if (!a.json) {
      const auto found = each["found"].get<std::string>();
      cli::print_line(str("key ", text, ": ",
                          found == "row"       ? "has a row"
                          : found == "waiting" ? "waits for a row"
                                               : "is not in the table"));
      for (const auto& [name, value] : each.items())
        if (name != "key" && name != "found") cli::print_line(str("  ", name, ": ", value.dump()));
    }
    out["keys"].push_back(std::move(each));
  }
  if (a.json) cli::print(out.dump() + "\n");
  return 0;
}

/// One line for each row, in the order of the files: CSV, or JSON with `--json`.
int dump(const PsArguments& a) {
  const StoredTable table = cli::one_stored_table(a.model, a.table);
  std::ofstream file;
  if (!a.output.empty()) {
    cli::check_output(a.output, a.overwrite);
    if (a.output.ends_with(".safetensors")) {
      train::export_table(a.output, table, a.states);
      return 0;
    }
    file.open(a.output, std::ios::binary | std::ios::trunc);
    if (!file) fail(ErrorCode::kDevice, a.output, ": cannot be written");
  }
  std::string lines;
  const auto flush = [&] {
    if (a.output.empty())
      cli::print_data(lines);
    else
      file.write(lines.data(), static_cast<std::streamsize>(lines.size()));
    lines.clear();
  };
  const auto columns_of = [&](const TableContent& content) {
    std::vector<std::pair<std::string, const Array*>> out = {{"weight", &content.weight}};
    if (a.states)
      for (const auto& [name, values] : content.states) out.emplace_back(name, &values);
    for (const auto& [name, values] : content.statistics) out.emplace_back(name, &values);
    return out;
  };
  bool has_header = a.json;
  for (const TableContent& part : table.parts) {
    const auto columns = columns_of(part);
    if (!has_header) {
      lines += "key";
      for (const auto& [name, values] : columns) {
        if (values->shape.size() == 1) {
          lines += "," + name;
          continue;
        }
        for (int64_t i = 0; i < values->shape[1]; ++i) lines += str(",", name, "_", i);
      }
      lines += "\n";
      has_header = true;
    }
    for (int64_t row = 0; row < part.keys.size(); ++row) {
      const uint64_t key = static_cast<const uint64_t*>(part.keys.raw())[row];
      if (a.json) {
        ordered_json each = {{"key", key_json(table, key)}};
        for (const auto& [name, values] : columns) each[name] = cli::numbers_json(*values, row);
        lines += each.dump() + "\n";
      } else {
        lines += table.key_text(key);
        for (const auto& [name, values] : columns) {
          const int64_t width = values->shape.size() == 1 ? 1 : values->shape[1];
          for (int64_t i = 0; i < width; ++i)
            lines += "," + format_double(values->number(row * width + i));
        }
        lines += "\n";
      }
      constexpr size_t kBlock = size_t{1} << 20;
      if (lines.size() > kBlock) flush();
    }
  }
  flush();
  if (a.output.empty()) return 0;
  file.close();
  if (!file) fail(ErrorCode::kDevice, a.output, ": cannot be written");
  cli::print_line(str("wrote ", table.count(), " rows to ", a.output));
  return 0;
}

int verify(const PsArguments& a) {
  // Reading checks sizes, checksums, shapes, and the order of keys.
  const std::vector<StoredTable> all = cli::stored_tables(a.model, a.table);
  int64_t rows = 0, waiting = 0;
  for (const StoredTable& table : all) {
    rows += table.count();
    waiting += table.waiting_count();
    std::vector<uint64_t> keys;
    for (const TableContent& part : table.parts) {
      const auto* const some = static_cast<const uint64_t*>(part.keys.raw());
      keys.insert(keys.end(), some, some + part.keys.size());
    }
    std::sort(keys.begin(), keys.end());
    for (const TableContent& part : table.waiting)
      for (int64_t i = 0; i < part.keys.size(); ++i) {
        const uint64_t key = static_cast<const uint64_t*>(part.keys.raw())[i];
        if (std::binary_search(keys.begin(), keys.end(), key))
          fail(ErrorCode::kModel, table.place, ": the key ", table.key_text(key), " of the table '",
               table.format.name, "' has a row and waits for one");
      }
    for (const TableContent& part : table.parts)
      for (int64_t i = 0; i < part.weight.size(); ++i)
        if (!std::isfinite(part.weight.number(i)))
          fail(
              ErrorCode::kModel, table.place, ": the row of key ",
              table.key_text(static_cast<const uint64_t*>(part.keys.raw())[i / table.format.width]),
              " of the table '", table.format.name, "' has ", part.weight.number(i));
  }
  const std::string folder = train::table_source(a.model);
  if (a.json)
    cli::print(ordered_json({{"model", folder},
                             {"sound", true},
                             {"tables", all.size()},
                             {"rows", rows},
                             {"waiting", waiting}})
                   .dump() +
               "\n");
  else
    cli::print_line(str(folder, ": ", all.size(), all.size() == 1 ? " table" : " tables", " with ",
                        rows, " rows, all whole"));
  return 0;
}

int run_ps(int argc, char** argv) {
  cli::App app{
      "Inspects tables (sparse_embedding) in files, writes changed copies, and serves them."};
  app.require_subcommand(1);
  PsArguments a;
  auto* count_command = app.add_subcommand("count", "rows, waiting keys and bytes of each table");
  auto* show_command = app.add_subcommand("show", "the rows of some keys");
  auto* dump_command = app.add_subcommand("dump", "all rows of a table as CSV or JSON lines");
  auto* verify_command = app.add_subcommand(
      "verify", "read all files: checksums, types, the order of keys, and finite weights");
  for (auto* command : {count_command, show_command, dump_command, verify_command}) {
    command
        ->add_option("MODEL", a.model,
                     "the folder of a run (its newest checkpoint), a checkpoint or a saved model")
        ->required();
    command->add_option("--table", a.table, "name of the table (default: all, or the only one)");
  }
  for (auto* command : {count_command, show_command, verify_command})
    command->add_flag("--json", a.json, "print one JSON object");
  show_command->add_option("--key", a.keys, "keys: 17, or 1,2")->delimiter(',')->required();
  dump_command->add_flag("--json", a.json, "a JSON object for each row");
  dump_command->add_flag("--states", a.states, "with the states of the optimizer");
  dump_command->add_option(
      "-o,--output", a.output,
      "file (default: standard output); .safetensors: tensors, by rising keys");
  cli::add_overwrite(*dump_command, a.overwrite);
  cli::PsEdits edits(app);
  cli::PsServe serve(app);
  cli::PsPublish versions(app);
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (edits.parsed()) return edits.run();
  if (serve.parsed()) return serve.run();
  if (versions.parsed()) return versions.run();
  if (count_command->parsed()) return count(a);
  if (show_command->parsed()) return show(a);
  if (dump_command->parsed()) return dump(a);
  return verify(a);
}

}  // namespace

namespace paddle::cli {

int ps_command(int argc, char** argv) {
  return run_tool([&] { return run_ps(argc, argv); });
}

}  // namespace paddle::cli
