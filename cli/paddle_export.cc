// paddle-export MODEL -o FILE.onnx: writes a model as an ONNX file that computes the same.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_dims.h"
#include "common_options.h"
#include "exporter/export_job.h"
#include "exporter/training.h"
#include "llm/language_model.h"
#include "llm/whole_model.h"
#include "sections/sections.h"

namespace {

using namespace paddle;
using Json = nlohmann::ordered_json;

std::vector<std::pair<std::string, std::string>> parse_metadata(
    const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(ErrorCode::kUsage, "--metadata: expected KEY=VALUE, found '", word, "'");
    out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return out;
}

std::vector<std::string> read_labels(const std::string& path) {
  std::vector<std::string> out;
  for (const std::string& line : split(read_file(path, 1 << 24, ErrorCode::kUsage), '\n'))
    if (const std::string_view name = trim(line); !name.empty()) out.emplace_back(name);
  return out;
}

std::string sizes_text(const std::map<std::string, int64_t>& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes) out += str(out.empty() ? "" : ", ", name, "=", size);
  return out.empty() ? "fixed sizes" : out;
}

/// The newest opset of a runtime, "ort-1.17".
/// https://onnxruntime.ai/docs/reference/compatibility.html
int64_t opset_of_target(const std::string& target) {
  static const std::map<std::string, int64_t> known = {
      {"ort-1.15", 19}, {"ort-1.16", 19}, {"ort-1.17", 20}, {"ort-1.18", 21}, {"ort-1.19", 21},
      {"ort-1.20", 21}, {"ort-1.21", 22}, {"ort-1.22", 22}, {"ort-1.23", 23}, {"ort-1.24", 25}};
  const auto found = known.find(target);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, opset] : known) names.push_back(name);
  fail(ErrorCode::kUsage, "--target: '", target, "' is not known", did_you_mean(target, names),
       "; expected one of ", join(names, ", "));
}

void print_result(const exporter::ExportResult& result) {
  const auto& written = result.written;
  cli::print(str(result.file, ": opset ", result.opset,
                 result.opset_reason.empty() ? "" : " (for " + result.opset_reason + ")", ", ",
                 result.nodes, " nodes, ", human_bytes(written.model_bytes),
                 written.data_file.empty()
                     ? ""
                     : str(" and ", human_bytes(written.data_bytes), " in ", written.data_file),
                 "\n"));
  if (result.quantized_layers > 0)
    cli::print(str(result.quantized_layers, " quantized ",
                   result.quantized_layers == 1 ? "layer is an integer operator\n"
                                                : "layers are integer operators\n"));
  if (!result.tables.empty())
    cli::print(str(result.tables, ": tables whose rows are inputs of the file\n"));
  for (const auto& check : result.checks)
    if (check.ran)
      cli::print(str(check.difference.empty() ? "agrees with the model: " : "differs: ",
                     sizes_text(check.dims),
                     check.difference.empty() ? "" : ": " + check.difference, "\n",
                     check.node.empty() ? "" : check.node + "\n"));
}

/// Prints the forms; whether each operation has one.
bool list(const std::vector<exporter::OperationForm>& forms, bool json) {
  bool all = true;
  Json lines = Json::array();
  for (const auto& each : forms) {
    all = all && each.form != "none";
    if (json)
      lines.push_back({{"operation", each.operation},
                       {"form", each.form},
                       {"count", each.count},
                       {"source", each.source},
                       {"note", each.note}});
    else
      cli::print(str(each.form, std::string(12 - each.form.size(), ' '), each.operation,
                     each.count > 0 ? str("  x", each.count) : std::string(),
                     each.note.empty() ? "" : "  " + each.note,
                     each.form == "none" && !each.source.empty() ? "  " + each.source : "", "\n"));
  }
  if (json) cli::print(lines.dump() + "\n");
  return all;
}

