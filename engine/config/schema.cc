#include "config/schema.h"

#include <algorithm>
#include <cmath>

#include "base/duration.h"
#include "base/update_count.h"
#include "config/overrides.h"

namespace paddle::config {
namespace {

/// For an unknown name such as "acme.gamma", which only a plug-in has.
std::string hint_of_plugin(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos || dot == 0
             ? ""
             : str(" (is the plug-in ", name.substr(0, dot), " loaded?)");
}

Node default_node(const std::string& yaml) {
  auto source = std::make_shared<SourceText>(SourceKind::kDefault, "default", yaml);
  Diagnostics diagnostics;
  Node node = parse_yaml(source, diagnostics);
  ensure(diagnostics.empty(), "a default that is not YAML: ", yaml);
  return node;
}

std::string inner_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

template <class T>
std::vector<std::string> names_of(const std::vector<std::pair<std::string, T>>& pairs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : pairs) names.push_back(name);
  return names;
}

}  // namespace

Spec Spec::word(std::vector<std::string> words) {
  Spec spec(Type::kWord);
  spec.words_ = std::move(words);
  return spec;
}

Spec Spec::list(Spec element) {
  Spec spec(Type::kList);
  spec.inner_.push_back(std::move(element));
  return spec;
}

Spec Spec::map(Schema schema) {
  Spec spec(Type::kMap);
  spec.schemas_.emplace_back("", std::make_shared<Schema>(std::move(schema)));
  return spec;
}

Spec Spec::map_of(Spec value) {
  Spec spec(Type::kMapOf);
  spec.inner_.push_back(std::move(value));
  return spec;
}

Spec Spec::choice(std::string key, std::vector<std::pair<std::string, Schema>> schemas) {
  Spec spec(Type::kChoice);
  spec.key_ = std::move(key);
  for (auto& [name, schema] : schemas) {
    spec.schemas_.emplace_back(name, std::make_shared<Schema>(std::move(schema)));
  }
  return spec;
}

Spec& Spec::otherwise(Schema schema) {
  otherwise_ = std::make_shared<Schema>(std::move(schema));
  return *this;
}

Spec Spec::named(std::string what, std::vector<std::pair<std::string, Spec>> values) {
  Spec spec(Type::kNamed);
  spec.key_ = std::move(what);
  for (auto& [name, value] : values) {
    spec.words_.push_back(name);
    spec.inner_.push_back(std::move(value));
  }
  return spec;
}

Spec& Spec::required() {
  required_ = true;
  return *this;
}
Spec& Spec::optional() {
  optional_ = true;
  return *this;
}
Spec& Spec::fallback(std::string yaml) {
  fallback_ = std::move(yaml);
  return *this;
}
Spec& Spec::at_least(double bound) {
  low_ = bound;
  low_open_ = false;
  return *this;
}
Spec& Spec::at_most(double bound) {
  high_ = bound;
  high_open_ = false;
  return *this;
}
Spec& Spec::above(double bound) {
  low_ = bound;
  low_open_ = true;
  return *this;
}
Spec& Spec::below(double bound) {
  high_ = bound;
  high_open_ = true;
  return *this;
}
Spec& Spec::length(size_t least, size_t most) {
  least_ = least;
  most_ = most;
  return *this;
}
Spec& Spec::doc(std::string line) {
  doc_ = std::move(line);
  return *this;
}
Spec& Spec::or_else(Spec other) {
  others_.push_back(std::move(other));
  return *this;
}

