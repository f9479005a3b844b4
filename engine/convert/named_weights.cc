#include "convert/named_weights.h"

#include "convert/format.h"
#include "ops/generation/packed_format.h"

namespace paddle::convert {

NamedWeights::NamedWeights(const std::string& path, const std::string& rules)
    : source_(open_source(path, input_format(path, ""))) {
  std::optional<Rules> renaming;
  if (!rules.empty()) renaming = Rules::read(rules);
  std::vector<std::string> names;
  const std::vector<StoredTensor>& stored = source_->tensors();
  for (size_t i = 0; i < stored.size(); ++i) {
    const StoredTensor& tensor = stored[i];
    names.push_back(tensor.name);
    std::string name = tensor.name;
    Entry entry{i, {}};
    if (renaming) {
      const Rules::Outcome outcome = renaming->apply(tensor.name);
      if (outcome.dropped) continue;
      name = outcome.name;
      if (outcome.transposed) entry.perm = axes_of(outcome, name, tensor.dtype, tensor.shape);
    }
    if (const auto [other, is_new] = tensors_.emplace(name, entry); !is_new)
      fail(ErrorCode::kConfig, path, ": '", stored[other->second.source].name, "' and '",
           tensor.name, "' both get the name '", name, "'");
  }
  if (renaming) idle_rules_ = renaming->unused(names);
}

std::vector<std::string> NamedWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : tensors_) out.push_back(name);
  return out;
}

DType NamedWeights::dtype(const std::string& name) const {
  return source_->tensors()[tensors_.at(name).source].dtype;
}

const std::string& NamedWeights::stored_name(const std::string& name) const {
  return source_->tensors()[tensors_.at(name).source].name;
}

Dims NamedWeights::shape(const std::string& name) const {
  const Entry& entry = tensors_.at(name);
  const Dims& stored = source_->tensors()[entry.source].shape;
  if (entry.perm.empty()) return stored;
  Dims out;
  for (const int64_t axis : entry.perm) out.push_back(stored[static_cast<size_t>(axis)]);
  return out;
}

Array NamedWeights::read(const std::string& name) const {
  return arranged(name, source_->read(tensors_.at(name).source));
}

Array NamedWeights::arranged(const std::string& name, const Array& stored) const {
  const Entry& entry = tensors_.at(name);
  return entry.perm.empty() ? stored : transposed(stored, entry.perm);
}

PackedForm NamedWeights::packed_form(const std::string& name, WeightType type) const {
  const size_t index = tensors_.at(name).source;
  const StoredTensor& stored = source_->tensors()[index];
  const int64_t rows = stored.shape.at(0), features = stored.shape.at(1);
  const std::string wanted = block_name(type, features);
  const auto blocks = source_->read_blocks(index);
  if (blocks && (wanted.empty() || wanted == blocks->format))
    return {blocks->format, DType::kU8, blocks->rows.shape, features};
  if (wanted.empty()) return {"float", stored.dtype, stored.shape, features};
  const PackedFormat* const format = find_packed_format(wanted);
  return {wanted, DType::kU8, {rows, features / format->values * format->bytes}, features};
}

PackedWeight NamedWeights::read_packed(const std::string& name, WeightType type) const {
  const size_t index = tensors_.at(name).source;
  const PackedForm form = packed_form(name, type);
  auto blocks = source_->read_blocks(index);
  if (blocks && blocks->format == form.format) return *std::move(blocks);
  Array rows = source_->read(index).contiguous();
  if (form.format != "float") return quantized_rows(rows, form.format);
  return {std::move(rows), "float", form.features};
}

}  // namespace paddle::convert
