// generate_proposals, distribute_fpn_proposals and the targets of yolo_loss.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/common/read_values.h"
#include "kernels/detection/suppression.h"
#include "ops/generated/detection.h"

namespace paddle::cpu {
namespace {

template <class T>
struct Proposals {
  std::vector<T> boxes, scores;
};

/// The proposals of one image.
template <class T>
Proposals<T> propose(const GenerateProposalsAttrs& a, const T* scores, const T* deltas,
                     const T* size, const T* anchors, const T* variances, int64_t each,
                     int64_t area) {
  // Anchors are [pixels, anchors], scores and deltas [anchors, pixels].
  const int64_t count = each * area;
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto score = [&](int64_t i) { return scores[i % each * area + i / each]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return score(x) > score(y); });
  if (a.pre_nms_top_n > 0 && a.pre_nms_top_n < count)
    order.resize(static_cast<size_t>(a.pre_nms_top_n));
  const T extra = a.pixel_offset ? T(1) : T(0), height = size[0], width = size[1];
  const T least = static_cast<T>(std::max(a.min_size, 1.0));
  const T most = static_cast<T>(std::log(1000.0 / 16.0));
  Proposals<T> out;
  KeptBoxes<T> kept;
  auto threshold = static_cast<T>(a.nms_thresh);
  bool any = false;
  for (const int64_t i : order) {
    const T* const anchor = anchors + 4 * i;
    const T* const variance = variances + 4 * i;
    const auto delta = [&](int64_t k) {
      return variance[k] * deltas[(i % each * 4 + k) * area + i / each];
    };
    const T w = anchor[2] - anchor[0] + extra, h = anchor[3] - anchor[1] + extra;
    const T cx = delta(0) * w + anchor[0] + w / 2, cy = delta(1) * h + anchor[1] + h / 2;
    const T bw = std::exp(std::min(delta(2), most)) * w,
            bh = std::exp(std::min(delta(3), most)) * h;
    const auto clip = [](T at, T limit) { return std::max(std::min(at, limit), T(0)); };
    const T box[4] = {clip(cx - bw / 2, width - extra), clip(cy - bh / 2, height - extra),
                      clip(cx + bw / 2 - extra, width - extra),
                      clip(cy + bh / 2 - extra, height - extra)};
    const T box_w = box[2] - box[0] + extra, box_h = box[3] - box[1] + extra;
    if (!(box_w >= least && box_h >= least)) continue;
    if (a.pixel_offset && (box[0] + box_w / 2 > width || box[1] + box_h / 2 > height)) continue;
    any = true;
    const T box_area = KeptBoxes<T>::area(box, extra);
    if (a.nms_thresh > 0) {
      if (kept.overlaps(box, box_area, threshold, extra)) continue;
      if (a.post_nms_top_n > 0 && static_cast<int64_t>(out.scores.size()) >= a.post_nms_top_n)
        break;
      if (a.eta < 1 && threshold > T(0.5)) threshold *= static_cast<T>(a.eta);
      kept.add(box, box_area);
    }
    out.boxes.insert(out.boxes.end(), box, box + 4);
    out.scores.push_back(score(i));
  }
  if (!any) {
    out.boxes.assign(4, T(0));
    out.scores.assign(1, T(0));
  }
  return out;
}

template <class T>
std::unique_ptr<Kernel> proposals_kernel(const KernelRequest& request) {
  const GenerateProposalsAttrs attrs(request.attrs);
  const Dims shape = request.operands[0].shape;
  const int64_t area = shape[2] * shape[3];
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const auto at = [&](size_t i) { return static_cast<const T*>(operands[i]); };
    std::vector<Proposals<T>> all;
    int64_t total = 0;
    for (int64_t n = 0; n < shape[0]; ++n) {
      all.push_back(propose(attrs, at(0) + n * shape[1] * area, at(1) + n * 4 * shape[1] * area,
                            at(2) + 2 * n, at(3), at(4), shape[1], area));
      total += static_cast<int64_t>(all.back().scores.size());
    }
    T* boxes = static_cast<T*>(context.allocator->allocate(0, {total, 4}));
    T* scores = static_cast<T*>(context.allocator->allocate(1, {total, 1}));
    int32_t* counts = attrs.return_rois_num
                          ? static_cast<int32_t*>(context.allocator->allocate(2, {shape[0]}))
                          : nullptr;
    for (const auto& p : all) {
      boxes = std::copy(p.boxes.begin(), p.boxes.end(), boxes);
      scores = std::copy(p.scores.begin(), p.scores.end(), scores);
      if (counts) *counts++ = static_cast<int32_t>(p.scores.size());
    }
  });
}

