#include "text/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "base/text.h"
#include "text/grammar/numbers.h"
#include "text/grammar/regex.h"
#include "text/grammar/schema_keywords.h"

namespace paddle::grammar {

namespace {

using Kind = Json::Kind;

constexpr int64_t kMaxItems = 10'000;
constexpr size_t kMaxSchemas = 20'000;

/// Expressions of the formats, for the inside of strings.
const std::map<std::string, std::string>& formats() {
  static const std::string date =
      "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
      "02-(0[1-9]|1[0-9]|2[0-8]))";
  static const std::string time =
      "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]"
      ")";
  static const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  static const std::string label = "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?";
  static const std::map<std::string, std::string> all = {
      {"date", date},
      {"time", time},
      {"date-time", date + "T" + time},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
      {"ipv4", byte + "(\\." + byte + "){3}"},
      {"hostname", label + "(\\." + label + "){0,4}"},
      {"email",
       "[A-Za-z0-9_+-]{1,30}(\\.[A-Za-z0-9_+-]{1,30}){0,3}@" + label + "(\\." + label + "){1,4}"},
      {"uri", "https?://" + label + "(\\." + label + "){0,4}(/[A-Za-z0-9_~.-]{0,60}){0,8}"}};
  return all;
}

class Compiler {
 public:
  explicit Compiler(const Json& schema) : root_(schema), builder_("the schema") {
    const int32_t root = builder_.new_rule();
    spaces_ = builder_.new_rule();
    // A space, or a line break with indentation.
    const Part indented =
        builder_.sequence({builder_.text("\n"), builder_.repeat(builder_.text(" "), 0, 24)});
    builder_.define(spaces_, builder_.optional(builder_.choice({builder_.text(" "), indented})));
    builder_.define(root, value(schema, "$"));
    finish();
  }

  Grammar take() { return builder_.take(); }

 private:
  Part spaces() { return builder_.call(spaces_); }

  /// Rules that were called before they were defined.
  void finish() {
    while (!open_.empty()) {
      const Open next = open_.front();
      open_.pop_front();
      builder_.rename("the schema, " + next.path);
      builder_.define(next.rule, value(*next.schema, next.path));
    }
  }

  /// A call of the rule of a schema, which is compiled once.
  Part rule_of(const Json& schema, const std::string& path) {
    const auto found = rules_.find(&schema);
    if (found != rules_.end()) return builder_.call(found->second);
    if (rules_.size() >= kMaxSchemas)
      reject_schema(path, "there are more than ", kMaxSchemas, " parts");
    const int32_t rule = builder_.new_rule();
    rules_[&schema] = rule;
    open_.push_back({rule, &schema, path});
    return builder_.call(rule);
  }

  Part value(const Json& schema, const std::string& path) {
    if (schema.kind == Kind::kBoolean) {
      if (!schema.boolean) reject_schema(path, "no value is allowed here");
      return any_value();
    }
    if (schema.kind != Kind::kObject)
      reject_schema(path, "expected an object or a boolean, found ", type_of(schema));
    if (const Json* reference = schema.find("$ref")) {
      check_alone(schema, path, "$ref");
      return reference_to(*reference, path);
    }
    for (const char* key : {"anyOf", "oneOf"})
      if (const Json* choices = schema.find(key)) return alternatives(schema, *choices, key, path);
    if (const Json* all = schema.find("allOf")) {
      check_alone(schema, path, "allOf");
      if (all->kind != Kind::kArray || all->items.size() != 1)
        reject_schema(path + ".allOf", "is supported with one schema only");
      return value(all->items[0], path + ".allOf[0]");
    }
    if (const Json* constant = schema.find("const")) {
      check_keys(schema, path, {"const", "type"});
      check_type(schema, *constant, path + ".const");
      return literal(*constant, path + ".const");
    }
    if (const Json* values = schema.find("enum")) {
      check_keys(schema, path, {"enum", "type"});
      if (values->kind != Kind::kArray || values->items.empty())
        reject_schema(path + ".enum", "expected a list of values");
      std::vector<Part> parts;
      for (const Json& each : values->items) {
        check_type(schema, each, path + ".enum");
        parts.push_back(literal(each, path + ".enum"));
      }
      return builder_.choice(parts);
    }
    const std::vector<std::string> types = types_of(schema, path);
    std::set<std::string> known = {"type"};
    for (const std::string& type : types)
      known.insert(keywords().at(type).begin(), keywords().at(type).end());
    check_keys(schema, path, known);
    if (types.empty()) return any_value();
    std::vector<Part> parts;
    for (const std::string& type : types) parts.push_back(of_type(type, schema, path));
    return builder_.choice(parts);
  }

