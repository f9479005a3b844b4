#pragma once
// Nested lists of JSON as arrays: the values of an input of a prediction.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::serve {

/// A nested list of JSON with its elements in row-major order; a value without lists is 0-D.
struct NestedList {
  enum class Kind : uint8_t { kNone, kBooleans, kIntegers, kNumbers, kStrings };
  Kind kind = Kind::kNone;  ///< kNone: there are no elements
  Dims shape;
  std::vector<int64_t> integers;  ///< of kBooleans too
  std::vector<size_t> large;      ///< places of integers from 2^63 on, which have the same 64 bits
  std::vector<double> numbers;
  std::vector<std::string> strings;
  std::optional<DType> dtype;  ///< as the request states it
};

/// The list as an array. ApiError, with the name of the input, for elements that the type does not
/// hold: other kinds, fractions and numbers out of its range. The type has kernels.
Array to_array(const NestedList& list, DType dtype, const std::string& name);

/// Fills a list with its elements, as they come. ApiError for lists that do not make an array: of
/// different lengths or depths, or with values of different kinds.
class ListBuilder {
 public:
  /// Both outlive the builder; `name` is that of the input, for messages.
  ListBuilder(NestedList& list, const std::string& name) : list_(list), name_(name) {}

  void open();
  void close();
  bool is_closed() const { return counts_.empty(); }
  void add_boolean(bool value);
  void add_integer(int64_t value);
  /// An integer from 2^63 on.
  void add_large(uint64_t value);
  void add_number(double value);
  void add_string(std::string value);

 private:
  void begin(NestedList::Kind kind);
  [[noreturn]] void reject_uneven() const;

  NestedList& list_;
  const std::string& name_;
  std::vector<int64_t> counts_;  ///< of the open lists
  std::optional<size_t> rank_;   ///< once a value or an empty list was met
};

}  // namespace paddle::serve