/// Intersection over union of boxes given by center, width and height.
template <class T>
T overlap(const T* a, const T* b) {
  const auto common = [&](int i) {
    return std::min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) -
           std::max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2);
  };
  const T width = common(0), height = common(1);
  const T area = width < 0 || height < 0 ? T(0) : width * height;
  return area / (a[2] * a[3] + b[2] * b[3] - area);
}

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
std::unique_ptr<Kernel> yolo_kernel(const KernelRequest& request) {
  const YoloTargetsAttrs attrs(request.attrs);
  const Dims shape = request.operands[0].shape;
  const int64_t boxes_each = request.operands[1].shape[1];
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const T* const x = static_cast<const T*>(operands[0]);
    const T* const boxes = static_cast<const T*>(operands[1]);
    const T* const scores = static_cast<const T*>(operands[2]);
    T* const objects = static_cast<T*>(results[0]);
    int64_t* const cells = static_cast<int64_t*>(results[1]);
    int64_t* const best = static_cast<int64_t*>(results[2]);
    const int64_t rows = shape[2], columns = shape[3], area = rows * columns;
    const auto masks = static_cast<int64_t>(attrs.anchor_mask.size());
    const auto anchor = [&](int64_t i, size_t k) {
      return static_cast<T>(attrs.anchors[2 * static_cast<size_t>(i) + k]);
    };
    const T input = static_cast<T>(attrs.downsample_ratio * rows), grid = static_cast<T>(rows);
    const T scale = static_cast<T>(attrs.scale_x_y), bias = T(-0.5) * (scale - 1);
    const auto is_valid = [&](const T* box) { return box[2] > T(1e-6) && box[3] > T(1e-6); };
    std::fill_n(objects, shape[0] * masks * area, T(0));
    for (int64_t n = 0; n < shape[0]; ++n) {
      const T* const own = boxes + n * boxes_each * 4;
      for (int64_t m = 0; m < masks; ++m)
        for (int64_t p = 0; p < area; ++p) {
          const T* const head = x + ((n * masks + m) * (5 + attrs.class_num)) * area + p;
          const int64_t a = attrs.anchor_mask[static_cast<size_t>(m)];
          const T predicted[4] = {
              (static_cast<T>(p % columns) + sigmoid(head[0]) * scale + bias) / grid,
              (static_cast<T>(p / columns) + sigmoid(head[area]) * scale + bias) / grid,
              std::exp(head[2 * area]) * anchor(a, 0) / input,
              std::exp(head[3 * area]) * anchor(a, 1) / input};
          T largest = 0;
          for (int64_t b = 0; b < boxes_each; ++b)
            if (is_valid(own + 4 * b)) largest = std::max(largest, overlap(predicted, own + 4 * b));
          if (static_cast<double>(largest) > attrs.ignore_thresh)
            objects[(n * masks + m) * area + p] = -1;
        }
      for (int64_t b = 0; b < boxes_each; ++b) {
        const T* const box = own + 4 * b;
        int64_t& cell = cells[n * boxes_each + b];
        int64_t& chosen = best[n * boxes_each + b];
        cell = -1;
        chosen = 0;
        if (!is_valid(box)) continue;
        const T column = std::floor(box[0] * static_cast<T>(columns)),
                row = std::floor(box[1] * static_cast<T>(rows));
        if (!(column >= 0 && column < static_cast<T>(columns) && row >= 0 &&
              row < static_cast<T>(rows)))
          fail(ErrorCode::kData, "yolo_loss: the center ", box[0], ", ", box[1],
               " of gt_box is outside of the image");
        T largest = 0;
        const T centered[4] = {0, 0, box[2], box[3]};
        for (int64_t a = 0; a < static_cast<int64_t>(attrs.anchors.size() / 2); ++a) {
          const T shape_of[4] = {0, 0, anchor(a, 0) / input, anchor(a, 1) / input};
          const T iou = overlap(centered, shape_of);
          if (iou > largest) {
            largest = iou;
            chosen = a;
          }
        }
        const auto mask = std::find(attrs.anchor_mask.begin(), attrs.anchor_mask.end(), chosen);
        if (mask == attrs.anchor_mask.end()) continue;
        const int64_t m = mask - attrs.anchor_mask.begin();
        cell = m * area + static_cast<int64_t>(row) * columns + static_cast<int64_t>(column);
        objects[n * masks * area + cell] = scores[n * boxes_each + b];
      }
    }
  });
}

