// matrix_nms and multiclass_nms3: rows [class, score, box] of the best boxes of each image.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/detection.h"

namespace paddle::cpu {
namespace {

/// Intersection over union; without `normalized`, the right and bottom pixels belong to a box.
template <class T>
T overlap(const T* a, const T* b, bool normalized) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return 0;
  const T extra = normalized ? T(0) : T(1);
  const auto area = [&](const T* box) {
    if (box[2] < box[0] || box[3] < box[1]) return T(0);
    return (box[2] - box[0] + extra) * (box[3] - box[1] + extra);
  };
  const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + extra,
          height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + extra, common = width * height;
  return common / (area(a) + area(b) - common);
}

template <class T>
struct Found {
  T score;
  int64_t label, box;
};

/// Boxes with scores above the threshold, best first, at most `top` (all if negative).
template <class T>
std::vector<int64_t> candidates(const T* scores, int64_t count, double threshold, int64_t top) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<double>(scores[i]) > threshold) out.push_back(i);
  std::stable_sort(out.begin(), out.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  if (top >= 0 && static_cast<int64_t>(out.size()) > top) out.resize(static_cast<size_t>(top));
  return out;
}

template <class T>
void sort_by_score(std::vector<Found<T>>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
}

/// Scores lowered by the overlap with better boxes.
template <class T>
void decay(const MatrixNmsAttrs& a, const T* boxes, const T* scores, int64_t count, int64_t label,
           std::vector<Found<T>>& out) {
  const auto order = candidates(scores, count, a.score_threshold, a.nms_top_k);
  std::vector<T> largest, overlaps;
  for (size_t i = 0; i < order.size(); ++i) {
    overlaps.resize(i);
    T most = 0, factor = 1;
    for (size_t j = 0; j < i; ++j) {
      const T iou = overlap(boxes + 4 * order[i], boxes + 4 * order[j], a.normalized);
      most = std::max(most, iou);
      const T other = largest[j];
      const T each = a.use_gaussian
                         ? std::exp((other * other - iou * iou) * static_cast<T>(a.gaussian_sigma))
                         : (1 - iou) / (1 - other);
      factor = std::min(factor, each);
    }
    largest.push_back(most);
    const T score = factor * scores[order[i]];
    if (static_cast<double>(score) > a.post_threshold) out.push_back({score, label, order[i]});
  }
}

template <class T>
std::vector<Found<T>> matrix_nms(const MatrixNmsAttrs& a, const T* boxes, const T* scores,
                                 int64_t classes, int64_t count) {
  std::vector<Found<T>> all;
  for (int64_t c = 0; c < classes; ++c)
    if (c != a.background_label) decay(a, boxes, scores + c * count, count, c, all);
  sort_by_score(all);
  if (a.keep_top_k >= 0 && static_cast<int64_t>(all.size()) > a.keep_top_k)
    all.resize(static_cast<size_t>(a.keep_top_k));
  return all;
}

template <class T>
std::vector<Found<T>> multiclass_nms(const MulticlassNms3Attrs& a, const T* boxes, const T* scores,
                                     int64_t classes, int64_t count) {
  std::vector<Found<T>> all;
  for (int64_t c = 0; c < classes; ++c) {
    if (c == a.background_label) continue;
    const T* const own = scores + c * count;
    double threshold = a.nms_threshold;
    std::vector<int64_t> kept;
    for (const int64_t i : candidates(own, count, a.score_threshold, a.nms_top_k)) {
      const bool free = std::all_of(kept.begin(), kept.end(), [&](int64_t other) {
        return static_cast<double>(overlap(boxes + 4 * i, boxes + 4 * other, a.normalized)) <=
               threshold;
      });
      if (!free) continue;
      kept.push_back(i);
      all.push_back({own[i], c, i});
      if (a.nms_eta < 1 && threshold > 0.5) threshold *= a.nms_eta;
    }
  }
  if (a.keep_top_k >= 0 && static_cast<int64_t>(all.size()) > a.keep_top_k) {
    sort_by_score(all);
    all.resize(static_cast<size_t>(a.keep_top_k));
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& x, const auto& y) { return x.label < y.label; });
  }
  return all;
}

template <class T, class Attributes, class Select>
std::unique_ptr<Kernel> selection(const KernelRequest& request, Select select, int count_at,
                                  int index_at) {
  const Attributes attrs(request.attrs);
  const int64_t batch = request.operands[1].shape[0], classes = request.operands[1].shape[1],
                count = request.operands[1].shape[2];
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const T* const boxes = static_cast<const T*>(operands[0]);
    const T* const scores = static_cast<const T*>(operands[1]);
    std::vector<std::vector<Found<T>>> found(static_cast<size_t>(batch));
    parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        found[static_cast<size_t>(n)] =
            select(attrs, boxes + n * count * 4, scores + n * classes * count, classes, count);
    });
    int64_t total = 0;
    for (const auto& f : found) total += static_cast<int64_t>(f.size());
    const auto place = [&](int at, const Dims& shape) -> int32_t* {
      return at < 0 ? nullptr
                    : static_cast<int32_t*>(
                          context.allocator->allocate(static_cast<size_t>(at), shape));
    };
    T* out = static_cast<T*>(context.allocator->allocate(0, {total, 6}));
    int32_t *index = place(index_at, {total, 1}), *counts = place(count_at, {batch});
    for (int64_t n = 0; n < batch; ++n) {
      const auto& own = found[static_cast<size_t>(n)];
      if (counts) counts[n] = static_cast<int32_t>(own.size());
      for (const auto& f : own) {
        *out++ = static_cast<T>(f.label);
        *out++ = f.score;
        out = std::copy_n(boxes + (n * count + f.box) * 4, 4, out);
        if (index) *index++ = static_cast<int32_t>(n * count + f.box);
      }
    }
  });
}

template <class T>
std::unique_ptr<Kernel> prepare(const KernelRequest& request) {
  if (request.op.name() == "matrix_nms") {
    const MatrixNmsAttrs a(request.attrs);
    return selection<T, MatrixNmsAttrs>(request, matrix_nms<T>, a.return_rois_num ? 1 : -1,
                                        a.return_index ? (a.return_rois_num ? 2 : 1) : -1);
  }
  return selection<T, MulticlassNms3Attrs>(request, multiclass_nms<T>, 2, 1);
}

}  // namespace

std::unique_ptr<Kernel> prepare_multiclass_nms(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? prepare<float>(request)
                                                  : prepare<double>(request);
}

}  // namespace paddle::cpu
