// Plug-ins without code: NAME.plugin.yaml.

#include "config/schema.h"
#include "paddle/plugin/abi.h"
#include "plugin/registration.h"
#include "plugin/yaml_schema.h"

namespace paddle::plugin {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

/// The sections with entries of one's own names.
constexpr const char* kSections[] = {"operations", "losses",  "optimizers",
                                     "schedules",  "metrics", "transforms"};

/// The checked document; kDevice for another version of the interface.
config::Node read_file_of_plugin(const std::string& path) {
  config::Node document = config::parse_document(config::read_text_file(path), path);
  config::Diagnostics diagnostics;
  yaml_schema().resolve(document, "", diagnostics);
  diagnostics.raise();
  const Section plugin = Section(document).section("plugin");
  if (plugin.integer("abi") != PADDLE_PLUGIN_ABI_MAJOR)
    fail(ErrorCode::kDevice, path, ": is for version ", plugin.integer("abi"),
         " of the plug-in interface, this program has ", PADDLE_PLUGIN_ABI_MAJOR);
  return document;
}

/// The operations of a list of `precision`, which may be empty.
std::vector<config::Node> precision_list(const Section& file, const char* list) {
  const config::Node* const found = file.at("precision").find(list);
  return found ? found->items : std::vector<config::Node>();
}

Info info_of(const config::Node& document, const std::string& path) {
  const Section file(document), plugin = file.section("plugin");
  Info out;
  out.path = path;
  out.name = plugin.text("name");
  out.version = plugin.text("version");
  out.summary = plugin.text("summary");
  out.abi_major = PADDLE_PLUGIN_ABI_MAJOR;
  check_name(path, out.name, out.version);
  for (const char* const section : kSections) {
    std::vector<std::string> names;
    for (const config::Entry& entry : file.at(section).entries)
      names.push_back(out.name + "." + entry.key.text);
    if (!names.empty()) out.sections.emplace_back(section, std::move(names));
  }
  std::vector<std::string> changed;
  for (const char* const list : {"low", "full"})
    for (const config::Node& each : precision_list(file, list)) changed.push_back(each.text);
  if (!changed.empty()) out.sections.emplace_back("precision", std::move(changed));
  std::vector<std::string> split;
  for (const config::Entry& entry : file.at("sharding").entries) split.push_back(entry.key.text);
  if (!split.empty()) out.sections.emplace_back("sharding", std::move(split));
  out.has_rules = !file.text("rules").empty();
  if (out.sections.empty() && !out.has_rules)
    fail(ErrorCode::kConfig, path, ": has no section with operations, rules or other parts");
  return out;
}

/// Reads the entries of a section, and keeps the samples that they have.
template <class Kind>
void read_entries(const Section& file, const char* section, const std::string& path, Parts& parts,
                  std::vector<StatedCode>& codes, std::vector<Kind>& out,
                  Kind (*read)(const TextEntry&)) {
  check_names(file.at(section), "an entry", {});
  for (const config::Entry& entry : file.at(section).entries) {
    const TextEntry each{parts.plugin.provider.name + "." + entry.key.text, Section(entry.value),
                         path, codes};
    out.push_back(read(each));
    if (entry.value.find("samples"))
      parts.plugin.samples[each.name] = each.section.texts("samples");
  }
}

void read_lists(const Section& file, Parts& parts) {
  for (const bool is_low : {true, false})
    for (const config::Node& name : precision_list(file, is_low ? "low" : "full"))
      parts.precision.push_back({name.text, is_low, name.location()});
  read_sharding_rules(file.at("sharding"), parts);
}

}  // namespace

Schema yaml_schema() {
  Schema plugin;
  plugin.add("name", Spec::text().required().doc("the name, in front of that of each operation"));
  plugin.add("version", Spec::text().required().doc("such as 1.0.0"));
  plugin.add("abi", Spec::integer().required().doc("major version of the plug-in interface: 1"));
  plugin.add("summary", Spec::text().fallback("\"\"").doc("one line for `paddle plugin list`"));
  Schema precision;
  const Spec operations = Spec::list(Spec::text()).fallback("[]");
  precision.add("low", Spec(operations).doc("operations that compute in 16 bits"));
  precision.add("full", Spec(operations).doc("operations that compute in float32"));
  Schema file;
  file.add("plugin", Spec::map(plugin).required());
  file.add("operations", Spec::map_of(Spec::any()).fallback("{}").doc("operations, by name"));
  file.add("losses", Spec::map_of(Spec::any()).fallback("{}").doc("operations that are losses"));
  file.add("optimizers",
           Spec::map_of(optimizer_entry_spec()).fallback("{}").doc("optimizers, by name"));
  file.add(
      "schedules",
      Spec::map_of(schedule_entry_spec()).fallback("{}").doc("learning-rate schedules, by name"));
  file.add("metrics", Spec::map_of(metric_entry_spec()).fallback("{}").doc("metrics, by name"));
  file.add(
      "transforms",
      Spec::map_of(transform_entry_spec()).fallback("{}").doc("transforms of samples, by name"));
  file.add("precision", Spec::map(precision).doc("lists for mixed precision"));
  file.add("sharding",
           Spec::map_of(Spec::any()).fallback("{}").doc("rules for several ranks, by operation"));
  file.add("rules", Spec::text().fallback("\"\"").doc("rewrite rules"));
  return file;
}

Info yaml_info(const std::string& path) { return info_of(read_file_of_plugin(path), path); }

std::unique_ptr<Parts> read_yaml_plugin(const std::string& path) {
  const config::Node document = read_file_of_plugin(path);
  const Info info = info_of(document, path);
  check_not_loaded(path, info.name);
  Plugin plugin;
  plugin.provider = {info.name, info.version};
  plugin.summary = info.summary;
  auto parts = std::make_unique<Parts>(std::move(plugin));
  const std::string text = config::read_text_file(path);
  for (const auto& [section, names] : info.sections) {
    if (section != "operations" && section != "losses") continue;
    parts->definitions.add_schema(text, path, section);
    if (section == "losses") parts->plugin.losses = names;
  }
  parts->definitions.require_kernels({});
  const Section file(document);
  std::vector<StatedCode> codes;
  read_entries(file, "optimizers", path, *parts, codes, parts->optimizers, read_optimizer);
  read_entries(file, "schedules", path, *parts, codes, parts->schedules, read_schedule);
  read_entries(file, "metrics", path, *parts, codes, parts->metrics, read_metric);
  read_entries(file, "transforms", path, *parts, codes, parts->transforms, read_transform);
  read_lists(file, *parts);
  parts->definitions.check_codes(codes);
  parts->rules_file = path;
  if (const config::Node* const rules = document.find("rules"); rules && rules->is_scalar()) {
    parts->rules = rules->text;
    if (!parts->rules.empty())
      parts->rules_line = static_cast<int>(config::ScalarLocations(*rules).at(0).line);
  }
  return parts;
}

}  // namespace paddle::plugin
