#include "text/grammar/schema_keywords.h"

#include <algorithm>

#include "base/text.h"

namespace paddle::grammar {

namespace {

using Kind = Json::Kind;

/// Keywords that constrain nothing.
const std::set<std::string>& annotations() {
  static const std::set<std::string> all = {
      "$schema",     "$id",     "$comment", "$defs",       "definitions", "title",
      "description", "default", "examples", "readOnly",    "writeOnly",   "deprecated",
      "$anchor",     "strict",  "example",  "nullable_of", "name"};
  return all;
}

const Json& resolved(const Json& root, const Json& schema) {
  const Json* reference = schema.find("$ref");
  if (!reference || !reference->text.starts_with("#")) return schema;
  const Json* const target = find_place(root, reference->text);
  return target ? *target : schema;
}

/// The constants that a schema allows, if it lists them.
std::vector<std::string> constants_of(const Json& schema) {
  std::vector<std::string> out;
  if (const Json* constant = schema.find("const")) out.push_back(constant->dump());
  if (const Json* values = schema.find("enum"))
    for (const Json& each : values->items) out.push_back(each.dump());
  return out;
}

bool share_none(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return !a.empty() && !b.empty() && std::none_of(a.begin(), a.end(), [&](const auto& each) {
    return std::count(b.begin(), b.end(), each) > 0;
  });
}

}  // namespace

const std::map<std::string, std::set<std::string>>& keywords() {
  static const std::map<std::string, std::set<std::string>> all = {
      {"object",
       {"properties", "required", "additionalProperties", "minProperties", "maxProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
      {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
      {"boolean", {}},
      {"null", {}}};
  return all;
}

const char* type_of(const Json& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kInteger:
      return "integer";
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "";
}

void check_keys(const Json& schema, const std::string& path, const std::set<std::string>& allowed) {
  for (const auto& [key, content] : schema.entries) {
    if (allowed.contains(key) || annotations().contains(key)) continue;
    std::set<std::string> every = {"type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"};
    for (const auto& [type, keys] : keywords()) every.insert(keys.begin(), keys.end());
    const std::vector<std::string> names(every.begin(), every.end());
    if (every.contains(key))
      reject_schema(path + "." + key, "is not supported with the other keywords");
    reject_schema(path + "." + key, "this keyword is not supported", did_you_mean(key, names));
  }
}
void check_alone(const Json& schema, const std::string& path, const char* keyword) {
  check_keys(schema, path, {keyword});
}

std::vector<std::string> types_of(const Json& schema, const std::string& path) {
  std::vector<std::string> out;
  const auto add = [&](const Json& type) {
    if (type.kind != Kind::kString || !keywords().contains(type.text)) {
      std::vector<std::string> names;
      for (const auto& [name, keys] : keywords()) names.push_back(name);
      reject_schema(path + ".type", type.dump(), " is not a type",
                    type.kind == Kind::kString ? did_you_mean(type.text, names) : "");
    }
    out.push_back(type.text);
  };
  if (const Json* type = schema.find("type")) {
    if (type->kind == Kind::kArray)
      for (const Json& each : type->items) add(each);
    else
      add(*type);
    if (out.empty()) reject_schema(path + ".type", "there is no type");
    // An integer is a number.
    if (std::count(out.begin(), out.end(), "number") > 0) std::erase(out, "integer");
    return out;
  }
  // Without a type, the keywords say which values are meant.
  for (const auto& [type, keys] : keywords())
    if (type != "integer" && std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
          return schema.find(key) != nullptr;
        }))
      out.push_back(type);
  return out;
}

void check_type(const Json& schema, const Json& found, const std::string& path) {
  const std::vector<std::string> types = types_of(schema, path);
  const std::string type = type_of(found);
  if (!schema.find("type") || std::count(types.begin(), types.end(), type) > 0) return;
  if (type == "integer" && std::count(types.begin(), types.end(), "number") > 0) return;
  reject_schema(path, found.dump(), " is not of the type that the schema requires");
}

const Json* find_place(const Json& root, std::string_view reference) {
  const Json* target = &root;
  std::string_view left = reference.substr(1);
  while (target && !left.empty()) {
    if (left[0] != '/') return nullptr;
    left.remove_prefix(1);
    const size_t end = std::min(left.find('/'), left.size());
    std::string key(left.substr(0, end));
    left.remove_prefix(end);
    for (const auto& [escape, with] : {std::pair<const char*, char>{"~1", '/'}, {"~0", '~'}})
      for (size_t at = key.find(escape); at != key.npos; at = key.find(escape, at + 1))
        key.replace(at, 2, 1, with);
    if (target->kind == Kind::kArray) {
      const bool number =
          !key.empty() && key.size() < 6 &&
          std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
      const size_t index = number ? static_cast<size_t>(std::stoul(key)) : target->items.size();
      target = index < target->items.size() ? &target->items[index] : nullptr;
    } else {
      target = target->find(key);
    }
  }
  return target;
}

bool are_disjoint(const Json& root, const Json& first, const Json& second,
                  const std::string& path) {
  const Json &a = resolved(root, first), &b = resolved(root, second);
  if (share_none(constants_of(a), constants_of(b))) return true;
  const auto kinds = [&](const Json& schema) {
    std::vector<std::string> out =
        schema.kind == Kind::kObject ? types_of(schema, path) : std::vector<std::string>{};
    if (out.empty())
      if (const auto constants = constants_of(schema); !constants.empty()) {
        if (const Json* constant = schema.find("const")) out.push_back(type_of(*constant));
        if (const Json* values = schema.find("enum"))
          for (const Json& each : values->items) out.push_back(type_of(each));
      }
    for (std::string& type : out)
      if (type == "integer") type = "number";
    return out;
  };
  if (share_none(kinds(a), kinds(b))) return true;
  const Json *properties = a.find("properties"), *others = b.find("properties");
  if (!properties || !others) return false;
  const auto requires_key = [](const Json& schema, const std::string& key) {
    const Json* required = schema.find("required");
    return required && std::any_of(required->items.begin(), required->items.end(),
                                   [&](const Json& each) { return each.text == key; });
  };
  for (const auto& [key, property] : properties->entries) {
    const Json* other = others->find(key);
    if (other && requires_key(a, key) && requires_key(b, key) &&
        share_none(constants_of(property), constants_of(*other)))
      return true;
  }
  return false;
}

}  // namespace paddle::grammar
