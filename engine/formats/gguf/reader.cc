#include "formats/gguf/reader.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "formats/gguf/blocks.h"

namespace paddle::formats::gguf {

namespace {

constexpr uint64_t kMaxEntries = uint64_t{1} << 20;  // metadata keys, and tensors
constexpr uint64_t kMaxRank = 8;

/// Numbers of metadata types.
enum ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kList,
  kUint64,
  kInt64,
  kFloat64
};

class Cursor {
 public:
  Cursor(const Reader& reader, std::string_view bytes) : reader_(reader), bytes_(bytes) {}

  size_t position() const { return at_; }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_)
      reader_.reject(str("the file ends at byte ", bytes_.size(), " inside of the header"));
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  template <class T>
  T read() {
    T out;
    std::memcpy(&out, take(sizeof(T)).data(), sizeof(T));
    return out;
  }
  std::string_view text() { return take(read<uint64_t>()); }
  /// A number of items that take at least `bytes` each in the rest of the file.
  uint64_t count(uint64_t bytes, std::string_view what) {
    const auto n = read<uint64_t>();
    if (n > (bytes_.size() - at_) / bytes)
      reader_.reject(str("declares ", n, " ", what, ", more than the file can hold"));
    return n;
  }

  Value value(uint32_t type) {
    switch (type) {
      case kUint64:
        return {read<uint64_t>()};
      case kFloat32:
      case kFloat64:
        return {number(type)};
      case kBool:
        return {read<uint8_t>() != 0};
      case kString:
        return {text()};
      case kList:
        return list();
      default:
        return {integer(type)};
    }
  }

 private:
  int64_t integer(uint32_t type) {
    switch (type) {
      case kUint8:
      case kBool:
        return read<uint8_t>();
      case kInt8:
        return read<int8_t>();
      case kUint16:
        return read<uint16_t>();
      case kInt16:
        return read<int16_t>();
      case kUint32:
        return read<uint32_t>();
      case kInt32:
        return read<int32_t>();
      case kInt64:
        return read<int64_t>();
      case kUint64:
        return static_cast<int64_t>(read<uint64_t>());
      default:
        reader_.reject(str("unknown metadata type ", type, " at byte ", at_));
    }
  }
  double number(uint32_t type) {
    return type == kFloat32 ? static_cast<double>(read<float>()) : read<double>();
  }
  Value list() {
    const auto type = read<uint32_t>();
    if (type == kString) {
      Value::Strings out(count(8, "strings"));
      for (auto& item : out) item = text();
      return {std::move(out)};
    }
    if (type == kFloat32 || type == kFloat64) {
      Value::Numbers out(count(type == kFloat32 ? 4 : 8, "numbers"));
      for (double& item : out) item = number(type);
      return {std::move(out)};
    }
    if (type == kList) reader_.reject("lists of lists are not supported in metadata");
    Value::Integers out(count(1, "integers"));
    for (int64_t& item : out) item = integer(type);
    return {std::move(out)};
  }

  const Reader& reader_;
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string Value::describe() const {
  constexpr const char* kNames[] = {"an integer",        "an integer",       "a number",
                                    "true or false",     "a string",         "a list of integers",
                                    "a list of numbers", "a list of strings"};
  return kNames[value.index()];
}

void Reader::reject(const std::string& message) const {
  fail(ErrorCode::kModel, path(), ": ", message);
}

Reader Reader::open(const std::string& path) {
  Reader out(MappedFile::open(path, ErrorCode::kModel));
  out.parse();
  if (const int64_t count = out.integer("split.count").value_or(1); count != 1)
    out.open_parts(count);
  return out;
}

namespace {

/// "-00002-of-00003", the second of three parts.
std::string part_suffix(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}", static_cast<long long>(number),
                     static_cast<long long>(count));
}

}  // namespace