std::string Spec::expectation() const {
  std::string out;
  switch (type_) {
    case Type::kInt:
      out = "an integer";
      break;
    case Type::kFloat:
      out = "a number";
      break;
    case Type::kBool:
      out = "true or false";
      break;
    case Type::kText:
      out = "text";
      break;
    case Type::kPath:
      out = "a path";
      break;
    case Type::kDuration:
      out = kDurationForms;
      break;
    case Type::kUpdates:
      out = "an integer";
      break;
    case Type::kWord:
      out = "one of " + join(words_, ", ");
      break;
    case Type::kList:
      out = "a list";
      break;
    case Type::kMap:
    case Type::kMapOf:
      out = "a map";
      break;
    case Type::kChoice:
      out = "a map with '" + key_ + "'";
      break;
    case Type::kNamed:
      out = "a " + key_ + " as `name: {key: value}`";
      break;
    case Type::kAny:
      out = "a value";
      break;
  }
  if (low_) out += str(low_open_ ? " above " : " of at least ", *low_);
  if (high_) out += str(low_ ? " and " : " ", high_open_ ? "below " : "at most ", *high_);
  if (type_ == Type::kUpdates) out += " or 'N epochs'";
  for (const Spec& other : others_)
    if (other.type_ != Type::kMap || type_ != Type::kChoice) out += " or " + other.expectation();
  return out;
}

bool Spec::fits_kind(const Node& node) const {
  switch (type_) {
    case Type::kInt:
      return node.try_int().has_value();
    case Type::kFloat:
      return node.try_double().has_value();
    case Type::kBool:
      return node.try_bool().has_value();
    case Type::kText:
    case Type::kPath:
      return node.is_scalar();
    case Type::kDuration:
      return node.is_scalar() && parse_duration(node.text).has_value();
    case Type::kUpdates:
      return node.is_scalar() && parse_update_count(node.text).has_value();
    case Type::kWord:
      return node.is_scalar() && std::find(words_.begin(), words_.end(), node.text) != words_.end();
    case Type::kList:
      return node.is_sequence();
    case Type::kMap:
    case Type::kMapOf:
    case Type::kNamed:
      return node.is_map();
    case Type::kChoice:
      return node.is_map() || node.is_scalar();
    case Type::kAny:
      return true;
  }
  return false;
}

bool Spec::needs_value() const {
  const bool section = type_ == Type::kMap || type_ == Type::kMapOf || type_ == Type::kAny ||
                       (type_ == Type::kChoice && !fallback_);
  return !section && !required_;
}

void Spec::resolve(Node& node, const std::string& path, Diagnostics& diagnostics) const {
  if (!fits_kind(node)) {
    for (const Spec& other : others_) {
      if (other.fits_kind(node)) return other.resolve(node, path, diagnostics);
    }
  }
  switch (type_) {
    case Type::kAny:
      return;
    case Type::kMap:
      return schemas_.front().second->resolve(node, path, diagnostics);
    case Type::kChoice:
      return resolve_choice(node, path, diagnostics);
    case Type::kNamed:
      return resolve_named(node, path, diagnostics);
    default:
      break;
  }
  if (!fits_kind(node)) {
    std::string hint;
    if (type_ == Type::kWord && node.is_scalar()) hint = did_you_mean(node.text, words_);
    if (node.is_quoted() && type_ != Type::kWord) {
      Node plain = node;
      plain.quote = Node::Quote::kPlain;
      if (fits_kind(plain)) hint = " in quotes, which is text";
    }
    return diagnostics.add(
        ErrorCode::kConfig,
        str("'", path, "': expected ", expectation(), ", found ", node.describe(), hint),
        node.location());
  }
  if (type_ == Type::kList) {
    if (node.items.size() < least_ || node.items.size() > most_) {
      diagnostics.add(ErrorCode::kConfig,
                      str("'", path, "': expected ",
                          least_ == most_     ? str(least_)
                          : most_ == SIZE_MAX ? str("at least ", least_)
                                              : str(least_, " to ", most_),
                          " items, found ", node.items.size()),
                      node.location());
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      inner_.front().resolve(node.items[i], str(path, ".", i), diagnostics);
    }
  } else if (type_ == Type::kMapOf) {
    for (Entry& entry : node.entries) {
      inner_.front().resolve(entry.value, inner_path(path, entry.key.text), diagnostics);
    }
  } else {
    resolve_scalar(node, path, diagnostics);
  }
}

