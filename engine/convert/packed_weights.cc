#include "convert/packed_weights.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "formats/gguf/quantize.h"
#include "ops/generation/packed_format.h"

namespace paddle::convert {
namespace {

/// The operations' name of a block type of GGUF (ggml's number); "" for one that they do not
/// compute with, and for rows of `features` weights that are not whole blocks.
std::string packed_name(int64_t type, int64_t features) {
  std::string name = formats::gguf::type_name(type);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const PackedFormat* const format = find_packed_format(name);
  return format && features % format->values == 0 ? name : "";
}

}  // namespace

std::optional<WeightType> find_weight_type(const std::string& word) {
  if (word == "as-is") return WeightType::kAsIs;
  if (word == "int8") return WeightType::kInt8;
  if (word == "int4") return WeightType::kInt4;
  return std::nullopt;
}

std::string block_name(WeightType type, int64_t features) {
  if (type == WeightType::kAsIs || features % 32 != 0) return "";
  if (type == WeightType::kInt8) return "q8_0";
  return features % 256 == 0 ? "q4_k" : "q4_0";
}

std::optional<PackedWeight> mapped_rows(const std::shared_ptr<const formats::gguf::Reader>& reader,
                                        const formats::gguf::TensorInfo& tensor, int64_t rows,
                                        int64_t features) {
  PackedWeight out{{}, packed_name(tensor.type, features), features};
  if (out.format.empty()) return std::nullopt;
  out.rows.dtype = DType::kU8;
  out.rows.shape = {rows, static_cast<int64_t>(tensor.bytes) / rows};
  out.rows.strides = contiguous_strides(out.rows.shape);
  out.rows.storage =
      Storage::borrow(const_cast<uint8_t*>(tensor.data), static_cast<size_t>(tensor.bytes),
                      std::const_pointer_cast<formats::gguf::Reader>(reader));
  return out;
}

PackedWeight quantized_rows(const Array& rows, const std::string& block) {
  const Array floats = rows.contiguous().cast(DType::kF32);
  const auto blocks = formats::gguf::quantize(
      *formats::gguf::find_block_type(block),
      std::span<const float>(floats.data<float>(), static_cast<size_t>(floats.size())),
      block.ends_with("_k") ? formats::gguf::BlockScales::kSearched
                            : formats::gguf::BlockScales::kPlain);
  const int64_t count = floats.shape[0];
  return {Array::from<uint8_t>(blocks, {count, static_cast<int64_t>(blocks.size()) / count}), block,
          floats.shape[1]};
}

}  // namespace paddle::convert
