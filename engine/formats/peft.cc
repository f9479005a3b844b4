#include "formats/peft.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/free_with.h"

namespace paddle::formats {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 24;

/// The folder, which is there.
const std::string& checked(const std::string& folder) {
  if (!is_directory(folder))
    fail(ErrorCode::kUsage, folder, ": is not a folder with adapter_config.json");
  return folder;
}

/// "a.b.weight" as the module "a.b".
std::string module_of(const std::string& weight) {
  constexpr std::string_view kSuffix = ".weight";
  return weight.ends_with(kSuffix) ? weight.substr(0, weight.size() - kSuffix.size()) : weight;
}

/// The modules of an adapter as PEFT finds them: by the last part of their names where all modules
/// that end so are among them, else by the whole name.
std::set<std::string> target_modules(const PeftOutput& adapter) {
  const auto last = [](const std::string& module) { return module.substr(module.rfind('.') + 1); };
  std::set<std::string> adapted, others, out;
  for (const PeftOutput::Factors& each : adapter.factors) adapted.insert(module_of(each.weight));
  for (const std::string& weight : adapter.weights)
    if (weight.ends_with(".weight") && !adapted.contains(module_of(weight)))
      others.insert(last(module_of(weight)));
  for (const std::string& module : adapted)
    out.insert(others.contains(last(module)) ? module : last(module));
  return out;
}

}  // namespace

void write_peft(const std::string& folder, const PeftOutput& adapter) {
  ensure_directory(folder);
  nlohmann::ordered_json config;
  config["peft_type"] = "LORA";
  config["task_type"] = "CAUSAL_LM";
  config["base_model_name_or_path"] = adapter.base;
  config["r"] = adapter.rank;
  config["lora_alpha"] = adapter.alpha;
  config["lora_dropout"] = 0.0;
  config["bias"] = "none";
  config["fan_in_fan_out"] = adapter.input_first;
  config["inference_mode"] = true;
  config["target_modules"] = target_modules(adapter);
  write_file_atomically(join_path(folder, "adapter_config.json"), config.dump(2) + "\n");
  std::vector<std::pair<std::string, Array>> tensors;
  for (const PeftOutput::Factors& each : adapter.factors) {
    const std::string name = "base_model.model." + module_of(each.weight);
    tensors.emplace_back(name + ".lora_A.weight", each.down);
    tensors.emplace_back(name + ".lora_B.weight", each.up);
  }
  write_safetensors(join_path(folder, "adapter_model.safetensors"), tensors, {{"format", "pt"}});
}

struct PeftAdapter::Patterns::Compiled {
  std::string expression;
  std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>> code;
};

/// As PEFT's get_pattern_key: Python's re.match(rf"(.*\.)?({expression})$", layer).
void PeftAdapter::Patterns::add(const std::string& expression, double value) {
  const std::string whole = "(.*\\.)?(" + expression + ")$";
  auto compiled = std::make_shared<Compiled>();
  compiled->expression = expression;
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                                     PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                     nullptr));
  if (!compiled->code) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof message);
    fail(ErrorCode::kModel, "'", expression, "': ", reinterpret_cast<const char*>(message));
  }
  entries_.emplace_back(std::move(compiled), value);
}

