#pragma once
// The placed tree of a YAML 1.2 or JSON document: what every configuration and model file is read
// into. Scalars keep their raw text and quoting, because the declared type of the reader decides
// what `no`, `1e-4` or `3` mean; every node knows its file, line and column.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"
#include "config/source.h"

namespace paddle::config {

struct Entry;

struct Node {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };
  enum class Quote : uint8_t { kPlain, kSingle, kDouble, kLiteral, kFolded };

  Kind kind = Kind::kNull;
  Quote quote = Quote::kPlain;
  bool omitted = false;  ///< of a null: nothing is written there
  uint32_t offset = 0;   ///< of the first byte, in `source`
  std::shared_ptr<const SourceText> source;
  std::string text;            ///< of a scalar, decoded
  std::vector<Node> items;     ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in the order of the file

  bool is_null() const { return kind == Kind::kNull; }
  /// A key without a value (`lr:`), unlike a null that is spelt out.
  bool is_empty() const { return is_null() && omitted; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_quoted() const { return quote == Quote::kSingle || quote == Quote::kDouble; }
  SourceKind source_kind() const { return source ? source->kind() : SourceKind::kDefault; }

  SourceLocation location() const;
  /// The value of a key of a map, or null if there is none (or this is not a map).
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  const Entry* find_entry(std::string_view key) const;
  /// Sets a key of a map, at its end if it is new. The key takes the value's source.
  Node& set(std::string_view key, Node value);
  bool erase(std::string_view key);

  /// Conversions by the rules of YAML 1.2's core schema; nullopt if the text is no such value.
  /// Quoted scalars are text only. A float with an exponent and a whole value (1e5) is an integer.
  std::optional<int64_t> try_int() const;
  std::optional<double> try_double() const;
  std::optional<bool> try_bool() const;
  /// The same, throwing kConfig at the node's place with what was expected and what came.
  int64_t as_int() const;
  double as_double() const;
  bool as_bool() const;
  const std::string& as_string() const;

  /// "a list", "a map", "nothing", "'no'": for messages.
  std::string describe() const;
};

struct Entry {
  Node key;  ///< a scalar
  Node value;
};

/// Nodes without a file (defaults, overrides): their source is named `origin`.
Node make_scalar(std::string text, std::shared_ptr<const SourceText> source,
                 Node::Quote quote = Node::Quote::kPlain);
Node make_map(std::shared_ptr<const SourceText> source);

/// Largest number of nodes of a document, aliases expanded.
inline constexpr size_t kMaxNodes = 1'000'000;

/// Reads YAML. Duplicate keys are collected in `diagnostics`; what makes the rest unreadable
/// (syntax, tabs in indentation, cycles, tags, merge keys, limits) is thrown as kConfig.
Node parse_yaml(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics);
/// Reads strict JSON into the same tree.
Node parse_json(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics);
/// Reads a file: JSON if its name ends in `.json`, YAML otherwise.
Node read_document(const std::string& path, Diagnostics& diagnostics);
/// The same for a text, as if it were the content of `name`; throws all its errors as one.
Node parse_document(std::string text, const std::string& name);

/// The place of each byte of a scalar's decoded text, through indentation, quotes and escapes.
class ScalarLocations {
 public:
  explicit ScalarLocations(const Node& scalar);
  SourcePosition at(size_t text_offset) const;

 private:
  std::shared_ptr<const SourceText> source_;
  std::vector<uint32_t> offsets_;  ///< one for each byte of the text, and one for its end
};

/// How `dump_yaml` prints.
struct DumpOptions {
  bool origin = false;  ///< a comment after each value: where it came from
};
/// Prints a tree as YAML that reads back to the same tree.
std::string dump_yaml(const Node& node, const DumpOptions& options = {});
/// Prints a tree as JSON; scalars become numbers, booleans or strings by the core schema.
std::string dump_json(const Node& node);

}  // namespace paddle::config
