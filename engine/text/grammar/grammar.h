#pragma once
// Grammars for generated text: rules over bytes that may call each other, as a graph of nodes.
// `regex.h` and `json_schema.h` make them, `matcher.h` runs them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paddle::grammar {

/// Sizes beyond which a grammar is rejected.
inline constexpr size_t kMaxNodes = 200'000;

struct Node {
  enum class Kind : uint8_t {
    kEmpty,   ///< continues at `next`
    kBytes,   ///< reads a byte from `low` to `high`, continues at `next`
    kSplit,   ///< continues at `next` and to `other`
    kCall,    ///< runs the rule `other`, then continues at `next`
    kReturn,  ///< the end of a rule
  };
  Kind kind = Kind::kEmpty;
  uint8_t low = 0, high = 0;
  int32_t next = -1, other = -1;
};

struct Grammar {
  std::vector<Node> nodes;
  std::vector<int32_t> rules;  ///< first node of each rule; rule 0 is the whole text
};

/// A part of a graph: enters at `first`, leaves through the node `last`, whose `next` is open.
struct Part {
  int32_t first = -1, last = -1;
};

/// Puts graphs together. Parts are used once; `copy` makes another one. kUsage, with `what` in
/// front, if a grammar grows too large.
class Builder {
 public:
  explicit Builder(std::string what) : what_(std::move(what)) {}
  /// Names the following parts in errors.
  void rename(std::string what) { what_ = std::move(what); }

  Part nothing();
  Part bytes(uint8_t low, uint8_t high);
  Part text(std::string_view bytes);
  /// Code points from `low` to `high` as UTF-8; surrogates are left out.
  Part characters(uint32_t low, uint32_t high);
  Part sequence(const std::vector<Part>& parts);
  Part choice(const std::vector<Part>& parts);
  Part optional(Part part);
  /// Any number of times.
  Part star(Part part);
  /// From `least` to `most` times; `most` < 0: without a bound.
  Part repeat(Part part, int64_t least, int64_t most);
  Part copy(Part part);
  /// The rule with this number, which `define` may set later.
  Part call(int32_t rule);

  int32_t new_rule();
  void define(int32_t rule, Part part);
  Grammar take() { return std::move(grammar_); }

 private:
  int32_t add(Node node);
  Node& at(int32_t node) { return grammar_.nodes[static_cast<size_t>(node)]; }
  std::string what_;
  Grammar grammar_;
};

}  // namespace paddle::grammar
