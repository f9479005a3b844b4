#include "llm/family.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/module.h"
#include "config/document.h"
#include "llm/expression.h"
#include "llm/family_keys.h"

namespace paddle::llm {

namespace {

using config::Node;

/// The section `sources.<kind>` of a model file, if it is for this type of model.
const Node* find_section(const Node& root, const ModelFiles& files) {
  const Node* sources = root.find("sources");
  const Node* section = sources ? sources->find(files.kind) : nullptr;
  const Node* types = section ? section->find("types") : nullptr;
  if (!types) return nullptr;
  const auto matches = [&](const Node& type) { return type.text == files.type; };
  return std::any_of(types->items.begin(), types->items.end(), matches) ? section : nullptr;
}

Node read_family(const std::string& path) {
  return config::parse_document(config::read_text_file(path), path);
}

/// Folders with the families that come with the programs: installed, or in the source tree.
std::string find_family_file(const ModelFiles& files) {
  const std::string self = own_binary_path();
  const std::string bin = self.substr(0, self.rfind('/'));
  // The second is for libraries in lib/<architecture>, the last for the package of Python.
  for (const char* place : {"/../share/paddle/models/llm", "/../../share/paddle/models/llm",
                            "/../../models/llm", "/models/llm"}) {
    const std::string folder = str(bin, place);
    if (!is_directory(folder)) continue;
    for (const std::string& name : list_directory(folder)) {
      std::string path = str(folder, "/", name);
      if (name.ends_with(".yaml") && !name.ends_with(".rules.yaml") &&
          find_section(read_family(path), files))
        return path;
    }
  }
  fail(ErrorCode::kModel, files.config, ": there is no model family for the type '", files.type,
       "'; name a model file with --family");
}

/// Keys that transformers writes into the config of any model: how to generate, train, report and
/// store, but nothing of what the model computes.
constexpr const char* kKeysOfAllConfigs[] = {
    "adapters",
    "architectures",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cls_token_id",
    "custom_pipelines",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "generation_config",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "language",
    "length_penalty",
    "loss_type",
    "low_memory",
    "mask_token_id",
    "matryoshka_dimensions",
    "max_length",
    "max_new_tokens",
    "min_length",
    "model_max_length",
    "name_or_path",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "penalty_alpha",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "renormalize_logits",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_tied_weights",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

/// Keys that transformers writes into the config of any model, and that would change it if they
/// were set.
constexpr const char* kKeysThatMustBeOff[] = {
    "add_cross_attention", "cross_attention_hidden_size", "is_encoder_decoder",
    "pruned_heads",        "quantization_config",         "tie_encoder_decoder",
};

/// The params of a family and of the files that it includes, with their own values.
std::map<std::string, Node> params_of_family(const Node& root, const std::string& folder) {
  std::map<std::string, Node> out;
  const auto add = [&](const Node& from) {
    if (const Node* params = from.find("params"))
      for (const config::Entry& entry : params->entries) out.emplace(entry.key.text, entry.value);
  };
  add(root);
  if (const Node* include = root.find("include"))
    for (const Node& name : include->items)
      if (const std::string path = join_path(folder, name.text); file_exists(path))
        add(read_family(path));
  return out;
}

/// Sizes that the files must agree on, where a loop over them would be long or a division have a
/// rest.
void check_sizes(const FamilyKeys& keys, const ModelFiles& files,
                 const std::map<std::string, std::pair<const Node*, std::string>>& params) {
  const auto number = [&](const char* name) -> int64_t {
    const auto found = params.find(name);
    int64_t value = -1;
    if (found != params.end()) {
      const std::string& text = found->second.second;
      std::from_chars(text.data(), text.data() + text.size(), value);
    }
    return value;
  };
  const auto expression = [&](const char* name) { return params.at(name).first; };
  constexpr int64_t kMaxExperts = 4096;
  if (files.weights)
    if (const auto tensors = std::ssize(files.weights->tensors()); number("layers") > tensors)
      keys.reject({expression("layers")}, str("more layers than the file has tensors, ", tensors));
  if (number("experts") > kMaxExperts)
    keys.reject({expression("experts")}, str("more than ", kMaxExperts, " experts"));
  if (const int64_t heads = number("heads"), groups = number("kv_heads");
      heads > 0 && groups > 0 && heads % groups != 0)
    keys.reject({expression("heads"), expression("kv_heads")},
                str("the heads of queries, ", heads,
                    ", are not a multiple of those of keys and values, ", groups));
}

/// Reads the params of the family, as overrides; every key of the model's files must have been
/// read.
void read_params(const Node& root, const Node& section, const ModelFiles& files, Family& family) {
  std::vector<std::string>& out = family.overrides;
  FamilyKeys keys(files, family.is_given);
  std::set<std::string> ignored = {"model_type"};
  if (files.kind == "huggingface")
    ignored.insert(std::begin(kKeysOfAllConfigs), std::end(kKeysOfAllConfigs));
  const std::string folder = family.file.substr(0, family.file.rfind('/') + 1);
  const auto own = params_of_family(root, folder.empty() ? "." : folder);
  std::map<std::string, std::pair<const Node*, std::string>> given;
  if (const Node* params = section.find("params"))
    for (const config::Entry& entry : params->entries) {
      const std::string& name = entry.key.text;
      const auto found = own.find(name);
      std::string value =
          keys.read_param(name, entry.value, found == own.end() ? nullptr : &found->second);
      given[name] = {&entry.value, value};
      // An override that is text and not an expression has quotes of its own.
      if (value.starts_with('"')) value = str("\"'", value.substr(1, value.size() - 2), "'\"");
      out.push_back(str("params.", name, "=", value));
    }
  check_sizes(keys, files, given);
  if (files.kind == "huggingface")
    for (const char* key : kKeysThatMustBeOff) {
      const jinja::Value* const value = files.variables.find(std::string_view(key));
      ignored.insert(key);
      if (value && value->truth())
        fail(ErrorCode::kModel, files.config, ": models with '", key, "' are not supported");
    }
  const auto read = [&](const Node& expression) { return keys.read(expression); };
  if (const Node* require = section.find("require"))
    for (const Node& condition : require->items)
      if (read(condition) != "true") keys.reject_where(condition);
  if (const Node* context = section.find("context"))
    family.context = integer_of(*context, read(*context));
  if (const Node* adapters = section.find("adapters")) {
    const Node *match = adapters->find("match"), *head_dim = adapters->find("head_dim");
    if (!match || !head_dim)
      throw Error(ErrorCode::kConfig, "expected 'match' and 'head_dim'", adapters->location());
    family.reordered = match->as_string();
    family.reordered_head = integer_of(*head_dim, read(*head_dim));
  }
  if (const Node* memory = section.find("memory"))
    for (const config::Entry& entry : memory->entries) {
      SequenceMemory each{.state = entry.key.text};
      if (const Node* window = entry.value.is_map() ? entry.value.find("window") : nullptr) {
        each.kind = MemoryKind::kWindow;
        each.window = integer_of(*window, read(*window));
      } else if (const auto kind = memory_kind(entry.value.text);
                 kind && *kind != MemoryKind::kWindow) {
        each.kind = *kind;
      } else {
        throw Error(ErrorCode::kConfig,
                    str("memory: expected tokens, state, encoded or {window: TOKENS} for '",
                        entry.key.text, "'"),
                    entry.value.location());
      }
      if (each.kind == MemoryKind::kWindow && each.window < 1)
        throw Error(ErrorCode::kConfig, "memory: a window has at least one token",
                    entry.value.location());
      family.memory.push_back(std::move(each));
    }
  for (const char* name : {"ignored_keys", "unread"})  // the second is an older name
    if (const Node* keys_to_ignore = section.find(name))
      for (const Node& key : keys_to_ignore->items) ignored.insert(key.text);
  keys.check_all_read(ignored);
}

}  // namespace

Family find_family(const ModelFiles& files, const std::string& family) {
  Family out;
  out.file = family.empty() ? find_family_file(files) : family;
  out.is_given = !family.empty();
  const Node root = read_family(out.file);
  const Node* section = find_section(root, files);
  if (!section)
    fail(ErrorCode::kModel, out.file, ": has no `sources` for ", files.kind, " models of type '",
         files.type, "'");
  const Node* rules = section->find("weights");
  if (!rules)
    throw Error(ErrorCode::kConfig, "expected 'weights', a file of rules", section->location());
  const std::string folder = out.file.substr(0, out.file.rfind('/'));
  out.rules = join_path(folder, rules->as_string());
  if (const Node* theirs = root.find("sources")->find("huggingface"))
    if (const Node* names = theirs->find("weights"))
      out.adapter_rules = join_path(folder, names->as_string());
  read_params(root, *section, files, out);
  const Node* params = root.find("params");
  out.takes_context = params && params->find("cache_context");
  const Node* functions = root.find("functions");
  out.has_step = functions && functions->find("step");
  out.has_embed = functions && functions->find("embed");
  return out;
}

void build_model(const Family& family, const std::string& config,
                 const std::function<void()>& build) {
  try {
    build();
  } catch (const Error& e) {
    const auto folder_of = [](const std::string& file) {
      return std::filesystem::weakly_canonical(file).parent_path();
    };
    const std::string& place = e.location().file;
    const bool is_of_settings = e.code() == ErrorCode::kConfig || e.code() == ErrorCode::kUsage;
    if (family.is_given || place.empty() || folder_of(place) != folder_of(family.file)) throw;
    if (!is_of_settings) throw Error(e.code(), e.message());  // of the weights
    fail(ErrorCode::kModel, config, ": its keys make no model: ", e.message(), " (",
         place.substr(place.rfind('/') + 1), ":", e.location().line, ")");
  }
}

}  // namespace paddle::llm
