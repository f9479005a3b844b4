#pragma once
// The keys that kinds of plug-ins declare (base/kind_options.h): as YAML, as a schema, and their
// values in a config.

#include <functional>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "base/registry.h"
#include "config/overrides.h"
#include "config/schema.h"

namespace paddle::config {

/// Keys as a map from names to `{type, required, default, doc}`; none for null, "" or an empty
/// document. kConfig with its place in `file` for what is none, or for a key among `taken`.
std::vector<KindKey> read_kind_keys(const char* yaml, const std::string& file,
                                    const std::vector<std::string>& taken);

/// The same of a document's node.
std::vector<KindKey> read_kind_keys(const Node& node, const std::vector<std::string>& taken);

Schema schema_of(const std::vector<KindKey>& keys);

/// The values of the keys in a section that was checked against the schema. `resolve` makes paths
/// absolute.
KindOptions options_of(const std::vector<KindKey>& keys, const Section& section,
                       const std::function<std::string(const Node&)>& resolve = resolve_path);

/// The chosen kind of a registry whose entries have `keys`: its name, or `{kind: NAME, KEY:
/// value}`. What does not fit is added to `diagnostics`; the name is then "".
template <class Kind>
KindChoice read_choice(const Registry<Kind>& kinds, Node value, const std::string& path,
                       Diagnostics& diagnostics) {
  std::vector<std::pair<std::string, Schema>> schemas;
  for (const auto& kind : kinds.all()) schemas.emplace_back(kind->name, schema_of(kind->keys));
  Diagnostics own;
  Spec::choice("kind", std::move(schemas)).resolve(value, path, own);
  if (!own.empty()) {
    diagnostics.guard([&] { own.raise(); });
    return {};
  }
  const Section section(value);
  const auto kind = kinds.find(section.text("kind"));
  return {kind->name, options_of(kind->keys, section)};
}

}  // namespace paddle::config
