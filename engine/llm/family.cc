#include "llm/family.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/files.h"
#include "config/document.h"
#include "text/jinja/template.h"

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

std::string evaluate(const Node& expression, const jinja::Value& variables) {
  try {
    return jinja::Template("{{ (" + expression.as_string() + ") | tojson }}", "").render(variables);
  } catch (const Error& e) {
    throw Error(ErrorCode::kConfig, "'" + expression.as_string() + "': " + e.message(),
                expression.location());
  }
}

int64_t integer_of(const Node& expression, const std::string& value) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size())
    throw Error(ErrorCode::kConfig,
                str("'", expression.as_string(), "' is ", value, ", expected an integer"),
                expression.location());
  return out;
}

/// Reads the params of the family, as overrides; every key of the model's files must have been
/// read.
void read_params(const Node& section, const ModelFiles& files, Family& family) {
  const jinja::Value variables = std::make_shared<const jinja::Dict>(files.variables);
  std::vector<std::string>& out = family.overrides;
  std::set<std::string> known = {"model_type"};
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
    for (const Node& key : unread->items) known.insert(key.text);
  for (const std::string& key : files.keys)
    if (!known.contains(key))
      fail(ErrorCode::kModel, files.config, ": the family does not know the key '", key,
           "', which may change the model; list it in `unread` of its `sources` if it does not");
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
  const Node* functions = root.find("functions");
  out.has_step = functions && functions->find("step");
  out.has_embed = functions && functions->find("embed");
  return out;
}

}  // namespace paddle::llm
