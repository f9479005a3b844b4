// Scaling that was fitted elsewhere, applied to a dataset of arrays.

#include <algorithm>
#include <cmath>

#include "data/datasets/sources.h"

namespace paddle::data {
namespace {

class ScaledDataset : public Dataset {
 public:
  ScaledDataset(DatasetPtr base, const std::vector<Fitted>& scales)
      : base_(std::move(base)), fields_(base_->fields()) {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const Fitted* scale = find_fitted(scales, fields_[f].name);
      scales_.push_back(scale ? *scale : Fitted());
      scaled_.push_back(scale != nullptr);
      if (!scale) continue;
      Field& field = fields_[f];
      const int64_t columns = field.shape.empty() ? 1 : field.shape.back();
      const auto known = static_cast<int64_t>(scale->shift.size());
      if (known > 0 && columns != known)
        fail(ErrorCode::kData, base_->location(0, static_cast<int64_t>(f)), ": ", field,
             " has other columns than in training, which has statistics for ", known);
      if (!is_float(field.dtype)) field.dtype = DType::kF32;
      field.class_count = 0;
    }
  }
  int64_t size() const override { return base_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    base_->read(index, context, out);
    for (size_t f = 0; f < fields_.size(); ++f)
      if (scaled_[f]) apply(scales_[f], fields_[f].dtype, out[f]);
  }
  void check(int64_t index) const override { base_->check(index); }
  std::vector<std::string> left_out() const override { return base_->left_out(); }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    return base_->location(index, field, element);
  }
  std::vector<std::string> paths() const override { return base_->paths(); }
  const Vocabulary* vocabulary(int64_t field) const override { return base_->vocabulary(field); }
  std::vector<Fitted> fitted() const override {
    std::vector<Fitted> out = base_->fitted();
    for (size_t f = 0; f < fields_.size(); ++f)
      if (scaled_[f]) out.push_back(scales_[f]);
    return out;
  }
  int64_t source_index(int64_t index) const override { return base_->source_index(index); }
  std::string source() const override { return base_->source(); }
  std::string fingerprint() const override { return base_->fingerprint(); }
  std::string place_before(int64_t epoch, int64_t index) const override {
    return base_->place_before(epoch, index);
  }
  void go_to(const std::string& place) const override { base_->go_to(place); }
  std::vector<bool> used_sources() const override { return base_->used_sources(); }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    return scaled_[static_cast<size_t>(field)] ? std::nullopt : base_->class_of(index, field);
  }
  std::vector<std::string> skipped_files() const override { return base_->skipped_files(); }
  std::vector<std::string> warnings() const override { return base_->warnings(); }
  std::vector<std::pair<std::string, std::string>> facts() const override { return base_->facts(); }

 private:
  static void apply(const Fitted& scale, DType dtype, Value& value) {
    Value raw = std::move(value);
    value = Value();
    value.reset(dtype, raw.shape());
    const size_t columns = scale.shift.size();
    visit_float(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < raw.size(); ++i) {
        double x = raw.number(i);
        if (scale.log) x = std::copysign(std::log1p(std::abs(x)), x);
        const size_t c = columns == 0 ? 0 : static_cast<size_t>(i) % columns;
        if (columns > 0) x = (x - scale.shift[c]) * scale.factor[c];
        value.data<T>()[i] = static_cast<T>(static_cast<typename Accumulator<T>::type>(x));
      }
    });
  }

  DatasetPtr base_;
  std::vector<Field> fields_;
  std::vector<Fitted> scales_;
  std::vector<bool> scaled_;
};

}  // namespace

DatasetPtr make_scaled(DatasetPtr base, const std::vector<Fitted>& scales) {
  return std::make_shared<ScaledDataset>(std::move(base), scales);
}

}  // namespace paddle::data
