#pragma once
// A JSON object whose values are cells of records. `a.b` is the key b of the object at a.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle::data {

class JsonCells {
 public:
  /// kData, with the place, for a text that is not an object, and for deep nesting.
  JsonCells(std::string_view text, const SourceLocation& place);
  ~JsonCells();
  JsonCells(JsonCells&&) noexcept;
  JsonCells& operator=(JsonCells&&) noexcept;

  /// Of the object itself, in order.
  std::vector<std::string> keys() const;
  bool has(const std::string& path) const;
  /// Appends the value at a path as a cell: strings as they are, other values as JSON writes them,
  /// except that true and false are 1 and 0; nothing for null and where there is none.
  void append(const std::string& path, std::string& out) const;

 private:
  struct Object;
  std::unique_ptr<Object> object_;
};

}  // namespace paddle::data
