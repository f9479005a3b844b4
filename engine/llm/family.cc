#include "llm/family.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/files.h"
#include "config/document.h"
#include "llm/expression.h"

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
  const std::string self = program_path();
  const std::string bin = self.substr(0, self.rfind('/'));
  for (const char* place : {"/../share/paddle/models/llm", "/../../models/llm"}) {
    const std::string folder = bin + place;
    if (!is_directory(folder)) continue;
    for (const std::string& name : list_directory(folder))
      if (name.ends_with(".yaml") && !name.ends_with(".rules.yaml") &&
          find_section(read_family(folder + "/" + name), files))
        return folder + "/" + name;
  }
  fail(ErrorCode::kModel, files.config, ": there is no model family for the type '", files.type,
       "'; name a model file with --family");
}

/// Keys that transformers writes into the config of any model: how to generate, train, report and
/// store, but nothing of what the model computes.
constexpr const char* kKeysOfAllConfigs[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
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
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
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
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

/// Names in an expression.
std::set<std::string> names_of(const std::string& expression) {
  std::set<std::string> out;
  std::string name;
  for (const char c : expression + " ") {
    const bool part =
        c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (part) {
      name += c;
    } else if (!name.empty()) {
      out.insert(std::exchange(name, ""));
    }
  }
  return out;
}

/// Refuses a key, at `path` in the model's files, that no expression names, and such keys of its
/// value.
void check_known(const ModelFiles& files, const std::set<std::string>& known,
                 const std::string& key, const std::string& path, const jinja::Value* value) {
  if (!known.contains(key))
    fail(ErrorCode::kModel, files.config, ": the family does not know the key '", path,
         "', which may change the model; list it in `unread` of its `sources` if it does not");
  if (!value || !value->is_dict()) return;
  for (const auto& [inner, inner_value] : value->dict().entries)
    if (inner.is_string())
      check_known(files, known, inner.string(), str(path, ".", inner.string()), &inner_value);
}

/// Reads the params of the family, as overrides; every key of the model's files must have been
/// read.
void read_params(const Node& section, const ModelFiles& files, Family& family) {
  const jinja::Value variables = std::make_shared<const jinja::Dict>(files.variables);
  std::vector<std::string>& out = family.overrides;
  std::set<std::string> known, ignored = {"model_type"};
  if (files.kind == "huggingface")
    ignored.insert(std::begin(kKeysOfAllConfigs), std::end(kKeysOfAllConfigs));
  const auto read = [&](const Node& expression) {
    known.merge(names_of(expression.as_string()));
    return evaluate(expression, variables);
  };
  if (const Node* params = section.find("params"))
    for (const config::Entry& entry : params->entries) {
      std::string value = read(entry.value);
      // An override that is text and not an expression has quotes of its own.
      if (value.starts_with('"')) value = str("\"'", value.substr(1, value.size() - 2), "'\"");
      if (value == "null")
        fail(ErrorCode::kModel, files.config, ": no value for the param '", entry.key.text, "' (",
             entry.value.text, ")");
      out.push_back("params." + entry.key.text + "=" + value);
    }
  if (const Node* require = section.find("require"))
    for (const Node& condition : require->items)
      if (read(condition) != "true")
        fail(ErrorCode::kModel, files.config, ": models of type '", files.type,
             "' are supported only where ", condition.text);
  if (const Node* context = section.find("context"))
    family.context = integer_of(*context, read(*context));
  if (const Node* adapters = section.find("adapters")) {
    const Node *match = adapters->find("match"), *head = adapters->find("head");
    if (!match || !head)
      throw Error(ErrorCode::kConfig, "expected 'match' and 'head'", adapters->location());
    family.reordered = match->as_string();
    family.reordered_head = integer_of(*head, read(*head));
  }
  if (const Node* unread = section.find("unread"))
    for (const Node& key : unread->items) ignored.insert(key.text);
  for (const std::string& key : files.keys)
    if (!ignored.contains(key))
      check_known(files, known, key, key, files.variables.find(std::string_view(key)));
}

}  // namespace

Family find_family(const ModelFiles& files, const std::string& family) {
  Family out;
  out.file = family.empty() ? find_family_file(files) : family;
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
  read_params(*section, files, out);
  const Node* params = root.find("params");
  out.takes_context = params && params->find("cache_context");
  const Node* functions = root.find("functions");
  out.has_step = functions && functions->find("step");
  out.has_embed = functions && functions->find("embed");
  return out;
}

}  // namespace paddle::llm
