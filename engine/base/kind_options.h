#pragma once
// Kinds of things that are added by name and have keys of their own in a config, such as a
// transport of a plug-in: `parallel: {transport: {kind: acme.ring, window: 4}}`. config/kind_keys.h
// reads the keys.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paddle {

/// A key that a kind declares.
struct KindKey {
  enum class Type { kText, kPath, kInteger, kReal, kBoolean };
  std::string name;
  Type type = Type::kText;
  bool required = false;
  std::optional<std::string> fallback = {};  ///< its value where it is left out
  std::string doc = {};
};

/// Key and value, as text: numbers in decimal, "true" or "false", absolute paths. The values are
/// checked; keys without one are left out.
using KindOptions = std::vector<std::pair<std::string, std::string>>;

/// A kind by its name, and its options.
struct KindChoice {
  std::string name;
  KindOptions options = {};
};

/// The values of keys that are left out.
inline KindOptions default_options(const std::vector<KindKey>& keys) {
  KindOptions out;
  for (const KindKey& key : keys)
    if (key.fallback) out.emplace_back(key.name, *key.fallback);
  return out;
}

/// A required key; "" if there is none.
inline std::string required_key(const std::vector<KindKey>& keys) {
  for (const KindKey& key : keys)
    if (key.required) return key.name;
  return "";
}

}  // namespace paddle
