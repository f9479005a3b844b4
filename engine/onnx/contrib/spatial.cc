// Spatial operators of com.microsoft: crop and resize, masked pooling, transposed convolution with
// dynamic padding.

#include <cmath>
#include <limits>

#include "base/limits.h"
#include "base/parallel.h"
#include "formats/onnx/attributes.h"
#include "onnx/ops/conv.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/window.h"
#include "ops/generated/indexing.h"
#include "ops/generated/shape.h"
#include "ops/nn/window.h"

namespace paddle::onnx {
namespace {

/// Source coordinates of a crop along an axis of `size` pixels: corners aligned, or the center for
/// a single one.
std::vector<float> crop_coordinates(float from, float to, int64_t count, int64_t size) {
  const auto last = static_cast<float>(size - 1);
  if (count == 1) return {0.5f * (from + to) * last};
  const float step = (to - from) * last / static_cast<float>(count - 1);
  std::vector<float> out;
  for (int64_t i = 0; i + 1 < count; ++i) out.push_back(from * last + static_cast<float>(i) * step);
  out.push_back(to * last);
  return out;
}

/// Regions [top, left, bottom, right] in [0, 1], resized to one size.
Values crop_and_resize(NodeCall& c) {
  const std::string mode = c.string_attr("mode", "bilinear");
  c.check(mode == "bilinear" || mode == "nearest", "unknown mode '", mode, "'");
  const Array x = c.constant_array(0).contiguous(),
              boxes = c.constant_array(1).cast(DType::kF32).contiguous();
  const auto images = c.constant_ints(2), size = c.constant_ints(3);
  const auto count = static_cast<int64_t>(images.size());
  c.check(x.ndim() == 4 && x.dtype == DType::kF32,
          "the input must be float32 [batch, channels, height, width]");
  c.check(boxes.ndim() == 2 && boxes.shape[0] == count && boxes.shape[1] == 4,
          "rois must be [regions, 4] with one batch index each");
  c.check(size.size() == 2 && size[0] > 0 && size[1] > 0 && size[0] < 1 << 24 && size[1] < 1 << 24,
          "crop_size must be two sizes");
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t rows = size[0], columns = size[1], area = rows * columns;
  c.check(count * channels == 0 || area <= limits().memory / 8 / count / channels,
          "the crops take more than half of the memory");
  for (const int64_t image : images)
    c.check(image >= 0 && image < x.shape[0], "the batch index ", image, " is out of range");
  Array out = Array::empty(DType::kF32, {count, channels, rows, columns});
  const auto outside = static_cast<float>(c.float_attr("extrapolation_value", 0));
  const auto crop = [&](int64_t n) {
    const float* box = boxes.data<float>() + 4 * n;
    const auto ys = crop_coordinates(box[0], box[2], rows, height);
    const auto xs = crop_coordinates(box[1], box[3], columns, width);
    const auto inside = [](float at, int64_t extent) {
      return at >= 0 && at <= static_cast<float>(extent - 1);
    };
    const float* image =
        x.data<float>() + images[static_cast<size_t>(n)] * channels * height * width;
    float* to = out.data<float>() + n * channels * area;
    for (int64_t p = 0; p < area; ++p) {
      const float y = ys[static_cast<size_t>(p / columns)],
                  at = xs[static_cast<size_t>(p % columns)];
      const bool within = inside(y, height) && inside(at, width);
      const auto top = static_cast<int64_t>(within ? std::floor(y) : 0),
                 left = static_cast<int64_t>(within ? std::floor(at) : 0),
                 bottom = static_cast<int64_t>(within ? std::ceil(y) : 0),
                 right = static_cast<int64_t>(within ? std::ceil(at) : 0);
      const float dy = y - static_cast<float>(top), dx = at - static_cast<float>(left);
      for (int64_t k = 0; k < channels; ++k) {
        const float* plane = image + k * height * width;
        float& pixel = to[k * area + p];
        if (!within) {
          pixel = outside;
        } else if (mode == "nearest") {
          pixel = plane[static_cast<int64_t>(std::round(y)) * width +
                        static_cast<int64_t>(std::round(at))];
        } else {
          const auto between = [&](int64_t row) {
            const float a = plane[row * width + left], b = plane[row * width + right];
            return a + (b - a) * dx;
          };
          const float above = between(top);
          pixel = above + (between(bottom) - above) * dy;
        }
      }
    }
  };
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) crop(n);
  });
  return {Tensor(out)};
}

