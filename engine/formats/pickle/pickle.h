#pragma once
// Python pickles, protocols 0 to 5, as data. A pickle is a program for a stack machine that may
// call any Python function; this reader runs no function. It builds numbers, texts, lists, tuples
// and dicts, and records calls of the functions that a caller lists as objects; any other call is
// rejected by name.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle::formats::pickle {

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kBytes,  ///< also integers of more than 8 bytes, little endian
  kList,
  kTuple,
  kSet,
  kDict,
  kGlobal,  ///< a class or function by name
  kCall,    ///< a call of a global, not made
  kPersistent,
};

/// A value of a pickle. It belongs to the reader and points into the pickle's bytes.
struct Value {
  Kind kind = Kind::kNone;
  int64_t integer = 0;    ///< of kBool and kInt
  double real = 0;        ///< of kFloat
  std::string_view text;  ///< of kText and kBytes
  std::string name;       ///< of kGlobal, "module name"
  /// Elements; of a dict key, value, key, value, …; of a call the global and the tuple of
  /// arguments; of a persistent reference its id.
  std::vector<const Value*> items;
  const Value* state = nullptr;  ///< of a call: what was set on the object afterwards, or null

  bool is(Kind wanted) const { return kind == wanted; }
  /// Whether this is a call of the global.
  bool calls(std::string_view global) const {
    return kind == Kind::kCall && items[0]->name == global;
  }
  /// Arguments of a call.
  const std::vector<const Value*>& arguments() const { return items[1]->items; }
};

class Reader {
 public:
  /// `allows(global)`: whether calls of this global are recorded. `path` is for errors, which are
  /// kModel. The bytes must outlive the values.
  Reader(std::span<const std::byte> bytes, std::string path,
         std::function<bool(std::string_view global)> allows);

  /// The next pickle of the bytes.
  const Value& read();
  /// References to what is outside of the pickles, in their order.
  const std::vector<const Value*>& references() const { return references_; }
  /// After the last pickle that was read.
  size_t position() const { return at_; }

 private:
  class Machine;
  std::span<const std::byte> bytes_;
  std::string path_;
  std::function<bool(std::string_view)> allows_;
  size_t at_ = 0;
  std::deque<Value> values_;
  std::vector<const Value*> references_;
};

}  // namespace paddle::formats::pickle
