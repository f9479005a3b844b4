// The rule of multi_box_head.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/detection.h"
#include "ops/generated/detection_rules.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

constexpr const char* kName = "multi_box_head";

/// One list of numbers for each feature map; a number stands for a list of one.
std::vector<std::vector<double>> ratios_of(const AttrValue& value, size_t maps) {
  if (!value.is_list() || value.as_list().size() != maps)
    reject(kName, "aspect_ratios must be a list for each of the ", maps, " inputs");
  std::vector<std::vector<double>> out;
  const auto number_of = [](const AttrValue& v) {
    if (!v.is_int() && !v.is_float()) reject(kName, "aspect_ratios must hold numbers");
    return v.as_double();
  };
  for (const AttrValue& item : value.as_list()) {
    std::vector<double> row;
    if (item.is_list())
      for (const AttrValue& v : item.as_list()) row.push_back(number_of(v));
    else
      row.push_back(number_of(item));
    out.push_back(std::move(row));
  }
  return out;
}

struct Sizes {
  std::vector<double> low, high;
};

/// Sizes of the boxes of each map, spread evenly between two percentages of base_size where they
/// are not given.
Sizes sizes_of(const MultiBoxHeadAttrs& a, size_t maps) {
  Sizes out;
  if (a.min_sizes) {
    out.low = *a.min_sizes;
    out.high = a.max_sizes.value_or(std::vector<double>());
  } else {
    if (maps < 3 || !a.min_ratio || !a.max_ratio)
      reject(kName, "without min_sizes it needs min_ratio, max_ratio and at least 3 inputs");
    check_32_bits(kName, "min_ratio", *a.min_ratio);
    check_32_bits(kName, "max_ratio", *a.max_ratio);
    const int64_t step = (*a.max_ratio - *a.min_ratio) / (static_cast<int64_t>(maps) - 2);
    if (*a.min_ratio < 0 || step < 1) reject(kName, "max_ratio must be well above min_ratio");
    out.low = {a.base_size * 0.1};
    out.high = {a.base_size * 0.2};
    for (int64_t r = *a.min_ratio; r <= *a.max_ratio && out.low.size() < maps; r += step) {
      out.low.push_back(a.base_size * static_cast<double>(r) / 100);
      out.high.push_back(a.base_size * static_cast<double>(r + step) / 100);
    }
  }
  if (out.low.size() != maps || (!out.high.empty() && out.high.size() != maps))
    reject(kName, "min_sizes and max_sizes must have a number for each of the ", maps, " inputs");
  return out;
}

}  // namespace

Tensors decompose_multi_box_head(CallContext& c) {
  const auto a = c.attrs_as<MultiBoxHeadAttrs>();
  const Tensors inputs = c.list(0), weights[2] = {c.list(2), c.list(3)},
                biases[2] = {c.list(4), c.list(5)};
  const size_t maps = inputs.size();
  if (maps == 0) reject(kName, "inputs must not be empty");
  for (const Tensors* list : {&weights[0], &weights[1], &biases[0], &biases[1]})
    if (list->size() != maps && !(list->empty() && list != &weights[0] && list != &weights[1]))
      reject(kName, "there are ", list->size(), " weights or biases for ", maps, " inputs");
  if (a.num_classes < 1) reject(kName, "num_classes must be positive, not ", a.num_classes);
  check_32_bits(kName, "num_classes", a.num_classes);
  const auto ratios = ratios_of(a.aspect_ratios, maps);
  const Sizes sizes = sizes_of(a, maps);
  for (const auto* steps : {&a.steps, &a.step_w, &a.step_h})
    if (*steps && (*steps)->size() != maps)
      reject(kName, "steps, step_w and step_h must have a number for each input");
  if (a.step_w.has_value() != a.step_h.has_value())
    reject(kName, "step_w and step_h must be given together");
  Tensors offsets, scores, boxes, variances;
  for (size_t i = 0; i < maps; ++i) {
    const std::vector<double> step = a.steps    ? std::vector{(*a.steps)[i], (*a.steps)[i]}
                                     : a.step_w ? std::vector{(*a.step_w)[i], (*a.step_h)[i]}
                                                : std::vector{0.0, 0.0};
    std::optional<std::vector<double>> high;
    if (!sizes.high.empty()) high = std::vector{sizes.high[i]};
    const Tensors priors =
        ops::prior_box(inputs[i], c.operand(1), {sizes.low[i]}, high, ratios[i], a.variance, a.flip,
                       a.clip, step, a.offset, a.min_max_aspect_ratios_order);
    boxes.push_back(ops::reshape(priors[0], Shape{-1, 4}));
    variances.push_back(ops::reshape(priors[1], Shape{-1, 4}));
    const int64_t count = priors[0].dim(2).value();
    for (size_t k = 0; k < 2; ++k) {
      const int64_t width = k == 0 ? 4 : a.num_classes;
      if (weights[k][i].ndim() != 4 || weights[k][i].dim(0).equals(Dim(count * width)) == false)
        reject(kName, k == 0 ? "loc_weights" : "conf_weights", " must give ", count * width,
               " channels for input ", i, ", not ", weights[k][i].type());
      const Tensor out = ops::conv2d(inputs[i], weights[k][i],
                                     biases[k].empty() ? Tensor() : biases[k][i], a.stride, a.pad);
      const Tensor last = ops::transpose(out, {0, 2, 3, 1});
      (k == 0 ? offsets : scores)
          .push_back(
              ops::reshape(last, {last.dim(0), last.dim(1) * last.dim(2) * count, Dim(width)}));
    }
  }
  return {ops::concat(offsets, 1), ops::concat(scores, 1), ops::concat(boxes, 0),
          ops::concat(variances, 0)};
}

}  // namespace paddle::rules
