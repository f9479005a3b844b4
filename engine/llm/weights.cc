#include "llm/weights.h"

#include <algorithm>

#include "base/error.h"
#include "convert/rules.h"

namespace paddle::llm {

namespace {

Array transpose(Array value) {
  std::reverse(value.shape.begin(), value.shape.end());
  std::reverse(value.strides.begin(), value.strides.end());
  return value;
}

}  // namespace

WeightType weight_type(const std::string& word) {
  if (const auto type = convert::find_weight_type(word)) return *type;
  fail(ErrorCode::kUsage, "--weights-as is '", word, "', expected as-is, int8 or int4");
}

Weights::Weights(const ModelFiles& files, const std::string& rules, std::string path, bool unpacks,
                 WeightType type)
    : source_(files.weights),
      gguf_(files.gguf),
      path_(std::move(path)),
      unpacks_(unpacks),
      type_(type) {
  convert::Rules by = convert::Rules::read(rules);
  for (size_t i = 0; i < source_->tensors().size(); ++i) {
    const auto outcome = by.apply(source_->tensors()[i].name);
    if (!outcome.dropped) add(outcome.name, {i, outcome.transposed});
  }
}

/// In a name, * is the number of a part: all parts of a kind are one tensor.
void Weights::add(const std::string& name, const Entry& entry) {
  constexpr int64_t kMaxParts = 4096;
  const size_t star = name.find('*');
  if (star == std::string::npos) {
    index_[name] = entry;
    return;
  }
  const convert::StoredTensor& tensor = source_->tensors()[entry.index];
  if (tensor.shape.size() != 3 || tensor.shape[0] < 1 || tensor.shape[0] > kMaxParts)
    fail(ErrorCode::kModel, path_, ": '", tensor.name, "' is ", str(tensor.shape),
         ", expected 1 to ", kMaxParts, " matrices");
  for (int64_t part = 0; part < tensor.shape[0]; ++part) {
    Entry each = entry;
    each.part = part;
    each.parts = tensor.shape[0];
    index_[str(name.substr(0, star), part, name.substr(star + 1))] = each;
  }
}

/// In the file. A matrix of one row may be stored as a vector.
Dims Weights::shape_of(const Entry& entry) const {
  Dims shape = source_->tensors()[entry.index].shape;
  if (entry.part >= 0) shape.erase(shape.begin());
  if (entry.transposed && shape.size() == 1) shape.insert(shape.begin(), 1);
  return shape;
}

/// The tensor of a GGUF file, or the part of it.
formats::gguf::TensorInfo Weights::blocks_of(const Entry& entry) const {
  formats::gguf::TensorInfo tensor = gguf_->tensors().at(entry.index);
  if (entry.part < 0) return tensor;
  tensor.shape.erase(tensor.shape.begin());
  tensor.bytes /= static_cast<uint64_t>(entry.parts);
  tensor.data += static_cast<uint64_t>(entry.part) * tensor.bytes;
  return tensor;
}

Array Weights::value_of(const Entry& entry) const {
  if (entry.part < 0) {
    Array value = source_->read(entry.index).contiguous();
    value.shape = shape_of(entry);
    value.strides = contiguous_strides(value.shape);
    return value;
  }
  if (gguf_) return gguf_->read_float(blocks_of(entry)).cast(source_->tensors()[entry.index].dtype);
  Array value = source_->read(entry.index);
  value.offset += entry.part * value.strides[0];
  value.shape.erase(value.shape.begin());
  value.strides.erase(value.strides.begin());
  return value;
}

void Weights::check_present(const std::string& name) const {
  if (!index_.contains(name)) fail(ErrorCode::kModel, path_, ": has no weight '", name, "'");
}

Weights::Entry& Weights::find(const std::string& name) {
  check_present(name);
  Entry& entry = index_.at(name);
  entry.used = true;
  return entry;
}

void Weights::check_shape(const Entry& entry, const Dims& found, const Dims& wanted) const {
  if (found != wanted)
    fail(ErrorCode::kModel, path_, ": '", source_->tensors()[entry.index].name, "' is ", str(found),
         ", the model needs ", str(wanted));
}

Array Weights::read(const std::string& name, const Dims& shape) {
  const Entry& entry = find(name);
  Array value = value_of(entry);
  if (entry.transposed) value = transpose(std::move(value));
  check_shape(entry, value.shape, shape);
  return value.contiguous().cast(DType::kF32);
}

PackedWeight Weights::read_packed(const std::string& name, const Dims& shape, bool transposed) {
  const Entry& entry = find(name);
  Dims found = shape_of(entry);
  if (entry.transposed) std::reverse(found.begin(), found.end());
  check_shape(entry, found, shape);
  PackedWeight out;
  out.features = transposed ? shape[0] : shape[1];
  const bool in_rows = transposed == entry.transposed;
  const std::string wanted = unpacks_ ? "" : convert::block_name(type_, out.features);
  if (gguf_ && in_rows && !unpacks_) {
    auto mapped = convert::mapped_rows(gguf_, blocks_of(entry), transposed ? shape[1] : shape[0],
                                       out.features);
    if (mapped && (wanted.empty() || wanted == mapped->format)) return *std::move(mapped);
  }
  out.format = "float";
  Array value = value_of(entry);
  out.rows = (in_rows ? value : transpose(std::move(value))).contiguous();
  if (!wanted.empty()) return convert::quantized_rows(out.rows, wanted);
  return out;
}

void Weights::check_all_used() const {
  for (const auto& [name, entry] : index_)
    if (!entry.used)
      fail(ErrorCode::kModel, path_, ": the model does not use the weight '",
           source_->tensors()[entry.index].name, "'");
}

}  // namespace paddle::llm