void Spec::resolve_scalar(Node& node, const std::string& path, Diagnostics& diagnostics) const {
  if (type_ == Type::kInt) {
    check_range(node, static_cast<double>(*node.try_int()), path, diagnostics);
  } else if (type_ == Type::kFloat) {
    if (!std::isfinite(*node.try_double())) {
      return diagnostics.add(ErrorCode::kConfig,
                             str("'", path, "': expected ", expectation(), ", found ", node.text),
                             node.location());
    }
    check_range(node, *node.try_double(), path, diagnostics);
  } else if (type_ == Type::kDuration) {
    check_range(node, *parse_duration(node.text), path, diagnostics);
  } else if (type_ == Type::kUpdates) {
    if (const UpdateCount count = *parse_update_count(node.text); !count.is_in_epochs())
      check_range(node, static_cast<double>(count.updates), path, diagnostics);
  } else if (type_ == Type::kPath) {
    if (node.text.empty()) {
      diagnostics.add(ErrorCode::kConfig, str("'", path, "': an empty path"), node.location());
    } else {
      node.text = resolve_path(node);
    }
  }
}

void Spec::check_range(const Node& node, double value, const std::string& path,
                       Diagnostics& diagnostics) const {
  const bool too_low = low_ && (low_open_ ? !(value > *low_) : !(value >= *low_));
  const bool too_high = high_ && (high_open_ ? !(value < *high_) : !(value <= *high_));
  if (too_low || too_high) {
    diagnostics.add(ErrorCode::kConfig,
                    str("'", path, "': expected ", expectation(), ", found ", node.text),
                    node.location());
  }
}

void Spec::resolve_choice(Node& node, const std::string& path, Diagnostics& diagnostics) const {
  const std::vector<std::string> names = names_of(schemas_);
  if (node.is_scalar()) {
    Node map = make_map(node.source);
    map.offset = node.offset;
    map.set(key_, node);
    node = std::move(map);
  }
  const auto reject = [&](const Node& at, const std::string& message) {
    diagnostics.add(ErrorCode::kConfig, str("'", path, "': ", message), at.location());
  };
  if (!node.is_map()) {
    return reject(node, str("expected ", expectation(), ", found ", node.describe()));
  }
  const Node* chosen = node.find(key_);
  if (!chosen && otherwise_) return otherwise_->resolve(node, path, diagnostics);
  if (!chosen) return reject(node, str("'", key_, "' is missing: one of ", join(names, ", ")));
  for (const auto& [name, schema] : schemas_) {
    if (!chosen->is_scalar() || chosen->text != name) continue;
    Schema with_key = *schema;
    with_key.accept(key_);
    return with_key.resolve(node, path, diagnostics);
  }
  const std::string hint =
      chosen->is_scalar() ? did_you_mean(chosen->text, names) + hint_of_plugin(chosen->text) : "";
  reject(*chosen, str("expected one of ", join(names, ", "), " as '", key_, "', found ",
                      chosen->describe(), hint));
}

void Spec::resolve_named(Node& node, const std::string& path, Diagnostics& diagnostics) const {
  if (!node.is_map() || node.entries.size() != 1)
    return diagnostics.add(
        ErrorCode::kConfig,
        str("'", path, "': a ", key_, " reads `- name: {key: value}`, found ", node.describe()),
        node.location());
  Entry& entry = node.entries[0];
  const auto at = std::find(words_.begin(), words_.end(), entry.key.text);
  if (at == words_.end())
    return diagnostics.add(ErrorCode::kConfig,
                           str("'", path, "': unknown ", key_, " '", entry.key.text, "'",
                               did_you_mean(entry.key.text, words_), hint_of_plugin(entry.key.text),
                               "; there are: ", join(words_, ", ")),
                           entry.key.location());
  inner_[static_cast<size_t>(at - words_.begin())].resolve(
      entry.value, inner_path(path, entry.key.text), diagnostics);
}

Schema& Schema::add(std::string name, Spec spec) {
  keys_.push_back({std::move(name), std::move(spec)});
  return *this;
}

Schema& Schema::add_all(const Schema& other) {
  for (const Key& key : other.keys_) add(key.name, key.spec);
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(alternatives_, other.alternatives_);
  append(renamed_, other.renamed_);
  append(accepted_, other.accepted_);
  return *this;
}

