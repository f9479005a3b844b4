// nms and box_selection.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/read_values.h"
#include "kernels/detection/suppression.h"
#include "ops/generated/detection.h"

namespace paddle::cpu {
namespace {

/// Boxes of `order` that survive, at most `limit`.
template <class T>
std::vector<int64_t> suppress(const T* boxes, const std::vector<int64_t>& order, T threshold,
                              int64_t limit = INT64_MAX) {
  KeptBoxes<T> kept;
  std::vector<int64_t> out;
  for (const int64_t i : order) {
    if (static_cast<int64_t>(out.size()) >= limit) break;
    const T* const box = boxes + 4 * i;
    const T area = KeptBoxes<T>::area(box, 0);
    if (kept.overlaps(box, area, threshold, 0)) continue;
    kept.add(box, area);
    out.push_back(i);
  }
  return out;
}

/// Sorts indices by descending score; equal scores keep their order.
void sort_by(std::vector<int64_t>& order, const std::vector<double>& scores) {
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
}

template <class T>
std::unique_ptr<Kernel> nms_kernel(const KernelRequest& request) {
  const NmsAttrs attrs(request.attrs);
  const std::vector<Layout> layouts(request.operands.begin(), request.operands.end());
  const int64_t count = layouts[0].shape[0];
  const auto threshold = static_cast<T>(attrs.iou_threshold);
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const T* const boxes = static_cast<const T*>(operands[0]);
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::vector<int64_t> kept;
    if (!layouts[1].present) {
      kept = suppress(boxes, order, threshold);
    } else {
      const auto scores = values_of<double>(layouts[1], operands[1]);
      for (const double s : scores)
        if (std::isnan(s)) fail(ErrorCode::kData, "nms: a score is NaN");
      sort_by(order, scores);
      if (!layouts[2].present) {
        kept = suppress(boxes, order, threshold);
      } else {
        const auto categories = values_of<int64_t>(layouts[2], operands[2]);
        std::vector<bool> taken(static_cast<size_t>(count), false);
        for (const int64_t category : *attrs.categories) {
          std::vector<int64_t> own;
          for (const int64_t i : order)
            if (categories[static_cast<size_t>(i)] == category) own.push_back(i);
          for (const int64_t i : suppress(boxes, own, threshold))
            taken[static_cast<size_t>(i)] = true;
        }
        for (const int64_t i : order)
          if (taken[static_cast<size_t>(i)]) kept.push_back(i);
      }
      if (attrs.top_k && layouts[2].present)
        kept.resize(std::min(kept.size(), static_cast<size_t>(*attrs.top_k)));
    }
    std::copy(
        kept.begin(), kept.end(),
        static_cast<int64_t*>(context.allocator->allocate(0, {static_cast<int64_t>(kept.size())})));
  });
}

template <class T>
std::unique_ptr<Kernel> selection_kernel(const KernelRequest& request) {
  const BoxSelectionAttrs attrs(request.attrs);
  const int64_t batch = request.operands[1].shape[0], classes = request.operands[1].shape[1],
                count = request.operands[1].shape[2];
  const auto threshold = static_cast<T>(attrs.iou_threshold);
  // Without a threshold even -inf takes part, but not NaN.
  const double least = attrs.score_threshold.value_or(-INFINITY);
  const bool all = !attrs.score_threshold;
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const T* const given = static_cast<const T*>(operands[0]);
    const T* const scores = static_cast<const T*>(operands[1]);
    // Corners in order.
    std::vector<T> boxes(static_cast<size_t>(batch * count * 4));
    for (int64_t i = 0; i < batch * count; ++i) {
      const T* const b = given + 4 * i;
      T* const out = boxes.data() + 4 * i;
      for (int64_t k = 0; k < 2; ++k) {
        out[k] = attrs.centered ? b[k] - b[k + 2] / 2 : std::min(b[k], b[k + 2]);
        out[k + 2] = attrs.centered ? b[k] + b[k + 2] / 2 : std::max(b[k], b[k + 2]);
      }
    }
    std::vector<std::vector<int64_t>> kept(static_cast<size_t>(batch * classes));
    parallel_for(batch * classes, 1, [&](int64_t begin, int64_t end) {
      std::vector<std::pair<T, int32_t>> order;
      for (int64_t at = begin; at < end; ++at) {
        const T* const score = scores + at * count;
        const T* const own = boxes.data() + at / classes * count * 4;
        // Without branches: each candidate is written, and kept if the next one goes after it.
        order.resize(static_cast<size_t>(count));
        size_t candidates = 0;
        for (int64_t i = 0; i < count; ++i) {
          order[candidates] = {score[i], static_cast<int32_t>(i)};
          const auto value = static_cast<double>(score[i]);
          candidates += (value > least) | (all & (value == least));
        }
        order.resize(candidates);
        const auto better = [](const auto& a, const auto& b) {
          return a.first > b.first || (a.first == b.first && a.second < b.second);
        };
        // Candidates are taken from a heap: only those that are looked at get sorted.
        const auto worse = [&](const auto& a, const auto& b) { return better(b, a); };
        std::make_heap(order.begin(), order.end(), worse);
        KeptBoxes<T> chosen;
        std::vector<int64_t>& out = kept[static_cast<size_t>(at)];
        for (auto last = order.end();
             last != order.begin() && static_cast<int64_t>(out.size()) < attrs.max_boxes; --last) {
          std::pop_heap(order.begin(), last, worse);
          const int64_t i = std::prev(last)->second;
          const T* const box = own + 4 * i;
          const T area = KeptBoxes<T>::area(box, 0);
          if (chosen.overlaps(box, area, threshold, 0)) continue;
          chosen.add(box, area);
          out.push_back(i);
        }
      }
    });
    int64_t total = 0;
    for (const auto& k : kept) total += static_cast<int64_t>(k.size());
    auto* out = static_cast<int64_t*>(context.allocator->allocate(0, {total, 3}));
    for (int64_t at = 0; at < batch * classes; ++at)
      for (const int64_t i : kept[static_cast<size_t>(at)]) {
        *out++ = at / classes;
        *out++ = at % classes;
        *out++ = i;
      }
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_nms(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? nms_kernel<float>(request)
                                                  : nms_kernel<double>(request);
}

std::unique_ptr<Kernel> prepare_box_selection(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? selection_kernel<float>(request)
                                                  : selection_kernel<double>(request);
}

}  // namespace paddle::cpu