double PeftAdapter::Patterns::of(const std::string& layer, double fallback) const {
  constexpr uint32_t kMaxSteps = 1'000'000;
  if (entries_.empty()) return fallback;
  const std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>> data(
      pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>> context(
      pcre2_match_context_create(nullptr));
  if (!data || !context) fail(ErrorCode::kDevice, "out of memory for a pattern");
  pcre2_set_match_limit(context.get(), kMaxSteps);
  pcre2_set_heap_limit(context.get(), 16 << 10);  // KiB
  for (const auto& [compiled, value] : entries_) {
    const int found = pcre2_match(compiled->code.get(), reinterpret_cast<PCRE2_SPTR>(layer.data()),
                                  layer.size(), 0, 0, data.get(), context.get());
    if (found >= 0) return value;
    if (found != PCRE2_ERROR_NOMATCH)
      fail(ErrorCode::kModel, "'", compiled->expression, "' takes too many steps on '", layer, "'");
  }
  return fallback;
}

PeftAdapter::PeftAdapter(const std::string& folder)
    : tensors_(join_path(checked(folder), "adapter_model.safetensors")) {
  read_config(join_path(folder, "adapter_config.json"));
  for (const SafetensorsEntry& entry : tensors_.entries()) {
    std::string name = entry.name;
    for (const char* prefix : {"base_model.model.", "base_model."})
      if (name.starts_with(prefix)) {
        name = name.substr(std::string(prefix).size());
        break;
      }
    const auto part = [&](const char* suffix) {
      if (!name.ends_with(suffix)) return false;
      name = name.substr(0, name.size() - std::string(suffix).size()) + ".weight";
      return true;
    };
    // A copy of the model's own weight, which PEFT adds for embeddings.
    if (name.ends_with(".base_layer.weight")) continue;
    if (part(".lora_A.weight"))
      deltas_[name].down = &entry;
    else if (part(".lora_B.weight"))
      deltas_[name].up = &entry;
    else if (part(".lora_embedding_A"))
      deltas_[name].down = &entry, deltas_[name].is_table = true;
    else if (part(".lora_embedding_B"))
      deltas_[name].up = &entry;
    else
      deltas_[name].whole = &entry;
  }
  for (const auto& [name, delta] : deltas_)
    if (!delta.whole && (!delta.down || !delta.up))
      fail(ErrorCode::kModel, path(), ": '", name, "' has only one of lora_A and lora_B");
}

void PeftAdapter::read_config(const std::string& path) {
  const auto json = nlohmann::ordered_json::parse(
      read_file(path, kMaxConfigBytes, ErrorCode::kModel), nullptr, false);
  if (!json.is_object()) fail(ErrorCode::kModel, path, ": is not a JSON object");
  try {
    if (const std::string type = json.value("peft_type", "LORA"); type != "LORA")
      fail(ErrorCode::kModel, path, ": peft_type is '", type, "', expected LORA");
    if (json.value("use_dora", false))
      fail(ErrorCode::kModel, path, ": use_dora: magnitudes of DoRA are not supported");
    // Further settings that change what the adapter computes.
    for (const char* key : {"alora_invocation_tokens", "arrow_config", "layer_replication",
                            "lora_bias", "use_bdlora", "use_qalora"})
      if (const auto found = json.find(key);
          found != json.end() && !found->is_null() && *found != false)
        fail(ErrorCode::kModel, path, ": ", key, " is not supported");
    rank_ = json.at("r").get<double>();
    alpha_ = json.at("lora_alpha").get<double>();
    root_scale_ = json.value("use_rslora", false);
    input_first_ = json.value("fan_in_fan_out", false);
    for (const auto& [key, to] : {std::pair{"rank_pattern", &ranks_}, {"alpha_pattern", &alphas_}})
      if (const auto found = json.find(key); found != json.end() && found->is_object())
        for (const auto& [expression, value] : found->items()) try {
            if (const double number = value.get<double>(); number > 0 || to == &alphas_)
              to->add(expression, number);
            else
              fail(ErrorCode::kModel, "'", expression, "' is ", number, ", expected more than 0");
          } catch (const Error& e) {
            fail(ErrorCode::kModel, path, ": ", key, ": ", e.message());
          }
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, path,
         ": r, lora_alpha and the values of their patterns must be numbers");
  }
  if (!(rank_ > 0)) fail(ErrorCode::kModel, path, ": r must be positive");
}

double PeftAdapter::scale_of(const std::string& weight) const {
  constexpr std::string_view kSuffix = ".weight";
  std::string layer = weight;
  if (layer.ends_with(kSuffix)) layer.resize(layer.size() - kSuffix.size());
  const double rank = ranks_.of(layer, rank_), alpha = alphas_.of(layer, alpha_);
  return alpha / (root_scale_ ? std::sqrt(rank) : rank);
}

}  // namespace paddle::formats