  Part of_type(const std::string& type, const Json& schema, const std::string& path) {
    if (type == "object") return object(schema, path);
    if (type == "array") return array(schema, path);
    if (type == "string") return string(schema, path);
    if (type == "boolean") return builder_.choice({builder_.text("true"), builder_.text("false")});
    if (type == "null") return builder_.text("null");
    return number(schema, path, type == "integer");
  }

  Part reference_to(const Json& reference, const std::string& path) {
    if (reference.kind != Kind::kString || !reference.text.starts_with("#"))
      reject_schema(path + ".$ref", reference.dump(), " is not a place in this schema (\"#/…\")");
    const Json* const target = find_place(root_, reference.text);
    if (!target) reject_schema(path + ".$ref", "there is no '", reference.text, "'");
    return rule_of(*target, reference.text);
  }

  Part alternatives(const Json& schema, const Json& choices, const char* key,
                    const std::string& path) {
    check_alone(schema, path, key);
    const std::string here = path + "." + key;
    if (choices.kind != Kind::kArray || choices.items.empty())
      reject_schema(here, "expected a list of schemas");
    if (key == std::string_view("oneOf"))
      for (size_t i = 0; i < choices.items.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (!are_disjoint(root_, choices.items[j], choices.items[i], here))
            reject_schema(
                here, "schemas ", j, " and ", i,
                " may both hold; they must differ in their types or in a required constant");
    std::vector<Part> parts;
    for (size_t i = 0; i < choices.items.size(); ++i)
      parts.push_back(rule_of(choices.items[i], str(here, "[", i, "]")));
    return builder_.choice(parts);
  }

  Part literal(const Json& constant, const std::string& path) {
    if (constant.kind == Kind::kNumber && !std::isfinite(constant.number))
      reject_schema(path, "is not a number that JSON has");
    return builder_.text(constant.dump());
  }

  // --- objects and arrays ---

  std::vector<std::pair<std::string, Part>> members_of(const Json& schema, const std::string& path,
                                                       std::set<std::string>& required) {
    std::vector<std::pair<std::string, Part>> out;
    if (const Json* list = schema.find("required")) {
      if (list->kind != Kind::kArray) reject_schema(path + ".required", "expected a list of names");
      for (const Json& each : list->items) {
        if (each.kind != Kind::kString)
          reject_schema(path + ".required", "expected a list of names");
        required.insert(each.text);
      }
    }
    std::set<std::string> declared;
    if (const Json* properties = schema.find("properties")) {
      if (properties->kind != Kind::kObject)
        reject_schema(path + ".properties", "expected an object");
      for (const auto& [key, property] : properties->entries) {
        if (!declared.insert(key).second)
          reject_schema(path + ".properties", "duplicate key '", key, "'");
        const std::string here = path + ".properties." + key;
        if (property.kind == Kind::kBoolean && !property.boolean && !required.contains(key))
          continue;
        out.emplace_back(key, rule_of(property, here));
      }
    }
    // Required names without a schema of their own are further properties.
    const Json* more = schema.find("additionalProperties");
    for (const std::string& key : required) {
      if (declared.contains(key)) continue;
      if (more && more->kind == Kind::kBoolean && !more->boolean)
        reject_schema(path + ".required", "'", key, "' is not among the properties");
      out.emplace_back(key, more ? rule_of(*more, path + ".additionalProperties") : any_value());
    }
    return out;
  }

  Part name_and_value(const std::string& key, Part content) {
    Json name;
    name.kind = Kind::kString;
    name.text = key;
    return builder_.sequence({builder_.text(name.dump()), builder_.text(":"), spaces(), content});
  }

  Part object(const Json& schema, const std::string& path) {
    std::set<std::string> required;
    const auto members = members_of(schema, path, required);
    const int64_t least = count(schema, "minProperties", path, 0),
                  most = count(schema, "maxProperties", path, -1);
    if (most >= 0 && least > most) reject_schema(path, "minProperties is above maxProperties");
    if (members.empty()) return free_object(schema, path, least, most);
    if (least > static_cast<int64_t>(required.size()))
      reject_schema(path + ".minProperties",
                    "is supported up to the number of required properties, or without properties");
    if (most >= 0 && most < static_cast<int64_t>(members.size()))
      reject_schema(path + ".maxProperties", "is less than the number of properties");
    // One rule for the members from each one on, where others came before, and where none did.
    const size_t n = members.size();
    std::vector<int32_t> after(n + 1), first(n + 1);
    for (size_t i = 0; i <= n; ++i) {
      after[i] = builder_.new_rule();
      first[i] = builder_.new_rule();
    }
    builder_.define(after[n], builder_.nothing());
    builder_.define(first[n], builder_.nothing());
    for (size_t i = 0; i < n; ++i) {
      const auto& [key, content] = members[i];
      for (const bool is_first : {false, true}) {
        Part member = name_and_value(key, is_first ? content : builder_.copy(content));
        if (!is_first) member = builder_.sequence({builder_.text(","), spaces(), member});
        Part part = builder_.sequence({member, builder_.call(after[i + 1])});
        if (!required.contains(key))
          part = builder_.choice({part, builder_.call(is_first ? first[i + 1] : after[i + 1])});
        builder_.define(is_first ? first[i] : after[i], part);
      }
    }
    return builder_.sequence(
        {builder_.text("{"), spaces(), builder_.call(first[0]), spaces(), builder_.text("}")});
  }

  /// An object with any names.
  Part free_object(const Json& schema, const std::string& path, int64_t least, int64_t most) {
    const Json* more = schema.find("additionalProperties");
    if (more && more->kind == Kind::kBoolean && !more->boolean) {
      if (least > 0) reject_schema(path + ".minProperties", "no property is allowed");
      return builder_.sequence({builder_.text("{"), spaces(), builder_.text("}")});
    }
    if (least > 1)
      reject_schema(path + ".minProperties", "is supported up to 1 where names are free");
    const auto member = [&] {
      return builder_.sequence(
          {plain_string(0, -1), builder_.text(":"), spaces(),
           more ? rule_of(*more, path + ".additionalProperties") : any_value()});
    };
    return list(
        "{", "}", [&](size_t) { return member(); }, {}, least, most);
  }

  Part array(const Json& schema, const std::string& path) {
    const int64_t least = count(schema, "minItems", path, 0),
                  most = count(schema, "maxItems", path, -1);
    if (most >= 0 && least > most) reject_schema(path, "minItems is above maxItems");
    if (const Json* unique = schema.find("uniqueItems");
        unique && (unique->kind != Kind::kBoolean || unique->boolean) && most != 0 && most != 1)
      reject_schema(path + ".uniqueItems", "is not supported");
    std::vector<Part> prefix;
    if (const Json* parts = schema.find("prefixItems")) {
      if (parts->kind != Kind::kArray)
        reject_schema(path + ".prefixItems", "expected a list of schemas");
      for (size_t i = 0; i < parts->items.size(); ++i)
        prefix.push_back(rule_of(parts->items[i], str(path, ".prefixItems[", i, "]")));
    }
    const Json* items = schema.find("items");
    if (items && items->kind == Kind::kBoolean && !items->boolean) {
      if (least > static_cast<int64_t>(prefix.size()))
        reject_schema(path + ".minItems", "is more than the items that are allowed");
      return list("[", "]", nullptr, prefix, least, static_cast<int64_t>(prefix.size()));
    }
    return list(
        "[", "]", [&](size_t) { return items ? rule_of(*items, path + ".items") : any_value(); },
        prefix, least, most);
  }

  /// Items between brackets: those of `prefix` first, then `item(i)`.
  template <class Item>
  Part list(const char* open, const char* close, Item item, const std::vector<Part>& prefix,
            int64_t least, int64_t most) {
    const auto separator = [&] { return builder_.sequence({builder_.text(","), spaces()}); };
    const auto fixed = static_cast<int64_t>(prefix.size());
    // From the last item to the first: what may follow it.
    Part rest = builder_.nothing();
    if constexpr (!std::is_same_v<Item, std::nullptr_t>) {
      const int64_t more = std::max<int64_t>(0, least - fixed);
      if (most < 0 || most > fixed) {
        const Part each = fixed > 0 ? builder_.sequence({separator(), item(0)})
                                    : builder_.sequence({separator(), item(0)});
        if (fixed > 0) {
          rest = builder_.repeat(each, more, most < 0 ? -1 : most - fixed);
        } else {
          // The first one has no separator.
          const Part others =
              builder_.repeat(each, std::max<int64_t>(0, more - 1), most < 0 ? -1 : most - 1);
          const Part all = builder_.sequence({item(0), others});
          rest = more > 0 ? all : builder_.optional(all);
        }
      }
    }
    for (int64_t i = std::min(fixed, most < 0 ? fixed : most); i-- > 0;) {
      std::vector<Part> parts;
      if (i > 0) parts.push_back(separator());
      parts.push_back(prefix[static_cast<size_t>(i)]);
      parts.push_back(rest);
      rest = builder_.sequence(parts);
      if (i >= least) rest = builder_.optional(rest);
    }
    return builder_.sequence({builder_.text(open), spaces(), rest, spaces(), builder_.text(close)});
  }

  int64_t count(const Json& schema, const char* key, const std::string& path,
                int64_t fallback) const {
    const Json* found = schema.find(key);
    if (!found) return fallback;
    if (found->kind != Kind::kInteger || found->integer < 0 || found->integer > kMaxItems)
      reject_schema(path + "." + key, "is ", found->dump(), ", expected an integer from 0 to ",
                    kMaxItems);
    return found->integer;
  }

  // --- strings and numbers ---

  /// A character of a string, as JSON writes it.
  Part string_character() {
    if (character_ < 0) {
      character_ = builder_.new_rule();
      const Part hex = builder_.choice({builder_.bytes('0', '9'), builder_.bytes('a', 'f')});
      builder_.define(
          character_,
          builder_.choice(
              {builder_.characters(0x20, 0x21), builder_.characters(0x23, 0x5B),
               builder_.characters(0x5D, 0x10FFFF),
               builder_.sequence(
                   {builder_.text("\\"),
                    builder_.choice({builder_.text("\""), builder_.text("\\"), builder_.text("/"),
                                     builder_.text("b"), builder_.text("f"), builder_.text("n"),
                                     builder_.text("r"), builder_.text("t"),
                                     builder_.sequence({builder_.text("u00"),
                                                        builder_.bytes('0', '1'), hex})})})}));
    }
    return builder_.call(character_);
  }

  Part quoted(Part content) {
    return builder_.sequence({builder_.text("\""), content, builder_.text("\"")});
  }
  Part plain_string(int64_t least, int64_t most) {
    return quoted(builder_.repeat(string_character(), least, most));
  }

  Part string(const Json& schema, const std::string& path) {
    const int64_t least = count(schema, "minLength", path, 0),
                  most = count(schema, "maxLength", path, -1);
    if (most >= 0 && least > most) reject_schema(path, "minLength is above maxLength");
    const Json *pattern = schema.find("pattern"), *format = schema.find("format");
    const bool bounded = least > 0 || most >= 0;
    if ((pattern != nullptr) + (format != nullptr) + bounded > 1)
      reject_schema(path, "only one of pattern, format, and bounds of the length is supported");
    if (pattern) {
      if (pattern->kind != Kind::kString) reject_schema(path + ".pattern", "expected a text");
      return quoted(
          regex_part(builder_, pattern->text, "the schema, " + path + ".pattern", false, true));
    }
    if (format) {
      const auto found = formats().find(format->text);
      if (found == formats().end()) {
        std::vector<std::string> names;
        for (const auto& [name, expression] : formats()) names.push_back(name);
        reject_schema(path + ".format", format->dump(), " is not supported; formats are ",
                      join(names, ", "));
      }
      return quoted(regex_part(builder_, found->second, path, true, false));
    }
    return plain_string(least, most);
  }

  static Decimal decimal_in(const Json& number) {
    if (number.kind == Kind::kInteger) return parse_decimal(std::to_string(number.integer));
    return number.text.empty() ? decimal_of(number.number) : parse_decimal(number.text);
  }

  Part number(const Json& schema, const std::string& path, bool integer) {
    NumberBounds bounds;
    const auto read = [&](const char* key, bool is_low, bool exclusive) {
      const Json* found = schema.find(key);
      if (!found) return;
      if (found->kind != Kind::kInteger && found->kind != Kind::kNumber)
        reject_schema(path + "." + key, "is ", found->dump(), ", expected a number");
      auto& bound = is_low ? bounds.low : bounds.high;
      auto& open = is_low ? bounds.low_open : bounds.high_open;
      const Decimal x = decimal_in(*found);
      const int order = bound ? compare(x, *bound) : 0;
      if (!bound || (is_low ? order > 0 : order < 0) || (order == 0 && exclusive)) {
        bound = x;
        open = exclusive;
      }
    };
    read("minimum", true, false);
    read("exclusiveMinimum", true, true);
    read("maximum", false, false);
    read("exclusiveMaximum", false, true);
    if (const Json* multiple = schema.find("multipleOf");
        multiple && !(integer && multiple->kind == Kind::kInteger && multiple->integer == 1))
      reject_schema(path + ".multipleOf", "is not supported");
    const auto part = number_part(builder_, bounds, integer);
    if (!part) reject_schema(path, "no number that can be written is within the bounds");
    return *part;
  }

  /// Any JSON value.
  Part any_value() {
    if (any_ < 0) {
      any_ = builder_.new_rule();
      static const Json kAny = [] {
        Json out;
        out.kind = Kind::kObject;
        return out;
      }();
      std::vector<Part> parts;
      for (const auto& [type, keys] : keywords())
        if (type != "integer") parts.push_back(of_type(type, kAny, "$"));
      builder_.define(any_, builder_.choice(parts));
    }
    return builder_.call(any_);
  }

  struct Open {
    int32_t rule;
    const Json* schema;
    std::string path;
  };

  const Json& root_;
  Builder builder_;
  int32_t spaces_ = -1, character_ = -1, any_ = -1;
  std::map<const Json*, int32_t> rules_;
  std::deque<Open> open_;
};

}  // namespace

Grammar compile_json_schema(const Json& schema) { return Compiler(schema).take(); }

Grammar json_object_grammar() {
  Json schema, type;
  schema.kind = Kind::kObject;
  type.kind = Kind::kString;
  type.text = "object";
  schema.entries.emplace_back("type", type);
  return compile_json_schema(schema);
}

}  // namespace paddle::grammar
