#include "config/json_schema.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace paddle::config {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kSequence: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case Node::Kind::kMap: {
      Json map = Json::object();
      for (const Entry& entry : node.entries) map[entry.key.text] = json_of(entry.value);
      return map;
    }
    case Node::Kind::kScalar:
      break;
  }
  // A scalar of YAML is a number or a boolean where JSON reads it as one.
  const Json value = Json::parse(node.text, nullptr, /*allow_exceptions=*/false);
  return !node.is_quoted() && (value.is_number() || value.is_boolean()) ? value : Json(node.text);
}

Json number(double bound, bool integral) {
  return integral && std::abs(bound) < 9e15 ? Json(static_cast<int64_t>(bound)) : Json(bound);
}

}  // namespace

class JsonSchemaWriter {
 public:
  static Json object(const Schema& schema) {
    Json out = {{"type", "object"}, {"properties", Json::object()}};
    Json required = Json::array();
    for (const Schema::Key& key : schema.keys()) {
      out["properties"][key.name] = value(key.spec);
      if (key.spec.is_required()) required.push_back(key.name);
    }
    for (const auto& [old_name, new_name] : schema.renamed_)
      out["properties"][old_name] = {{"deprecated", true},
                                     {"description", "the old name of '" + new_name + "'"}};
    for (const std::string& name : schema.accepted_) out["properties"][name] = true;
    if (!required.empty()) out["required"] = required;
    for (const std::vector<std::string>& keys : schema.alternatives_) {
      Json one = Json::array();
      for (const std::string& key : keys) one.push_back({{"required", {key}}});
      out["allOf"].push_back({{"oneOf", one}});
    }
    if (!schema.accepts_others_) out["additionalProperties"] = false;
    return out;
  }

 private:
  /// The forms that a value may take, with its doc line and default. The value of a key may also be
  /// empty where that removes it.
  static Json value(const Spec& spec, bool of_key = true) {
    Json forms = Json::array();
    add_forms(spec, forms);
    // `${other.key}` stands for any scalar; an empty value removes an optional section.
    if (is_scalar(spec)) forms.push_back({{"type", "string"}, {"pattern", "\\$\\{.+\\}"}});
    if (of_key && !spec.is_required() && !spec.fallback()) forms.push_back({{"type", "null"}});
    const bool anything = spec.type() == Spec::Type::kAny;
    Json out = anything ? Json::object() : forms.size() == 1 ? forms[0] : Json{{"anyOf", forms}};
    if (!spec.doc().empty()) out["description"] = spec.doc();
    if (spec.fallback()) {
      Diagnostics diagnostics;
      const auto source =
          std::make_shared<SourceText>(SourceKind::kDefault, "default", *spec.fallback());
      out["default"] = json_of(parse_yaml(source, diagnostics));
    }
    return out;
  }

  static bool is_scalar(const Spec& spec) {
    switch (spec.type()) {
      case Spec::Type::kInt:
      case Spec::Type::kFloat:
      case Spec::Type::kBool:
      case Spec::Type::kWord:
        return true;
      default:
        return false;
    }
  }

  static void add_forms(const Spec& spec, Json& forms) {
    switch (spec.type()) {
      case Spec::Type::kInt:
      case Spec::Type::kFloat:
        forms.push_back(bounded(spec));
        break;
      case Spec::Type::kBool:
        forms.push_back({{"type", "boolean"}});
        break;
      case Spec::Type::kText:
      case Spec::Type::kPath:
        forms.push_back({{"type", {"string", "number", "boolean"}}});
        break;
      case Spec::Type::kDuration:
        forms.push_back({{"type", {"string", "number"}}});
        break;
      case Spec::Type::kUpdates:
        forms.push_back(bounded(spec));
        forms.push_back({{"type", "string"}, {"pattern", "^ *[0-9.]+ *(steps?|epochs?)? *$"}});
        break;
      case Spec::Type::kWord:
        forms.push_back({{"enum", spec.words_}});
        break;
      case Spec::Type::kList: {
        Json list = {{"type", "array"}, {"items", value(spec.inner_[0], false)}};
        if (spec.least_ > 0) list["minItems"] = spec.least_;
        if (spec.most_ != SIZE_MAX) list["maxItems"] = spec.most_;
        forms.push_back(std::move(list));
        break;
      }
      case Spec::Type::kMap:
        forms.push_back(object(*spec.schemas_[0].second));
        break;
      case Spec::Type::kMapOf:
        forms.push_back(
            {{"type", "object"}, {"additionalProperties", value(spec.inner_[0], false)}});
        break;
      case Spec::Type::kChoice:
        add_choices(spec, forms);
        break;
      case Spec::Type::kNamed:
        forms.push_back(one_of_names(spec));
        break;
      case Spec::Type::kAny:
        forms.push_back(Json::object());
        break;
    }
    for (const Spec& other : spec.others_) add_forms(other, forms);
  }

  static Json bounded(const Spec& spec) {
    const bool integral = spec.type() == Spec::Type::kInt || spec.type() == Spec::Type::kUpdates;
    Json out = {{"type", integral ? "integer" : "number"}};
    if (spec.low_)
      out[spec.low_open_ ? "exclusiveMinimum" : "minimum"] = number(*spec.low_, integral);
    if (spec.high_)
      out[spec.high_open_ ? "exclusiveMaximum" : "maximum"] = number(*spec.high_, integral);
    return out;
  }

  /// A map of one key out of several.
  static Json one_of_names(const Spec& spec) {
    Json out = {{"type", "object"}, {"properties", Json::object()}};
    for (size_t i = 0; i < spec.words_.size(); ++i)
      out["properties"][spec.words_[i]] = value(spec.inner_[i], false);
    out["minProperties"] = 1;
    out["maxProperties"] = 1;
    out["additionalProperties"] = false;
    return out;
  }

  /// A bare word, or a map whose key decides the schema of the rest.
  static void add_choices(const Spec& spec, Json& forms) {
    Json names = Json::array();
    for (const auto& [name, schema] : spec.schemas_) names.push_back(name);
    forms.push_back({{"enum", names}});
    for (const auto& [name, schema] : spec.schemas_) {
      Json form = object(*schema);
      Json properties = {{spec.key_, {{"const", name}}}};
      properties.update(form["properties"]);
      form["properties"] = std::move(properties);
      if (!form.contains("required")) form["required"] = Json::array();
      form["required"].push_back(spec.key_);
      forms.push_back(std::move(form));
    }
    if (spec.otherwise_) forms.push_back(object(*spec.otherwise_));
  }
};

std::string json_schema(const Schema& schema, const std::string& title) {
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  out.update(JsonSchemaWriter::object(schema));
  return out.dump(2) + "\n";
}

}  // namespace paddle::config