Schema& Schema::one_of(std::vector<std::string> keys) {
  alternatives_.push_back(std::move(keys));
  return *this;
}

Schema& Schema::renamed(std::string old_name, std::string new_name) {
  renamed_.emplace_back(std::move(old_name), std::move(new_name));
  return *this;
}

Schema& Schema::accept(std::string name) {
  accepted_.push_back(std::move(name));
  return *this;
}

Schema& Schema::accept_others() {
  accepts_others_ = true;
  return *this;
}

bool Spec::has_key(const std::string& key) const {
  const bool is_map = type_ == Type::kMap || type_ == Type::kChoice;
  const auto has = [&](const auto& each) { return each.second->find(key) != nullptr; };
  return (is_map && std::ranges::any_of(schemas_, has)) ||
         std::ranges::any_of(others_, [&](const Spec& other) { return other.has_key(key); });
}

std::vector<std::string> Schema::sections_with(const std::string& key) const {
  std::vector<std::string> out;
  for (const Key& section : keys_)
    if (section.spec.has_key(key)) out.push_back(section.name);
  return out;
}

const Spec* Schema::find(const std::string& name) const {
  for (const Key& key : keys_) {
    if (key.name == name) return &key.spec;
  }
  return nullptr;
}

void Schema::resolve(Node& map, const std::string& path, Diagnostics& diagnostics) const {
  const std::string in = path.empty() ? "" : " in '" + path + "'";
  if (map.is_null()) {
    map.kind = Node::Kind::kMap;
  } else if (!map.is_map()) {
    return diagnostics.add(
        ErrorCode::kConfig,
        str(path.empty() ? "" : "'" + path + "': ", "expected a map, found ", map.describe()),
        map.location());
  }
  std::vector<std::string> names;
  for (const Key& key : keys_) names.push_back(key.name);
  std::vector<std::string> aliases;  // of keys that are given under their own names as well
  for (Entry& entry : map.entries) {
    for (const auto& [old_name, new_name] : renamed_) {
      if (entry.key.text != old_name) continue;
      diagnostics.warn(str("'", old_name, "' is now called '", new_name, "'"),
                       entry.key.location());
      if (Node* other = map.find(new_name)) {
        // One of them may override the other from the command line.
        const bool over = entry.value.source_kind() == SourceKind::kCommandLine;
        const bool under = other->source_kind() == SourceKind::kCommandLine;
        if (over == under)
          diagnostics.add(ErrorCode::kConfig,
                          str("'", old_name, "' is another name of '", new_name,
                              "', which is given too; remove one of them"),
                          entry.key.location());
        if (over && !under) *other = entry.value;
        aliases.push_back(entry.key.text);
      } else {
        entry.key.text = new_name;
      }
      break;
    }
    if (std::find(aliases.begin(), aliases.end(), entry.key.text) != aliases.end()) continue;
    const Spec* spec = find(entry.key.text);
    if (spec) {
      if (entry.value.is_empty() && spec->needs_value())
        diagnostics.add(
            ErrorCode::kConfig,
            str("'", inner_path(path, entry.key.text), "': the value is empty; expected ",
                spec->expectation(), ", or leave the key out"),
            entry.value.location());
      else if (entry.value.is_null() && spec->is_scalar() && spec->fallback() &&
               *spec->fallback() != "null")
        diagnostics.add(
            ErrorCode::kConfig,
            str("'", inner_path(path, entry.key.text), "': the value is null; expected ",
                spec->expectation(), ", or leave the key out"),
            entry.value.location());
      const bool absent = entry.value.is_null() && !spec->is_required();
      if (absent && spec->fallback() && *spec->fallback() != "null") {
        entry.value = default_node(*spec->fallback());
      }
      if (!entry.value.is_null() || spec->is_required()) {
        spec->resolve(entry.value, inner_path(path, entry.key.text), diagnostics);
      }
    } else if (!accepts_others_ &&
               std::find(accepted_.begin(), accepted_.end(), entry.key.text) == accepted_.end()) {
      diagnostics.add(
          ErrorCode::kConfig,
          str("unknown key '", entry.key.text, "'", in, did_you_mean(entry.key.text, names)),
          entry.key.location());
    }
  }
  for (const std::string& alias : aliases) map.erase(alias);
  check_alternatives(map, path, diagnostics);
  for (const Key& key : keys_) {
    if (map.find(key.name)) continue;
    if (key.spec.is_required()) {
      diagnostics.add(ErrorCode::kConfig,
                      str("'", key.name, "' is missing", in, " (", key.spec.expectation(),
                          key.spec.doc().empty() ? "" : ": " + key.spec.doc(), ")"),
                      map.location());
    } else if (key.spec.fallback()) {
      Node value = default_node(*key.spec.fallback());
      if (!value.is_null()) key.spec.resolve(value, inner_path(path, key.name), diagnostics);
      map.set(key.name, std::move(value));
    } else if (key.spec.type() == Spec::Type::kMap && !key.spec.is_optional()) {
      // A section that is left out has the defaults of its keys, unless one of them is required.
      Node value = make_map(default_node("{}").source);
      Diagnostics inner;
      key.spec.resolve(value, inner_path(path, key.name), inner);
      if (inner.empty()) map.set(key.name, std::move(value));
    }
  }
}