/// Reads the tensors of the other parts of a split model.
void Reader::open_parts(int64_t count) {
  if (count < 1 || count > 99999) reject(str("split.count is ", count, ", expected 1 to 99999"));
  const int64_t own = integer("split.no").value_or(-1);
  if (own < 0 || own >= count) reject(str("split.no is ", own, ", expected 0 to ", count - 1));
  const std::string ending = part_suffix(own + 1, count) + ".gguf";
  if (!path().ends_with(ending))
    reject(str("is part ", own + 1, " of ", count, "; its name should end in '", ending, "'"));
  const std::string name = path().substr(0, path().size() - ending.size());
  const auto part_path = [&](int64_t number) {
    return name + part_suffix(number, count) + ".gguf";
  };
  if (own != 0)
    reject(str("is part ", own + 1, " of ", count, "; open the first one, '", part_path(1), "'"));
  std::erase_if(raw_metadata_,
                [](const RawValue& value) { return value.key.starts_with("split."); });
  parts_ = std::make_shared<std::vector<std::shared_ptr<MappedFile>>>();
  for (int64_t number = 2; number <= count; ++number) {
    const std::string other_path = part_path(number);
    if (!file_exists(other_path))
      reject(str("part ", number, " of ", count, ", '", other_path, "', is missing"));
    Reader other(MappedFile::open(other_path, ErrorCode::kModel));
    other.parse();
    if (other.integer("split.no") != number - 1 || other.integer("split.count") != count)
      other.reject(str("is not part ", number, " of ", count, " by its split.no and split.count"));
    parts_->push_back(other.file_);
    for (TensorInfo& tensor : other.tensors_) {
      if (!index_.emplace(tensor.name, tensors_.size()).second)
        other.reject("tensor '" + tensor.name + "' is in an earlier part, too");
      tensors_.push_back(std::move(tensor));
    }
  }
  const auto total = static_cast<int64_t>(tensors_.size());
  if (const int64_t declared = integer("split.tensors.count").value_or(total); declared != total)
    reject(str("split.tensors.count is ", declared, "; the parts have ", total, " tensors"));
}

void Reader::parse() {
  Cursor cursor(*this, file_->view());
  if (file_->size() < 24 || cursor.take(4) != "GGUF") reject("not a GGUF file");
  const auto version = cursor.read<uint32_t>();
  if (const uint32_t swapped = __builtin_bswap32(version); swapped == 2 || swapped == 3)
    reject("a big-endian GGUF file is not supported");
  if (version != 2 && version != 3)
    reject(str("GGUF version ", version, "; 2 and 3 are supported"));
  const uint64_t tensors = cursor.count(24, "tensors"), keys = cursor.count(12, "metadata keys");
  if (tensors > kMaxEntries || keys > kMaxEntries)
    reject(
        str("declares ", tensors, " tensors and ", keys, " metadata keys; at most ", kMaxEntries));
  for (uint64_t i = 0; i < keys; ++i) {
    std::string key(cursor.text());
    const size_t begin = cursor.position();
    const auto type = cursor.read<uint32_t>();
    if (!metadata_.emplace(key, cursor.value(type)).second)
      reject("metadata key '" + key + "' twice");
    raw_metadata_.push_back({key, file_->view().substr(begin, cursor.position() - begin)});
  }
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < tensors; ++i) {
    TensorInfo& tensor = tensors_.emplace_back();
    tensor.name = cursor.text();
    const auto rank = cursor.read<uint32_t>();
    if (rank > kMaxRank) reject(str("tensor '", tensor.name, "' has ", rank, " dims"));
    uint64_t values = 1;
    tensor.shape.resize(rank);
    for (uint32_t d = 0; d < rank; ++d) {
      const auto size = cursor.read<uint64_t>();
      if (size > (uint64_t{1} << 48) || __builtin_mul_overflow(values, size, &values) ||
          values > (uint64_t{1} << 48))
        reject(str("tensor '", tensor.name, "' is too large"));
      tensor.shape[rank - 1 - d] = static_cast<int64_t>(size);
    }
    tensor.type = cursor.read<uint32_t>();
    const BlockFormat* format = find_block_format(tensor.type);
    if (format == nullptr)
      reject(str("tensor '", tensor.name, "' has ggml type ", tensor.type,
                 ", which is not supported"));
    const auto row = static_cast<uint64_t>(rank == 0 ? 1 : tensor.shape.back());
    if (row % static_cast<uint64_t>(format->values) != 0)
      reject(str("tensor '", tensor.name, "': rows of ", row, " values are not a multiple of ",
                 type_name(tensor.type), "'s blocks of ", format->values));
    tensor.bytes =
        values / static_cast<uint64_t>(format->values) * static_cast<uint64_t>(format->bytes);
    offsets.push_back(cursor.read<uint64_t>());
    if (!index_.emplace(tensor.name, i).second) reject("tensor '" + tensor.name + "' twice");
  }
  const int64_t alignment = integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0)
    reject(str("general.alignment is ", alignment, ", expected a power of two"));
  const auto align = static_cast<uint64_t>(alignment);
  const uint64_t begin = (cursor.position() + align - 1) / align * align;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorInfo& tensor = tensors_[i];
    if (begin > file_->size() || offsets[i] > file_->size() - begin ||
        tensor.bytes > file_->size() - begin - offsets[i])
      reject(str("tensor '", tensor.name, "' reaches past the end of the file"));
    tensor.data = reinterpret_cast<const uint8_t*>(file_->data()) + begin + offsets[i];
  }
}

