#include "plugin/text_kinds.h"

#include <algorithm>

#include "plugin/registration.h"

namespace paddle::plugin {

std::vector<KindKey> keys_of_entry(const TextEntry& entry, const std::vector<std::string>& taken) {
  const config::Node& node = entry.section.at("keys");
  check_names(node, "a key", taken);
  std::vector<KindKey> keys = config::read_kind_keys(node, taken);
  for (const KindKey& key : keys)
    if (key.type == KindKey::Type::kPath)
      throw Error(ErrorCode::kConfig,
                  str(entry.name, ": keys: ", key.name,
                      ": code cannot read files, so that no key "
                      "is a path"),
                  node.location());
  return keys;
}

TextCode code_of_entry(const TextEntry& entry, const config::Node& node,
                       std::vector<std::string> names) {
  entry.codes.push_back({node, std::move(names)});
  return read_text_code(node, entry.name, entry.file);
}

void check_names(const config::Node& map, const char* what, const std::vector<std::string>& taken) {
  for (const config::Entry& entry : map.entries) {
    const std::string& name = entry.key.text;
    if (!is_word(name))
      throw Error(
          ErrorCode::kConfig,
          str("'", name, "': the name of ", what, " has lower-case letters, digits and '_'"),
          entry.key.location());
    if (std::ranges::find(taken, name) != taken.end())
      throw Error(
          ErrorCode::kConfig,
          str("'", name, "' cannot be the name of ", what, ", since it has a meaning there"),
          entry.key.location());
  }
}

}  // namespace paddle::plugin
