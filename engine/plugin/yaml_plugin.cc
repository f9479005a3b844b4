// Plug-ins without code: NAME.plugin.yaml.

#include "config/schema.h"
#include "paddle/plugin/abi.h"
#include "plugin/registration.h"

namespace paddle::plugin {
namespace {

using config::Schema;
using config::Spec;

Schema file_schema() {
  Schema plugin;
  plugin.add("name", Spec::text().required().doc("the name, in front of that of each operation"));
  plugin.add("version", Spec::text().required().doc("such as 1.0.0"));
  plugin.add("abi", Spec::integer().required().doc("major version of the plug-in interface: 1"));
  plugin.add("summary", Spec::text().fallback("\"\"").doc("one line for `paddle plugin list`"));
  Schema file;
  file.add("plugin", Spec::map(plugin).required());
  file.add("operations", Spec::map_of(Spec::any()).fallback("{}"));
  file.add("rules", Spec::text().fallback("\"\"").doc("rewrite rules"));
  return file;
}

/// The checked document; kDevice for another version of the interface.
config::Node read_file_of_plugin(const std::string& path) {
  config::Node document = config::parse_document(config::read_text_file(path), path);
  config::Diagnostics diagnostics;
  file_schema().resolve(document, "", diagnostics);
  diagnostics.raise();
  const config::Section plugin = config::Section(document).section("plugin");
  if (plugin.integer("abi") != PADDLE_PLUGIN_ABI_MAJOR)
    fail(ErrorCode::kDevice, path, ": is for version ", plugin.integer("abi"),
         " of the plug-in interface, this program has ", PADDLE_PLUGIN_ABI_MAJOR);
  return document;
}

}  // namespace

Info yaml_info(const std::string& path) {
  const config::Node document = read_file_of_plugin(path);
  const config::Section plugin = config::Section(document).section("plugin");
  Info out;
  out.path = path;
  out.name = plugin.text("name");
  out.version = plugin.text("version");
  out.summary = plugin.text("summary");
  out.abi_major = PADDLE_PLUGIN_ABI_MAJOR;
  check_name(path, out.name, out.version);
  for (const config::Entry& entry : document.find("operations")->entries)
    out.operations.push_back(out.name + "." + entry.key.text);
  out.has_rules = !document.find("rules")->text.empty();
  if (out.operations.empty() && !out.has_rules)
    fail(ErrorCode::kConfig, path, ": has neither operations nor rules");
  return out;
}

std::unique_ptr<Parts> read_yaml_plugin(const std::string& path) {
  const Info info = yaml_info(path);
  check_not_loaded(path, info.name);
  Plugin plugin;
  plugin.provider = {info.name, info.version};
  plugin.summary = info.summary;
  auto parts = std::make_unique<Parts>(std::move(plugin));
  const std::string text = config::read_text_file(path);
  if (!info.operations.empty()) parts->definitions.add_schema(text, path, "operations");
  parts->definitions.require_kernels({});
  parts->rules_file = path;
  const config::Node document = config::parse_document(text, path);
  if (const config::Node* const rules = document.find("rules"); rules && rules->is_scalar()) {
    parts->rules = rules->text;
    parts->rules_line = static_cast<int>(config::ScalarLocations(*rules).at(0).line);
  }
  return parts;
}

}  // namespace paddle::plugin