void Schema::check_alternatives(const Node& map, const std::string& path,
                                Diagnostics& diagnostics) const {
  for (const std::vector<std::string>& keys : alternatives_) {
    std::vector<const Node*> found;
    bool empty = false;  // a key without a value is its owner's to report
    for (const Entry& entry : map.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key.text) == keys.end()) continue;
      if (entry.value.is_null())
        empty = true;
      else
        found.push_back(&entry.key);
    }
    if (found.size() == 1 || (found.empty() && empty)) continue;
    std::string names;
    for (size_t i = 0; i < keys.size(); ++i)
      names += str(i == 0 ? "'" : i + 1 == keys.size() ? "' or '" : "', '", keys[i]);
    diagnostics.add(
        ErrorCode::kConfig,
        str(path.empty() ? "a config" : str("'", path, "'"), " has either ", names, "'"),
        found.empty() ? map.location() : found[1]->location());
  }
}

bool Section::has(const std::string& key) const {
  const Node* value = node_->find(key);
  return value && !value->is_null();
}

const Node& Section::at(const std::string& key) const {
  const Node* value = node_->find(key);
  ensure(value != nullptr, "the section has no key '", key, "'");
  return *value;
}

double Section::seconds(const std::string& key) const {
  const Node& node = at(key);
  if (const auto seconds = parse_duration(node.text); node.is_scalar() && seconds) return *seconds;
  throw Error(ErrorCode::kConfig, str(key, ": expected ", kDurationForms), node.location());
}

SourceLocation Section::location(const std::string& key) const {
  const Node* value = node_->find(key);
  return value ? value->location() : node_->location();
}

std::vector<int64_t> Section::integers(const std::string& key) const {
  const Node& value = at(key);
  if (!value.is_sequence()) return {value.as_int()};
  std::vector<int64_t> out;
  for (const Node& item : value.items) out.push_back(item.as_int());
  return out;
}

std::vector<double> Section::reals(const std::string& key) const {
  const Node& value = at(key);
  if (!value.is_sequence()) return {value.as_double()};
  std::vector<double> out;
  for (const Node& item : value.items) out.push_back(item.as_double());
  return out;
}

std::vector<std::string> Section::texts(const std::string& key) const {
  const Node& value = at(key);
  if (!value.is_sequence()) return {value.as_string()};
  std::vector<std::string> out;
  for (const Node& item : value.items) out.push_back(item.as_string());
  return out;
}

std::vector<Section> Section::sections(const std::string& key) const {
  std::vector<Section> out;
  for (const Node& item : at(key).items) out.emplace_back(item);
  return out;
}

}  // namespace paddle::config
