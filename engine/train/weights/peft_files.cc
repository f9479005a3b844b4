#include "train/weights/peft_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "convert/named_weights.h"
#include "formats/peft.h"

namespace paddle::train {
namespace {

/// The folder with the config.json of the model that these weights are of; "" if there is none.
std::string model_folder(const std::string& weights) {
  const std::string folder =
      is_directory(weights) ? weights : std::filesystem::path(weights).parent_path().string();
  const std::string config = join_path(folder, "config.json");
  if (!file_exists(config)) return "";
  constexpr uint64_t kMaxBytes = uint64_t{1} << 24;
  const auto json = nlohmann::json::parse(read_file(config, kMaxBytes, ErrorCode::kModel), nullptr,
                                          /*allow_exceptions=*/false);
  return json.is_object() && json.contains("model_type") ? folder : "";
}

/// The matrix of an adapter with its axes exchanged: PEFT's A and B are of linear layers with
/// weights [out, in].
Array exchanged(const program::ParameterStore& store, const std::string& name) {
  return convert::transposed(store.parameters.at(name).value.contiguous(), {1, 0})
      .cast(DType::kF32)
      .contiguous();
}

}  // namespace

std::string write_peft_files(const std::string& folder, const program::ParameterStore& store,
                             const Adapters& adapters, const InitialWeights& init) {
  const std::string base = init.file.empty() ? "" : model_folder(init.file);
  if (base.empty() || init.rules.empty()) return "";
  if (!adapters.also.empty())
    return "PEFT's files cannot hold the parameters of `also`: " + join(adapters.also, ", ");
  const convert::NamedWeights weights(init.file, init.rules);
  static const std::regex embedding("(^|\\.)(embed|wte|wpe|word_embeddings)[^.]*\\.weight$");
  formats::PeftOutput out;
  out.base = base;
  out.rank = adapters.rank;
  out.alpha = adapters.alpha;
  for (const std::string& name : weights.names()) out.weights.push_back(weights.stored_name(name));
  for (const std::string& name : adapted(store, adapters)) {
    if (!weights.contains(name)) return "'" + name + "' is not of the initial weights";
    const std::string& stored = weights.stored_name(name);
    if (std::regex_search(stored, embedding))
      return "'" + stored + "' is an embedding; leave '" + name + "' out of `only`";
    if (!weights.is_transposed(name)) out.input_first = true;
    out.factors.push_back(
        {stored, exchanged(store, lora_down(name)), exchanged(store, lora_up(name))});
  }
  formats::write_peft(folder, out);
  return "";
}

}  // namespace paddle::train
