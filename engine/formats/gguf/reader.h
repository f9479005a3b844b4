#pragma once
// GGUF files (versions 2 and 3): typed metadata and named tensors, mapped and checked before use.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files.h"
#include "tensor/tensor.h"

namespace paddle::formats::gguf {

/// A metadata value. Integers of every width are int64 or uint64, floats are double.
struct Value {
  using Integers = std::vector<int64_t>;
  using Numbers = std::vector<double>;
  using Strings = std::vector<std::string_view>;  ///< in the mapped file
  std::variant<int64_t, uint64_t, double, bool, std::string_view, Integers, Numbers, Strings> value;

  /// "an integer", "a list of strings": for messages.
  std::string describe() const;
};

/// A metadata value as the file holds it: its type's number and its bytes.
struct RawValue {
  std::string key;
  std::string_view bytes;
};

struct TensorInfo {
  std::string name;
  int64_t type = 0;  ///< ggml's number, see blocks.h
  Dims shape;        ///< row-major: the reverse of the file's order
  const uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

class Reader {
 public:
  /// kModel for a file that is damaged: every count, offset and size is checked against the file.
  /// The first part of a split model (NAME-00001-of-00003.gguf) opens all of them; kModel for
  /// another part, and if one is missing or not of this model.
  static Reader open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::map<std::string, Value, std::less<>>& metadata() const { return metadata_; }
  /// In the order of the file, without the keys `split.`; the bytes are in the mapped file.
  const std::vector<RawValue>& raw_metadata() const { return raw_metadata_; }
  const Value* find(std::string_view key) const;
  /// Values of a declared type; nullopt or nullptr if the key is missing, kModel for another type.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  const Value::Strings* strings(std::string_view key) const;
  std::optional<Value::Numbers> numbers(std::string_view key) const;
  std::optional<Value::Integers> integers(std::string_view key) const;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;
  /// The values as float32: in the mapped file if they are stored so, dequantized otherwise.
  Array read_float(const TensorInfo& tensor) const;
  [[noreturn]] void reject(const std::string& message) const;

 private:
  explicit Reader(std::shared_ptr<MappedFile> file) : file_(std::move(file)) {}
  void parse();
  void open_parts(int64_t count);

  std::shared_ptr<MappedFile> file_;
  std::shared_ptr<std::vector<std::shared_ptr<MappedFile>>>
      parts_;  ///< the others of a split model
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<RawValue> raw_metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// The name of a split model without "-00001-of-00003", or the name itself.
std::string without_part(const std::string& name);
/// Whether the file begins as a GGUF file does.
bool is_gguf(const std::string& path);
/// "Q4_0" for ggml type 2; "type 99" for one that has no name here.
std::string type_name(int64_t type);

}  // namespace paddle::formats::gguf
