#include "quant/output.h"

#include "base/files.h"
#include "program/checkpoint.h"
#include "program/prediction.h"

namespace paddle::quant {

namespace fs = std::filesystem;

infer::InputOptions data_of(const infer::InputOptions& given, const program::Model& model,
                            const char* part) {
  if (!given.paths.empty() || !given.data.empty()) return given;
  const auto run = infer::run_data(model);
  infer::InputOptions out = given;
  if (run && (std::string_view(part) == "train" || run->valid)) out.data = part;
  return out;
}

bool is_given(const infer::InputOptions& options) {
  return !options.paths.empty() || !options.data.empty();
}

void write_folder(const std::string& folder, const std::string& source_folder,
                  const std::string& name, const std::shared_ptr<ir::Function>& function,
                  const WeightSource& weight) {
  ensure_directory(folder);
  program::ParameterStore store;
  for (const ir::Port& port : function->inputs) {
    if (port.kind == ir::PortKind::kParameter)
      store.parameters[port.name] = {weight(port.name), ""};
    if (port.kind == ir::PortKind::kState) store.states[port.name] = weight(port.name);
  }
  program::write_weights(folder + "/model.safetensors", store);
  write_file_atomically(folder + "/module.txt",
                        ir::print(program::prediction_module(function, name, store)));
  const fs::path inference = fs::path(source_folder) / "inference";
  const fs::path from = fs::exists(inference) ? inference : fs::path(source_folder);
  for (const auto& each : fs::directory_iterator(from)) {
    const std::string file = each.path().filename().string();
    const bool metadata = file == "config.yaml" || file.ends_with(".json");
    if (metadata && each.is_regular_file())
      write_file_atomically(folder + "/" + file,
                            read_file(each.path().string(), uint64_t{1} << 30, ErrorCode::kModel));
  }
}

Paths::Paths(const std::string& output)
    : only_file(output.ends_with(".onnx")),
      base(only_file ? fs::path(output).parent_path() : fs::path(output)),
      file(only_file ? fs::path(output).filename().string() : "model.onnx") {
  if (base.empty()) base = ".";
  partial = base / ("." + file + ".partial");
}

fs::path Paths::report(const char* kind) const {
  return base / (only_file ? file + "." + kind : std::string(kind));
}

void Paths::begin() const {
  fs::remove_all(partial);
  ensure_directory(partial.string());
}

void Paths::publish(bool accepted) const {
  const fs::path to = accepted ? base : base / "best";
  ensure_directory(to.string());
  for (const auto& each : fs::directory_iterator(partial)) {
    const fs::path place = to / each.path().filename();
    if (fs::is_directory(place)) fs::remove_all(place);
    fs::rename(each.path(), place);
  }
  fs::remove_all(partial);
}

void check_output(const std::string& output, bool overwrite) {
  if (!overwrite && (file_exists(output) || is_directory(output)))
    fail(ErrorCode::kUsage, output, ": is there already (--overwrite replaces it)");
}

}  // namespace paddle::quant