int run_export(int argc, char** argv) {
  cli::App app{"Exports a model as an ONNX file and checks that the file computes the same."};
  app.footer(
      "MODEL is a run folder, a checkpoint, a model file (file.yaml[:variant] params.x=…), an ONNX "
      "file, a Hugging Face folder or a GGUF file; with --training a config of paddle-train.");
  std::vector<std::string> arguments, dims, metadata;
  std::string family, format = "qdq", external = "auto", labels, dtype, check_with = "self",
                      inline_tables = "64 MiB";
  exporter::ExportJob job;
  bool no_check = false, dry_run = false, list_ops = false, json = false;
  app.add_option("MODEL", arguments, "the model, then params.x=value of a model file");
  app.add_option("-o,--output", job.output, "the file to write, FILE.onnx");
  app.add_option("--opset", job.opset,
                 "ONNX opset, from 13 on (default: the lowest from 17 on that fits)")
      ->check(cli::in_range(int64_t{13}, int64_t{26}));
  app.add_option("--target", job.target,
                 "the runtime that must read the file: ort-1.17 and others; rejects what is newer");
  app.add_option(
         "--format", format,
         "form of quantized layers: qdq, qoperator (QLinearConv and the like) or nbits (weights of "
         "4 bits in MatMulNBits)")
      ->check(cli::one_of({"qdq", "qoperator", "nbits"}));
  app.add_option(
         "--function", job.functions,
         "an entry of a model file (default: model); several go to FILE.NAME.onnx each, with "
         "one data file for their weights")
      ->allow_extra_args(false);
  app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
  app.add_option("--family", family, "the model file of a Hugging Face folder or GGUF file");
  app.add_option("--allow-missing", job.load.allow_missing,
                 "with --weights: parameters that the file may lack (pattern)");
  app.add_option("--allow-unused", job.load.allow_unused,
                 "with --weights: tensors that the model may not use (pattern)");
  app.add_option("--seed", job.load.seed, "seed of random weights (default: 0)");
  app.add_option("--dim", dims, "NAME=SIZE…: fix symbolic dims; others stay symbolic");
  app.add_option("--external-data", external,
                 "weights in FILE.data: auto (above 2 GiB), always or never")
      ->check(cli::one_of({"auto", "always", "never"}));
  app.add_option("--inline-tables", inline_tables,
                 "tables of up to this size are part of the file (default: 64 MiB); the rows of "
                 "larger ones are inputs, and FILE.tables/ has them");
  app.add_flag("--with-preprocess", job.preprocess,
               "of a run: the transforms of its data are part of the file");
  app.add_option("--labels", labels, "file with a class name a line, for the metadata");
  app.add_option("--metadata", metadata, "KEY=VALUE for the file's metadata")
      ->allow_extra_args(false);
  app.add_option("--check", job.checks,
                 "number of bindings of the symbolic dims to compare on (default: 3)")
      ->check(cli::in_range(1, 100));
  app.add_option("--dtype", dtype, "type of weights and computation: float16 or bfloat16")
      ->check(cli::one_dtype_of({"float16", "bfloat16"}));
  app.add_option("--keep-float", job.keep_float,
                 "with --dtype: operations, or parameters whose readers, stay float32 (pattern)")
      ->allow_extra_args(false);
  app.add_flag("--training", job.training,
               "MODEL is a config of paddle-train: export a step with loss, gradients and updates");
  app.add_option("--check-with", check_with,
                 "what runs the file: self, or onnxruntime (libonnxruntime.so, or the library that "
                 "PADDLE_ONNXRUNTIME names)")
      ->check(cli::one_of({"self", "onnxruntime"}));
  app.add_flag("--no-check", no_check, "do not run the file");
  app.add_flag("--overwrite", job.overwrite, "replace an existing file");
  app.add_flag("--dry-run", dry_run, "say how each operation is exported, write nothing");
  app.add_flag("--list-ops", list_ops, "the same; without MODEL, for all operations");
  app.add_flag("--json", json, "one JSON object (or, with --list-ops, an array) on the last line");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  for (std::string& each : cli::take_arguments(dims)) arguments.push_back(std::move(each));
  job.load.overrides = cli::take_overrides(arguments);
  if (arguments.empty() && list_ops) {
    list(exporter::list_all_operations(), json);
    return 0;
  }
  if (arguments.empty()) fail(ErrorCode::kUsage, "no model is given (see paddle-export --help)");
  if (arguments.size() > 1)
    fail(ErrorCode::kUsage, "one model is expected, found '", arguments[0], "' and '", arguments[1],
         "'");
  job.model = arguments[0];
  if (!job.training && llm::is_language_model(job.model)) {
    // Weights become float32, texts are computed as a whole.
    llm::WholeModel whole = llm::open_whole_model(job.model, family, job.load);
    job.model = whole.file;
    job.load = std::move(whole.options);
  } else if (!family.empty()) {
    fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
  }
  if (!job.target.empty()) job.most_opset = opset_of_target(job.target);
  if (job.most_opset != 0 && job.opset > job.most_opset)
    fail(ErrorCode::kUsage, "--opset ", job.opset, ": ", job.target, " has ", job.most_opset);
  job.format = *onnx::parse_format(format);
  job.dims = cli::parse_dims(dims);
  job.metadata = parse_metadata(metadata);
  job.load.inline_tables = inline_tables == "0" ? 0 : parse_byte_size(inline_tables);
  if (!job.load.inline_tables)
    fail(ErrorCode::kUsage, "--inline-tables: expected a size such as 64 MiB, found '",
         inline_tables, "'");
  if (!labels.empty()) job.labels = read_labels(labels);
  if (!dtype.empty()) job.low = parse_dtype(dtype);
  if (!job.keep_float.empty() && !job.low)
    fail(ErrorCode::kUsage, "--keep-float needs --dtype float16 or bfloat16");
  using External = formats::onnx::WriteOptions::External;
  job.write.external = external == "always"  ? External::kAlways
                       : external == "never" ? External::kNever
                                             : External::kAuto;
  if (job.training && (job.preprocess || job.low || !job.labels.empty() || !job.functions.empty() ||
                       job.format != onnx::QuantizedFormat::kQdq))
    fail(ErrorCode::kUsage,
         "--training cannot be combined with --with-preprocess, --dtype, --format, --labels and "
         "--function");
  for (size_t i = 0; i < job.functions.size(); ++i)
    if (std::find(job.functions.begin(), job.functions.begin() + static_cast<ptrdiff_t>(i),
                  job.functions[i]) != job.functions.begin() + static_cast<ptrdiff_t>(i))
      fail(ErrorCode::kUsage, "--function ", job.functions[i], " is given twice");
  if (!job.functions.empty()) job.load.function = job.functions[0];
  if (no_check) job.checks = 0;
  job.check_with_onnxruntime = check_with == "onnxruntime";
  job.producer = cli::version_text();
  job.producer = "paddle " + job.producer.substr(0, job.producer.find('\n'));
  if (dry_run || list_ops) {
    const auto forms =
        job.training ? exporter::list_training_operations(job) : exporter::list_operations(job);
    return list(forms, json) ? 0 : static_cast<int>(ErrorCode::kDifference);
  }
  if (job.output.empty()) fail(ErrorCode::kUsage, "no file is given: -o FILE.onnx");
  if (!job.output.ends_with(".onnx"))
    fail(ErrorCode::kUsage, job.output, ": expected a name that ends in .onnx");

  const auto note = [](const std::string& line) { cli::print_note(line); };
  const std::vector<exporter::ExportResult> results =
      job.training ? std::vector{exporter::run_training_export(job, note)}
                   : exporter::run_export(job, note);
  bool passed = true;
  Json files = Json::array();
  for (const exporter::ExportResult& result : results) {
    passed = passed && result.passed();
    files.push_back({{"file", result.file},
                     {"opset", result.opset},
                     {"nodes", result.nodes},
                     {"bytes", result.written.model_bytes + result.written.data_bytes},
                     {"passed", result.passed()}});
    if (!result.tables.empty()) files.back()["tables"] = result.tables;
    if (!json) print_result(result);
  }
  if (json && files.size() == 1) cli::print(files[0].dump() + "\n");
  if (json && files.size() > 1)
    cli::print(Json{{"files", files}, {"passed", passed}}.dump() + "\n");
  if (passed) return 0;
  std::string kept;
  for (const auto& result : results) kept += (kept.empty() ? "" : ", ") + result.file;
  cli::print_error(str("error: ", results.size() == 1 ? "the file does" : "the files do",
                       " not compute what the model does; kept as ", kept));
  return static_cast<int>(ErrorCode::kDifference);
}

}  // namespace

namespace paddle::cli {

int export_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_export(argc, argv);
  });
}

}  // namespace paddle::cli
