#include "llm/adapter.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "convert/rules.h"

namespace paddle::llm {

namespace {

/// Rows of heads whose rotary pairs are halves of the head, so that pairs are neighbors.
Array with_neighbors(const Array& rows, int64_t head) {
  Array out = Array::empty(rows.dtype, rows.shape);
  const int64_t width = rows.shape[1];
  for (int64_t row = 0; row < rows.shape[0]; ++row) {
    const int64_t in_head = row % head, half = head / 2;
    const int64_t to = row - in_head + in_head % half * 2 + in_head / half;
    std::copy_n(rows.data<float>() + row * width, width, out.data<float>() + to * width);
  }
  return out;
}

}  // namespace

Adapter::Adapter(const std::string& folder, const Family& family)
    : files_(folder), reordered_(family.reordered), head_(family.reordered_head) {
  if (family.adapter_rules.empty())
    fail(ErrorCode::kModel, family.file, ": has no names of Hugging Face's weights for --adapter");
  convert::Rules rules = convert::Rules::read(family.adapter_rules);
  for (const auto& [name, delta] : files_.deltas()) {
    if (delta.whole || delta.is_table)
      fail(ErrorCode::kModel, files_.path(), ": '", name, "' is ",
           delta.whole ? "not of a low-rank product" : "of an embedding",
           ", which --adapter does not support");
    names_[rules.apply(name).name] = name;
  }
}

const Adapter::Factors* Adapter::find(const std::string& name, int64_t rows, int64_t features) {
  const auto known = names_.find(name);
  if (known == names_.end()) return nullptr;
  const auto [it, inserted] = factors_.try_emplace(name);
  if (!inserted) return &it->second;
  const formats::PeftAdapter::Delta& delta = files_.deltas().at(known->second);
  const Dims &down = delta.down->shape, &up = delta.up->shape;
  if (down.size() != 2 || up.size() != 2 || down[0] != up[1] || down[1] != features ||
      up[0] != rows)
    fail(ErrorCode::kModel, files_.path(), ": '", known->second, "' has A ", str(down), " and B ",
         str(up), ", which do not fit the model's matrix of ", rows, " rows and ", features,
         " columns");
  it->second.down = files_.read(*delta.down).cast(DType::kF32).contiguous();
  Array scaled = Array::empty(DType::kF32, up);
  const Array stored = files_.read(*delta.up).cast(DType::kF32).contiguous();
  const auto scale = static_cast<float>(files_.scale_of(known->second));
  std::transform(stored.data<float>(), stored.data<float>() + stored.size(), scaled.data<float>(),
                 [&](float x) { return scale * x; });
  if (head_ > 1 && rows % head_ == 0 && std::regex_search(name, std::regex(reordered_)))
    scaled = with_neighbors(scaled, head_);
  it->second.up = scaled;
  return &it->second;
}

void Adapter::check_all_used() const {
  for (const auto& [name, theirs] : names_)
    if (!factors_.contains(name))
      fail(ErrorCode::kModel, files_.path(), ": '", theirs, "' is not a matrix of the model");
}

AdapterOption read_adapter_option(const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == std::string::npos || is_directory(text)) return {"", text};
  return {text.substr(0, sign), text.substr(sign + 1)};
}

}  // namespace paddle::llm
