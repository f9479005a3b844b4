#include "show_formats.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "common.h"
#include "config/overrides.h"
#include "llm/family.h"
#include "llm/language_model.h"
#include "ops/generation/packed_format.h"
#include "text/load.h"

namespace paddle::cli {

namespace {

/// "134515008 values in 93.8 MiB: 210 tensors of Q4_1, 61 of F32".
std::string weights_line(const llm::ModelFiles& files) {
  std::map<std::string, int64_t> kinds;
  int64_t elements = 0;
  uint64_t bytes = 0;
  const auto& tensors = files.weights->tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const formats::gguf::TensorInfo* const blocks =
        files.gguf ? &files.gguf->tensors().at(i) : nullptr;
    ++kinds[blocks ? formats::gguf::type_name(blocks->type) : text(tensors[i].dtype)];
    elements += element_count(std::span<const int64_t>(tensors[i].shape));
    bytes += blocks ? blocks->bytes : tensors[i].bytes();
  }
  std::vector<std::pair<std::string, int64_t>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string list;
  for (const auto& [kind, count] : sorted)
    list += list.empty() ? str(count, count == 1 ? " tensor of " : " tensors of ", kind)
                         : str(", ", count, " of ", kind);
  return str(elements, " values in ", human_bytes(bytes), ": ", list);
}

std::string tokenizer_line(const std::string& path) {
  try {
    const auto tokenizer = tokenizers::load_tokenizer(path);
    return str(tokenizer.vocabulary_size(), " tokens, ",
               tokenizer.chat_template.empty() ? "no chat template" : "with a chat template");
  } catch (const Error& e) {
    return str("none that can be used (", e.what(), ")");
  }
}

/// Bytes of the keys and values of one token.
int64_t cache_bytes(const lang::Program& program, const lang::EntryPoint& step) {
  int64_t bytes = 0;
  for (const auto& [name, type] : lang::summarize(program, step).states)
    bytes +=
        storage_bytes(type.dtype, element_count(std::span<const int64_t>(concrete(type.shape))));
  return bytes / kKeyBlock;
}

}  // namespace

void show_language_model(const std::string& path, const LanguageModelView& view) {
  const llm::ModelFiles files = llm::open_model_files(path);
  const llm::Family family = llm::find_family(files, view.family);
  lang::ProgramOptions options;
  for (const auto* list : {&family.overrides, &view.overrides})
    for (const std::string& each : *list) options.overrides.push_back(config::parse_override(each));
  if (family.has_step)
    options.overrides.push_back(config::parse_override(str("params.cache_slots=", kKeyBlock)));
  const auto program = lang::read_program(family.file, options);
  const auto line = [](const char* name, const std::string& value) {
    print(str(name, std::string(12 - std::string_view(name).size(), ' '), value, "\n"));
  };
  line("file",
       str(path, ", ", files.gguf ? "GGUF" : "Hugging Face", " model of type ", files.type));
  line("family", std::filesystem::path(family.file).lexically_normal().string());
  line("weights", weights_line(files));
  line("tokenizer", tokenizer_line(path));
  line("context", str(family.context > 0 ? family.context : files.context, " tokens"));
  const lang::EntryPoint* const step = program->find_entry("step");
  line("cache", step ? str(cache_bytes(*program, *step), " bytes a token in float32")
                     : "none: each token is computed from the whole text");
  print("\n");
  const lang::EntryPoint* const entry = program->find_entry("model");
  if (!entry) fail(ErrorCode::kModel, family.file, ": has no function 'model'");
  const lang::Summary summary = lang::summarize(*program, *entry, view.dims, view.training);
  print(lang::text(summary, view.depth));
  if (!view.json) return;
  nlohmann::ordered_json out = {{"file", path},
                                {"format", files.gguf ? "GGUF" : "Hugging Face"},
                                {"type", files.type},
                                {"family", family.file},
                                {"context", family.context > 0 ? family.context : files.context}};
  if (step) out["cache_bytes_per_token"] = cache_bytes(*program, *step);
  out.update(to_json(summary));
  print_json(out);
}

nlohmann::ordered_json to_json(const lang::Summary& summary) {
  using Json = nlohmann::ordered_json;
  const auto types = [](const std::vector<std::pair<std::string, TensorType>>& values) {
    Json out = Json::object();
    for (const auto& [name, type] : values) out[name] = type.text();
    return out;
  };
  Json lines = Json::array();
  for (const lang::SummaryLine& line : summary.lines)
    lines.push_back({{"path", line.path},
                     {"layer", line.callee},
                     {"depth", line.depth},
                     {"output", line.output},
                     {"parameters", line.parameters},
                     {"flops", line.flops}});
  Json dims = Json::object();
  for (const auto& [name, size] : summary.dims) dims[name] = size;
  return {{"name", summary.name},
          {"inputs", types(summary.inputs)},
          {"outputs", types(summary.outputs)},
          {"parameters", summary.parameter_count},
          {"states", summary.state_count},
          {"tables", types(summary.tables)},
          {"flops", summary.flops},
          {"dims", dims},
          {"layers", lines},
          {"notes", summary.notes}};
}

void print_json(const nlohmann::ordered_json& object) {
  print(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace paddle::cli
