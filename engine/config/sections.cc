#include "config/sections.h"

#include <algorithm>

namespace paddle::config {
namespace {

std::vector<TopSection>& sections() {
  static std::vector<TopSection> all;
  return all;
}

}  // namespace

void register_section(TopSection section) {
  std::vector<TopSection>& all = sections();
  const auto same = std::find_if(all.begin(), all.end(),
                                 [&](const TopSection& s) { return s.name == section.name; });
  if (same == all.end())
    all.push_back(std::move(section));
  else
    *same = std::move(section);
}

const std::vector<TopSection>& registered_sections() { return sections(); }

void add_other_sections(Schema& schema) {
  for (const TopSection& section : sections())
    if (!schema.find(section.name))
      schema.add(section.name, Spec::map(section.schema()).optional().doc(section.doc));
}

void check_other_sections(const Node& document, const std::vector<std::string>& own,
                          Diagnostics& diagnostics) {
  for (const TopSection& section : sections()) {
    if (std::find(own.begin(), own.end(), section.name) != own.end()) continue;
    const Node* const found = document.find(section.name);
    if (!found || found->is_null()) continue;
    Node copy = *found;
    diagnostics.guard([&] {
      if (section.prepare) section.prepare(copy, diagnostics);
      section.schema().resolve(copy, section.name, diagnostics);
    });
  }
}

}  // namespace paddle::config
