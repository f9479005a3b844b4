#include "data/dataset.h"

namespace paddle::data {

std::string Field::text() const {
  std::string out = name + ": " + paddle::text(dtype) + "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  return out + "]";
}

void Value::reset(DType dtype, std::span<const int64_t> shape) {
  dtype_ = dtype;
  shape_.assign(shape.begin(), shape.end());
  size_ = element_count(shape);
  try {
    buffer_.resize(bytes());
  } catch (const std::exception&) {
    fail(ErrorCode::kDevice, "out of memory: a sample needs ", human_bytes(bytes()));
  }
}

double Value::number(int64_t at) const {
  return visit_dtype(dtype_, [&](auto tag) -> double {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      return static_cast<float>(data<T>()[at]);
    else
      return static_cast<double>(data<T>()[at]);
  });
}

Array Value::array() const {
  Array out = Array::empty(dtype_, shape_);
  if (bytes() > 0) std::memcpy(out.raw(), raw(), bytes());
  return out;
}

int64_t Dataset::find_field(const std::string& name) const {
  for (size_t i = 0; i < fields().size(); ++i)
    if (fields()[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

std::optional<std::string> Dataset::key_of(int64_t index, const std::string& column) const {
  const int64_t field = find_field(column);
  const auto number = field < 0 ? std::nullopt : class_of(index, field);
  return number ? std::optional(std::to_string(*number)) : std::nullopt;
}

std::vector<bool> Dataset::used_sources() const {
  return std::vector<bool>(static_cast<size_t>(size()), true);
}

Subset::Subset(DatasetPtr base, int64_t begin, int64_t end)
    : base_(std::move(base)), begin_(begin), end_(end) {
  ensure(0 <= begin_ && begin_ <= end_ && end_ <= base_->size(), "Subset: bad range");
}

Subset::Subset(DatasetPtr base, int64_t begin, int64_t end, uint64_t seed)
    : Subset(std::move(base), begin, end) {
  order_.emplace(static_cast<uint64_t>(base_->size()), seed, stream_of("split"));
}

Subset::Subset(DatasetPtr base, std::vector<int64_t> chosen, std::string how)
    : Subset(std::move(base), 0, static_cast<int64_t>(chosen.size())) {
  chosen_ = std::move(chosen);
  how_ = std::move(how);
}

int64_t Subset::at(int64_t index) const {
  if (!chosen_.empty()) return chosen_[static_cast<size_t>(index)];
  const int64_t at = begin_ + index;
  return order_ ? static_cast<int64_t>((*order_)(static_cast<uint64_t>(at))) : at;
}

std::vector<bool> Subset::used_sources() const {
  std::vector<bool> used = base_->used_sources();
  std::vector<bool> kept(used.size());
  for (int64_t i = 0; i < size(); ++i) kept[static_cast<size_t>(source_index(i))] = true;
  return kept;
}

std::vector<std::pair<std::string, std::string>> Subset::facts() const {
  auto facts = base_->facts();
  if (!how_.empty()) {
    facts.emplace_back("part", str(size(), " of ", base_->size(), " samples, ", how_));
    return facts;
  }
  facts.emplace_back("part", str(order_ ? "places " : "samples ", begin_, " to ", end_, " of ",
                                 base_->size(), order_ ? ", in random order" : ""));
  return facts;
}

}  // namespace paddle::data