/// Max pooling in which a window is read along its last axis up to the first masked element; the
/// first element of an image is never masked. Mask offsets of further planes follow ONNX Runtime,
/// which counts elements rather than planes.
Values maxpool_with_mask(NodeCall& c) {
  const Array x = c.constant_array(0).contiguous(),
              mask = c.constant_array(1).cast(DType::kI32).contiguous();
  c.check(x.dtype == DType::kF32 && x.ndim() >= 3 && x.ndim() <= 5,
          "the input must be float32 with one to three spatial axes");
  c.check(mask.ndim() == x.ndim() &&
              std::equal(x.shape.begin() + 2, x.shape.end(), mask.shape.begin() + 2),
          "the mask ", str(mask.shape), " does not match the input ", str(x.shape));
  const auto kernel = c.ints_attr("kernel_shape");
  c.check(static_cast<int64_t>(kernel.size()) == x.ndim() - 2,
          "kernel_shape is larger than the input");
  const Window w(c, to_shape(x.shape), kernel);
  // Up to three spatial axes; missing ones are 1.
  int64_t size[3] = {1, 1, 1}, count[3] = {1, 1, 1}, window[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          before[3] = {0, 0, 0};
  Dims shape = {x.shape[0], x.shape[1]};
  for (size_t i = 0; i < w.rank(); ++i) {
    const size_t to = 3 - w.rank() + i;
    size[to] = x.shape[i + 2];
    count[to] =
        window_count(size[to], w.before[i], w.after[i], w.kernel[i], w.stride[i], 1, false).value();
    c.check(count[to] > 0, "a window of ", w.kernel[i], " is larger than ", size[to], " elements");
    window[to] = w.kernel[i], stride[to] = w.stride[i], before[to] = w.before[i];
    shape.push_back(count[to]);
  }
  const int64_t planes = x.shape[0] * x.shape[1], masks = mask.shape[0] * mask.shape[1];
  c.check(planes == 0 || masks > 0, "the mask is empty");
  const int64_t in = size[0] * size[1] * size[2], area = count[0] * count[1] * count[2];
  c.check(planes == 0 || area <= limits().memory / 8 / planes, "the result is too large");
  Array out = Array::empty(DType::kF32, shape);
  parallel_for(planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* plane = x.data<float>() + n * in;
      const int32_t* allowed = mask.data<int32_t>() + n * in % masks;
      for (int64_t p = 0; p < area; ++p) {
        const int64_t at[3] = {p / (count[1] * count[2]), p / count[2] % count[1], p % count[2]};
        int64_t first[3], last[3];
        for (int i = 0; i < 3; ++i) {
          const int64_t start = at[i] * stride[i] - before[i];
          first[i] = std::max<int64_t>(start, 0);
          last[i] = std::min(start + window[i], size[i]);
        }
        float most = std::numeric_limits<float>::lowest();
        for (int64_t a = first[0]; a < last[0]; ++a)
          for (int64_t b = first[1]; b < last[1]; ++b)
            for (int64_t k = first[2]; k < last[2]; ++k) {
              const int64_t i = (a * size[1] + b) * size[2] + k;
              if (allowed[i] == 0 && (i > 0 || w.rank() == 1)) break;
              most = std::max(most, plane[i]);
            }
        out.data<float>()[n * area + p] = most;
      }
    }
  });
  return {Tensor(out)};
}

/// Pads are input 2, before the bias.
Values conv_transpose_with_dynamic_pads(NodeCall& c) {
  formats::onnx::Node node = c.node();
  if (c.has_input(2)) {
    std::erase_if(node.attributes, [](const auto& a) { return a.name == "pads"; });
    node.attributes.push_back(formats::onnx::ints_attribute("pads", c.constant_ints(2)));
  }
  Values inputs = {c.value(0), c.value(1), c.has_input(3) ? c.value(3) : Value()};
  NodeCall standard_call(node, 11, inputs, c.evaluator(), c.scope());
  return conv_transpose_rule(standard_call);
}

/// All windows of an axis as a new last axis.
Values unfold_tensor(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("dim", -1), x.ndim()), size = c.int_attr("size", 0),
                step = c.int_attr("step", 1), length = constant_dim(x, axis);
  c.check(size > 0 && step > 0 && size <= length, "windows of ", size, " every ", step,
          " elements are larger than an axis of ", length);
  const int64_t count = (length - size) / step + 1;
  c.check(count <= max_listed_indices() / size, "windows of ", size, " at ", count,
          " positions are not supported");
  std::vector<int64_t> indices;
  for (int64_t p = 0; p < count; ++p)
    for (int64_t k = 0; k < size; ++k) indices.push_back(p * step + k);
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = count;
  shape.insert(shape.begin() + axis + 1, Dim(size));
  const Tensor windows = ops::reshape(ops::index_select(x, int_vector(indices), axis), shape);
  std::vector<int64_t> order = leading_axes(windows.ndim());
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  return {ops::transpose(windows, order)};
}

}  // namespace

OperatorTable contrib_spatial_operators() {
  static constexpr Operator operators[] = {
      {"ConvTransposeWithDynamicPads", 1, conv_transpose_with_dynamic_pads},
      {"CropAndResize", 1, crop_and_resize},
      {"MaxpoolWithMask", 1, maxpool_with_mask},
      {"UnfoldTensor", 1, unfold_tensor},
  };
  return operators;
}

}  // namespace paddle::onnx
