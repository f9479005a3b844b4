#include "config/sections.h"

#include <algorithm>

namespace paddle::config {
namespace {

std::vector<TopKeys>& all_keys() {
  static std::vector<TopKeys> all;
  return all;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Registry<TopSection>& section_registry() {
  static Registry<TopSection> sections("section of configs", {});
  return sections;
}

void register_section(TopSection section) {
  if (!section_registry().find(section.name)) section_registry().add({std::move(section)}, {});
}

void register_keys(TopKeys keys) {
  std::vector<TopKeys>& all = all_keys();
  const auto same =
      std::find_if(all.begin(), all.end(), [&](const TopKeys& k) { return k.owner == keys.owner; });
  if (same == all.end())
    all.push_back(std::move(keys));
  else
    *same = std::move(keys);
}

void add_other_sections(Schema& schema) {
  for (const auto& section : section_registry().all())
    if (!schema.find(section->name))
      schema.add(section->name, Spec::map(section->schema()).optional().doc(section->doc));
}

void check_other_sections(const Node& document, const std::vector<std::string>& own,
                          Diagnostics& diagnostics) {
  for (const auto& section : section_registry().all()) {
    if (contains(own, section->name)) continue;
    const Node* const found = document.find(section->name);
    if (!found || found->is_null()) continue;
    Node copy = *found;
    diagnostics.guard([&] {
      if (section->prepare) section->prepare(copy, diagnostics);
      section->schema().resolve(copy, section->name, diagnostics);
    });
  }
}

void check_other_keys(const Node& document, const std::vector<std::string>& own,
                      Diagnostics& diagnostics) {
  if (all_keys().empty()) return check_other_sections(document, own, diagnostics);
  if (!document.is_map()) return;
  Schema all;
  const auto add = [&](const std::string& name, const Spec& spec) {
    const bool is_left_out = spec.is_required() && !document.find(name);
    if (!all.find(name)) all.add(name, is_left_out ? Spec::any() : spec);
  };
  for (const std::string& name : own) add(name, Spec::any());
  for (const TopKeys& keys : all_keys())
    for (const Schema::Key& key : keys.schema().keys()) add(key.name, key.spec);
  const auto sections = section_registry().all();
  for (const auto& section : sections) add(section->name, Spec::map(section->schema()).optional());
  Node copy = document;
  Diagnostics found;
  for (const auto& section : sections)
    if (Node* const given = copy.find(section->name);
        given && !given->is_null() && section->prepare && !contains(own, section->name))
      found.guard([&] { section->prepare(*given, found); });
  found.guard([&] { all.resolve(copy, "", found); });
  if (found.empty())
    for (const TopKeys& keys : all_keys())
      if (keys.check) found.guard([&] { keys.check(copy, found); });
  for (const Error& error : found.errors()) diagnostics.add(error);
}

}  // namespace paddle::config
