#include "config/kind_keys.h"

#include <algorithm>
#include <array>

namespace paddle::config {
namespace {

using Type = KindKey::Type;

constexpr std::array<std::pair<const char*, Type>, 5> kTypes = {{{"path", Type::kPath},
                                                                 {"text", Type::kText},
                                                                 {"integer", Type::kInteger},
                                                                 {"real", Type::kReal},
                                                                 {"boolean", Type::kBoolean}}};

Spec spec_of(const KindKey& key) {
  Spec spec = key.type == Type::kInteger   ? Spec::integer()
              : key.type == Type::kReal    ? Spec::real()
              : key.type == Type::kBoolean ? Spec::boolean()
                                           : Spec::text();
  if (key.required) spec.required();
  if (key.fallback) spec.fallback(*key.fallback);
  return spec.doc(key.doc);
}

}  // namespace

std::vector<KindKey> read_kind_keys(const char* yaml, const std::string& file,
                                    const std::vector<std::string>& taken) {
  if (!yaml || !*yaml) return {};
  return read_kind_keys(parse_document(yaml, file), taken);
}

std::vector<KindKey> read_kind_keys(const Node& node, const std::vector<std::string>& taken) {
  std::vector<KindKey> out;
  if (node.is_null()) return out;
  if (!node.is_map())
    throw Error(ErrorCode::kConfig, "keys: expected a map, found " + node.describe(),
                node.location());
  for (const Entry& entry : node.entries) {
    KindKey key{.name = entry.key.text};
    const auto reject = [&](const std::string& why, const Node& at) {
      throw Error(ErrorCode::kConfig, str("keys: ", key.name, ": ", why), at.location());
    };
    if (key.name.empty() || std::ranges::find(taken, key.name) != taken.end())
      reject("is not a name for a key", entry.key);
    if (!entry.value.is_map()) reject("expected a map, found " + entry.value.describe(), entry.key);
    std::string type;
    if (const Node* const given = entry.value.find("type")) type = given->as_string();
    const auto* const known =
        std::ranges::find_if(kTypes, [&](const auto& each) { return each.first == type; });
    if (known == kTypes.end())
      reject("type: expected one of path, text, integer, real, boolean, found '" + type + "'",
             entry.value);
    key.type = known->second;
    for (const Entry& each : entry.value.entries) {
      const std::string& name = each.key.text;
      if (name == "required") {
        key.required = each.value.as_bool();
      } else if (name == "default") {
        key.fallback = each.value.as_string();
      } else if (name == "doc") {
        key.doc = each.value.as_string();
      } else if (name != "type") {
        reject("unknown key '" + name + "', expected type, required, default or doc", each.key);
      }
    }
    if (key.fallback) {
      Node value = make_scalar(*key.fallback, node.source);
      value.offset = entry.value.offset;
      Diagnostics diagnostics;
      spec_of(key).resolve(value, str("keys.", key.name, ".default"), diagnostics);
      diagnostics.raise();
    }
    out.push_back(std::move(key));
  }
  return out;
}

Schema schema_of(const std::vector<KindKey>& keys) {
  Schema out;
  for (const KindKey& key : keys) out.add(key.name, spec_of(key));
  return out;
}

KindOptions options_of(const std::vector<KindKey>& keys, const Section& section,
                       const std::function<std::string(const Node&)>& resolve) {
  KindOptions out;
  for (const KindKey& key : keys) {
    if (!section.has(key.name)) continue;
    std::string value = key.type == Type::kPath      ? resolve(section.at(key.name))
                        : key.type == Type::kInteger ? str(section.integer(key.name))
                        : key.type == Type::kReal    ? str(section.real(key.name))
                        : key.type == Type::kBoolean ? str(section.boolean(key.name))
                                                     : section.text(key.name);
    out.emplace_back(key.name, std::move(value));
  }
  return out;
}

}  // namespace paddle::config