template <class T>
std::unique_ptr<Kernel> distribute_kernel(const KernelRequest& request) {
  const DistributeFpnProposalsAttrs attrs(request.attrs);
  const Layout counts = request.operands.size() > 1 ? request.operands[1] : Layout();
  const bool counted = request.operands.size() > 1 && counts.present;
  const int64_t count = request.operands[0].shape[0];
  const auto levels = static_cast<size_t>(attrs.max_level - attrs.min_level + 1);
  const double refer = attrs.refer_scale.as_double();
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const T* const boxes = static_cast<const T*>(operands[0]);
    std::vector<int64_t> ends = {count};
    if (counted) {
      ends = values_of<int64_t>(counts, operands[1]);
      int64_t sum = 0;
      for (int64_t& e : ends) {
        if (e < 0) fail(ErrorCode::kData, "distribute_fpn_proposals: rois_num has ", e);
        e = sum += e;
      }
      if (sum != count)
        fail(ErrorCode::kData, "distribute_fpn_proposals: rois_num counts ", sum,
             " boxes, there are ", count);
    }
    std::vector<std::vector<int64_t>> members(levels);
    std::vector<std::vector<int32_t>> per_image(levels, std::vector<int32_t>(ends.size(), 0));
    size_t image = 0;
    for (int64_t i = 0; i < count; ++i) {
      while (image < ends.size() && i >= ends[image]) ++image;
      const T* const box = boxes + 4 * i;
      const T extra = attrs.pixel_offset ? T(1) : T(0);
      const T area = box[2] < box[0] || box[3] < box[1] ? T(0) : KeptBoxes<T>::area(box, extra);
      const double level =
          std::floor(
              std::log2(static_cast<double>(std::sqrt(area) / static_cast<T>(refer)) + 1e-8)) +
          static_cast<double>(attrs.refer_level);
      const double bounded =
          std::clamp(std::isnan(level) ? 0 : level, static_cast<double>(attrs.min_level),
                     static_cast<double>(attrs.max_level));
      const auto at = static_cast<size_t>(static_cast<int64_t>(bounded) - attrs.min_level);
      members[at].push_back(i);
      ++per_image[at][image];
    }
    int32_t* const places = static_cast<int32_t*>(context.allocator->allocate(levels, {count, 1}));
    int32_t next = 0;
    for (size_t l = 0; l < levels; ++l) {
      T* out = static_cast<T*>(
          context.allocator->allocate(l, {static_cast<int64_t>(members[l].size()), 4}));
      for (const int64_t i : members[l]) {
        out = std::copy_n(boxes + 4 * i, 4, out);
        places[i] = next++;
      }
      if (counted)
        std::copy(per_image[l].begin(), per_image[l].end(),
                  static_cast<int32_t*>(context.allocator->allocate(
                      levels + 1 + l, {static_cast<int64_t>(ends.size())})));
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_generate_proposals(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? proposals_kernel<float>(request)
                                                  : proposals_kernel<double>(request);
}

std::unique_ptr<Kernel> prepare_yolo_targets(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? yolo_kernel<float>(request)
                                                  : yolo_kernel<double>(request);
}

std::unique_ptr<Kernel> prepare_distribute_fpn_proposals(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? distribute_kernel<float>(request)
                                                  : distribute_kernel<double>(request);
}

}  // namespace paddle::cpu
