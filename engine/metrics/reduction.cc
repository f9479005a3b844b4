// Sums, minima and maxima over the evaluated data: the states of metrics of one's own.

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

constexpr int64_t kMaxElements = 4096;

/// Reduces the axes of `axis` (all without it); the remaining ones make a vector.
class Reduction final : public Metric {
 public:
  explicit Reduction(const MetricSpec& spec) : name_(spec.name) {
    const auto given = spec.options.find("axis");
    if (given == spec.options.end()) return;
    if (const auto* axes = std::get_if<std::vector<int64_t>>(&given->second)) axes_ = *axes;
  }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    const Array a = operands[0].cast(DType::kF64).contiguous();
    const std::vector<bool> kept = kept_axes(name_, to_shape(a.shape), axes_, ErrorCode::kData);
    // The position in the vector, as a sum over the kept axes.
    std::vector<int64_t> steps(a.shape.size(), 0);
    int64_t elements = 1;
    for (size_t d = a.shape.size(); d-- > 0;)
      if (kept[d]) {
        steps[d] = elements;
        elements *= a.shape[d];
      }
    if (elements > kMaxElements)
      fail(ErrorCode::kData, name_, ": ", elements, " elements remain, at most ", kMaxElements,
           " are possible; reduce more axes");
    if (const size_t known = state_.counts(kElements);
        known > 0 && known != static_cast<size_t>(elements))
      fail(ErrorCode::kData, name_, ": ", elements, " elements remain, there were ", known,
           " in the batch before");
    state_.count(kElements, static_cast<size_t>(elements - 1)) += 0;
    std::vector<int64_t> at(a.shape.size(), 0);
    int64_t element = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      add(static_cast<size_t>(element), a.data<double>()[i]);
      for (size_t d = at.size(); d-- > 0;) {
        element += steps[d];
        if (++at[d] < a.shape[d]) break;
        element -= steps[d] * a.shape[d];
        at[d] = 0;
      }
    }
  }
  double result() const override { return results()[0]; }
  std::vector<double> results() const override {
    const size_t elements = std::max<size_t>(1, state_.counts(kElements));
    std::vector<double> out;
    for (size_t i = 0; i < elements; ++i) {
      if (name_ == "sum")
        out.push_back(state_.sum(i));
      else if (state_.count(kNaNs, i) > 0)
        out.push_back(kNaN);
      else
        out.push_back(name_ == "max" ? state_.largest(i) : -state_.largest(i));
    }
    return out;
  }

 private:
  enum Group : size_t { kElements, kNaNs };

  void add(size_t element, double value) {
    if (name_ == "sum") {
      state_.sum(element) += value;
      return;
    }
    if (std::isnan(value)) ++state_.count(kNaNs, element);
    state_.note_largest(element, name_ == "max" ? value : -value);
  }
  std::string name_;
  std::optional<std::vector<int64_t>> axes_;
};

}  // namespace

std::vector<bool> kept_axes(const std::string& name, const Shape& shape,
                            const std::optional<std::vector<int64_t>>& axes, ErrorCode code) {
  std::vector<bool> kept(shape.size(), axes.has_value());
  for (const int64_t axis : axes.value_or(std::vector<int64_t>())) {
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      fail(code, name, ": axis ", axis, " is out of range for ", text(shape));
    kept[static_cast<size_t>(at)] = false;
  }
  return kept;
}

std::unique_ptr<Metric> make_reduction(const MetricSpec& spec) {
  if (spec.name == "sum" || spec.name == "min" || spec.name == "max")
    return std::make_unique<Reduction>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
