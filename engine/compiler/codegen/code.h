#pragma once
// Machine code of a fusion group: as an image that can be cached, and as an executable function.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace paddle::codegen {

/// Position-independent code and the names of functions that it calls.
struct CodeImage {
  std::string bytes;
  uint64_t entry = 0;
  std::vector<std::string> functions;
};

/// An image in memory that is executable and not writable.
class Code {
 public:
  /// Null if the system denies executable memory or a function does not exist.
  static std::shared_ptr<const Code> load(const CodeImage& image);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// Computes `rows` rows of n elements. `pointers`: to the first rows of operands, then of
  /// results; `strides`: in bytes from row to row.
  void run(void* const* pointers, const int64_t* strides, int64_t rows, int64_t n) const;

 private:
  Code() = default;
  void* memory_ = nullptr;
  size_t size_ = 0;
  const std::byte* entry_ = nullptr;
  std::vector<void*> functions_;
};

}  // namespace paddle::codegen