const Value* Reader::find(std::string_view key) const {
  const auto it = metadata_.find(key);
  return it == metadata_.end() ? nullptr : &it->second;
}

namespace {
[[noreturn]] void reject_type(const Reader& reader, std::string_view key, const Value& found,
                              std::string_view expected) {
  reader.reject(str("metadata '", key, "' is ", found.describe(), ", expected ", expected));
}
}  // namespace

std::optional<int64_t> Reader::integer(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* n = std::get_if<int64_t>(&found->value)) return *n;
  if (const auto* n = std::get_if<uint64_t>(&found->value); n && *n <= uint64_t{INT64_MAX})
    return static_cast<int64_t>(*n);
  reject_type(*this, key, *found, "an integer");
}

std::optional<double> Reader::number(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* n = std::get_if<double>(&found->value)) return *n;
  return static_cast<double>(*integer(key));
}

std::optional<bool> Reader::boolean(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* b = std::get_if<bool>(&found->value)) return *b;
  reject_type(*this, key, *found, "true or false");
}

std::optional<std::string> Reader::text(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* t = std::get_if<std::string_view>(&found->value)) return std::string(*t);
  reject_type(*this, key, *found, "a string");
}

const Value::Strings* Reader::strings(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return nullptr;
  if (const auto* list = std::get_if<Value::Strings>(&found->value)) return list;
  reject_type(*this, key, *found, "a list of strings");
}

std::optional<Value::Numbers> Reader::numbers(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* list = std::get_if<Value::Numbers>(&found->value)) return *list;
  reject_type(*this, key, *found, "a list of numbers");
}

std::optional<Value::Integers> Reader::integers(std::string_view key) const {
  const Value* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* list = std::get_if<Value::Integers>(&found->value)) return *list;
  reject_type(*this, key, *found, "a list of integers");
}

const TensorInfo* Reader::find_tensor(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

Array Reader::read_float(const TensorInfo& tensor) const {
  constexpr int64_t kFloat = 0;
  Array out;
  if (tensor.type == kFloat && reinterpret_cast<uintptr_t>(tensor.data) % 64 == 0) {
    out.dtype = DType::kF32;
    out.shape = tensor.shape;
    out.strides = contiguous_strides(out.shape);
    const std::shared_ptr<void> owner =
        std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(file_, parts_);
    out.storage = Storage::borrow(const_cast<uint8_t*>(tensor.data), tensor.bytes, owner);
    return out;
  }
  out = Array::empty(DType::kF32, tensor.shape);
  const BlockFormat& format = *find_block_format(tensor.type);
  float* const to = out.data<float>();
  parallel_for(out.size() / format.values, 256, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      format.dequantize(tensor.data + b * format.bytes, to + b * format.values);
  });
  return out;
}

std::string without_part(const std::string& name) {
  constexpr size_t kLength = sizeof("-00001-of-00003") - 1;
  if (name.size() <= kLength) return name;
  const std::string_view end = std::string_view(name).substr(name.size() - kLength);
  for (size_t i = 0; i < kLength; ++i) {
    const char wanted = "-00000-of-00000"[i];
    const bool digit = end[i] >= '0' && end[i] <= '9';
    if (wanted == '0' ? !digit : end[i] != wanted) return name;
  }
  return name.substr(0, name.size() - kLength);
}

bool is_gguf(const std::string& path) {
  return file_exists(path) && !is_directory(path) &&
         read_beginning(path, 4, ErrorCode::kModel) == "GGUF";
}

std::string type_name(int64_t type) {
  static const std::map<int64_t, const char*> kNames = {
      {0, "F32"},      {1, "F16"},    {2, "Q4_0"},    {3, "Q4_1"},     {6, "Q5_0"},
      {7, "Q5_1"},     {8, "Q8_0"},   {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},
      {13, "Q5_K"},    {14, "Q6_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},
      {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},    {26, "I32"},     {27, "I64"},
      {28, "F64"},     {29, "IQ1_M"}, {30, "BF16"},   {34, "TQ1_0"},   {35, "TQ2_0"},
      {39, "MXFP4"}};
  const auto it = kNames.find(type);
  return it == kNames.end() ? "type " + std::to_string(type) : it->second;
}

}  // namespace paddle::formats::gguf
