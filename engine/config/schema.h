#pragma once
// Strict sections of a configuration, declared once: keys with types, ranges, defaults and a doc
// line. `resolve` checks a document against a schema, reports everything that is wrong at once,
// and fills in the defaults; `Section` then reads the checked values.
//
//   Schema train;
//   train.add("epochs", Spec::integer().at_least(1).fallback("10").doc("passes over the data"));
//   train.add("lr", Spec::real().above(0).required());

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/document.h"

namespace paddle::config {

class Schema;
class JsonSchemaWriter;

/// The values that a key accepts.
class Spec {
 public:
  enum class Type {
    kInt,
    kFloat,
    kBool,
    kText,
    kWord,
    kPath,
    kDuration,
    kUpdates,
    kList,
    kMap,
    kMapOf,
    kChoice,
    kNamed,
    kAny
  };

  static Spec integer() { return Spec(Type::kInt); }
  static Spec real() { return Spec(Type::kFloat); }
  static Spec boolean() { return Spec(Type::kBool); }
  static Spec text() { return Spec(Type::kText); }
  /// A file or folder; relative ones are made absolute from the document's folder.
  static Spec path() { return Spec(Type::kPath); }
  /// A length of time (base/duration.h); bounds are in seconds.
  static Spec duration() { return Spec(Type::kDuration); }
  /// A number of updates, or 'N epochs' (base/update_count.h); bounds are in updates.
  static Spec updates() { return Spec(Type::kUpdates); }
  /// One of some words.
  static Spec word(std::vector<std::string> words);
  static Spec list(Spec element);
  static Spec map(Schema schema);
  /// A map with keys of the user's choice.
  static Spec map_of(Spec value);
  /// A map whose `key` decides the schema of its other keys; a bare word stands for `{key: word}`.
  static Spec choice(std::string key, std::vector<std::pair<std::string, Schema>> schemas);
  /// Of a choice: the schema of a map without the key.
  Spec& otherwise(Schema schema);
  /// A map of one key out of several, each with values of its own: `{resize: {height: 8}}`. `what`
  /// is what the keys are, for messages: "transform".
  static Spec named(std::string what, std::vector<std::pair<std::string, Spec>> values);
  /// Any value; it is checked elsewhere.
  static Spec any() { return Spec(Type::kAny); }

  Spec& required();
  /// Of a map: it stays absent where it is left out, in place of having the defaults of its keys.
  Spec& optional();
  /// The value when the key is absent, as YAML. Without one the key is then absent (or `null`).
  Spec& fallback(std::string yaml);
  Spec& at_least(double bound);
  Spec& at_most(double bound);
  Spec& above(double bound);
  Spec& below(double bound);
  /// Bounds on the length of a list.
  Spec& length(size_t least, size_t most);
  Spec& doc(std::string line);
  /// Another form that the value may take; tried when this one's kind of node does not fit.
  Spec& or_else(Spec other);

  Type type() const { return type_; }
  const std::string& doc() const { return doc_; }
  const std::optional<std::string>& fallback() const { return fallback_; }
  bool is_required() const { return required_; }
  bool is_optional() const { return optional_; }
  /// A number, a truth value or a text of any kind.
  bool is_scalar() const {
    return type_ != Type::kList && type_ != Type::kMap && type_ != Type::kMapOf &&
           type_ != Type::kChoice && type_ != Type::kNamed && type_ != Type::kAny;
  }
  /// Whether `key:` without a value is a mistake. Sections may be empty: `data.valid=` removes one.
  /// A required value has a message of its own.
  bool needs_value() const;
  /// Of a map: whether it may have this key.
  bool has_key(const std::string& key) const;
  /// "an integer of at least 1": for messages and reference pages.
  std::string expectation() const;

  /// Checks and completes one value. `path` is its dotted path, for messages.
  void resolve(Node& node, const std::string& path, Diagnostics& diagnostics) const;

 private:
  friend class JsonSchemaWriter;
  explicit Spec(Type type) : type_(type) {}
  bool fits_kind(const Node& node) const;
  void resolve_scalar(Node& node, const std::string& path, Diagnostics& diagnostics) const;
  void check_range(const Node& node, double value, const std::string& path,
                   Diagnostics& diagnostics) const;
  void resolve_choice(Node& node, const std::string& path, Diagnostics& diagnostics) const;
  void resolve_named(Node& node, const std::string& path, Diagnostics& diagnostics) const;

  Type type_;
  bool required_ = false, optional_ = false;
  std::optional<std::string> fallback_;
  std::string doc_;
  std::optional<double> low_, high_;
  bool low_open_ = false, high_open_ = false;
  size_t least_ = 0, most_ = SIZE_MAX;
  std::vector<std::string> words_;
  std::string key_;  ///< of kChoice; of kNamed what its keys, which are words_, are
  std::vector<std::pair<std::string, std::shared_ptr<Schema>>> schemas_;  ///< kMap has one
  std::shared_ptr<Schema> otherwise_;  ///< of kChoice; may be null
  std::vector<Spec> inner_;            ///< of kList, kMapOf, kNamed
  std::vector<Spec> others_;
};

class Schema {
 public:
  struct Key {
    std::string name;
    Spec spec;
  };

  Schema& add(std::string name, Spec spec);
  /// Adds the keys, alternatives and old names of another schema.
  Schema& add_all(const Schema& other);
  /// Exactly one of these keys, which are optional by themselves, must be there.
  Schema& one_of(std::vector<std::string> keys);
  /// An old name of a key: read as the new one, with a warning.
  Schema& renamed(std::string old_name, std::string new_name);
  /// A key of another tool's section: kept, not checked.
  Schema& accept(std::string name);
  /// Keys that the schema does not list are kept, not checked.
  Schema& accept_others();

  const std::vector<Key>& keys() const { return keys_; }
  const Spec* find(const std::string& name) const;
  /// The keys whose values are maps that may have this key.
  std::vector<std::string> sections_with(const std::string& key) const;
  /// Checks a map and fills in defaults; `path` is empty for the whole document.
  void resolve(Node& map, const std::string& path, Diagnostics& diagnostics) const;

 private:
  friend class JsonSchemaWriter;
  void check_alternatives(const Node& map, const std::string& path, Diagnostics& diagnostics) const;

  std::vector<Key> keys_;
  std::vector<std::vector<std::string>> alternatives_;
  std::vector<std::pair<std::string, std::string>> renamed_;
  std::vector<std::string> accepted_;
  bool accepts_others_ = false;
};

/// A checked map. Every getter throws kInternal for a key that the schema does not promise, and
/// kConfig with the place where the value has the wrong kind after all.
class Section {
 public:
  explicit Section(const Node& node) : node_(&node) {}

  /// Present and not null.
  bool has(const std::string& key) const;
  int64_t integer(const std::string& key) const { return at(key).as_int(); }
  double real(const std::string& key) const { return at(key).as_double(); }
  bool boolean(const std::string& key) const { return at(key).as_bool(); }
  /// Seconds of a duration.
  double seconds(const std::string& key) const;
  const std::string& text(const std::string& key) const { return at(key).as_string(); }
  /// Single values count as lists of one.
  std::vector<int64_t> integers(const std::string& key) const;
  std::vector<double> reals(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  Section section(const std::string& key) const { return Section(at(key)); }
  std::vector<Section> sections(const std::string& key) const;

  const Node& node() const { return *node_; }
  const Node& at(const std::string& key) const;
  SourceLocation location(const std::string& key) const;

 private:
  const Node* node_;
};

}  // namespace paddle::config
