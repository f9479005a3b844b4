#include "metrics/detection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace paddle::metrics {
namespace {

constexpr size_t kThresholds = 10, kRecalls = 101, kAreas = 4;
constexpr std::array<size_t, 3> kMax = {1, 10, 100};
/// All, small, medium and large.
constexpr std::array<std::pair<double, double>, kAreas> kAreaRanges = {
    {{0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}};

double threshold(size_t t) { return 0.5 + 0.05 * static_cast<double>(t); }

double overlap(const DetectedBox& d, const LabeledBox& g) {
  const double width = std::min(d.x + d.width, g.x + g.width) - std::max(d.x, g.x);
  const double height = std::min(d.y + d.height, g.y + g.height) - std::max(d.y, g.y);
  if (width <= 0 || height <= 0) return 0;
  const double shared = width * height, own = d.width * d.height;
  return shared / (g.is_crowd ? own : own + g.width * g.height - shared);
}

/// A detection of an image, matched at each threshold.
struct Match {
  double score = 0;
  std::array<bool, kThresholds> is_right = {}, is_ignored = {};
};

/// Detections by falling score, those of equal scores in their order.
std::vector<size_t> by_score(const std::vector<DetectedBox>& boxes) {
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return boxes[a].score > boxes[b].score; });
  return order;
}

/// Matches the detections of one image and category, best scores first, for one range of areas.
std::vector<Match> match(const std::vector<LabeledBox>& given,
                         const std::vector<DetectedBox>& found,
                         const std::pair<double, double>& range, int64_t& counted) {
  const auto outside = [&](double area) { return area < range.first || area > range.second; };
  std::vector<size_t> labels(given.size());
  std::iota(labels.begin(), labels.end(), size_t{0});
  const auto is_ignored = [&](size_t g) { return given[g].is_crowd || outside(given[g].area); };
  // Ignored ones come last: a detection takes them only if nothing else fits.
  std::stable_sort(labels.begin(), labels.end(),
                   [&](size_t a, size_t b) { return is_ignored(a) < is_ignored(b); });
  counted += std::count_if(labels.begin(), labels.end(), [&](size_t g) { return !is_ignored(g); });
  std::vector<size_t> order = by_score(found);
  order.resize(std::min(order.size(), kMax.back()));
  std::vector<Match> out;
  std::array<std::vector<bool>, kThresholds> taken;
  for (auto& each : taken) each.resize(given.size());
  for (const size_t d : order) {
    Match& m = out.emplace_back();
    m.score = found[d].score;
    for (size_t t = 0; t < kThresholds; ++t) {
      double best = std::min(threshold(t), 1 - 1e-10);
      constexpr size_t kNone = SIZE_MAX;
      size_t chosen = kNone;
      for (const size_t g : labels) {
        if (taken[t][g] && !given[g].is_crowd) continue;
        if (chosen != kNone && !is_ignored(chosen) && is_ignored(g)) break;
        const double shared = overlap(found[d], given[g]);
        if (shared < best) continue;
        best = shared;
        chosen = g;
      }
      if (chosen == kNone) {
        m.is_ignored[t] = outside(found[d].width * found[d].height);
        continue;
      }
      taken[t][chosen] = true;
      m.is_right[t] = true;
      m.is_ignored[t] = is_ignored(chosen);
    }
  }
  return out;
}

/// Precision at each level of recall, and the highest recall, of one category at one threshold.
struct Curve {
  std::array<double, kRecalls> precision = {};
  double recall = 0;
};

Curve curve_of(const std::vector<const Match*>& sorted, size_t t, int64_t counted) {
  std::vector<double> precision, recall;
  double hits = 0, misses = 0;
  for (const Match* m : sorted) {
    if (!m->is_ignored[t]) (m->is_right[t] ? hits : misses) += 1;
    recall.push_back(hits / static_cast<double>(counted));
    precision.push_back(hits / (hits + misses + std::numeric_limits<double>::epsilon()));
  }
  Curve out;
  if (recall.empty()) return out;
  out.recall = recall.back();
  for (size_t i = precision.size() - 1; i > 0; --i)
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  for (size_t r = 0; r < kRecalls; ++r) {
    const double level = static_cast<double>(r) * 0.01;
    const auto at = std::lower_bound(recall.begin(), recall.end(), level) - recall.begin();
    if (static_cast<size_t>(at) < precision.size())
      out.precision[r] = precision[static_cast<size_t>(at)];
  }
  return out;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? -1
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

}  // namespace

void DetectionEvaluator::add(int64_t image, int64_t category, const LabeledBox& box) {
  boxes_[category][image].labeled.push_back(box);
}
void DetectionEvaluator::add(int64_t image, int64_t category, const DetectedBox& box) {
  boxes_[category][image].detected.push_back(box);
}

DetectionScore DetectionEvaluator::result() const {
  DetectionScore out;
  std::array<std::vector<double>, kAreas> precisions;  // of 100 boxes
  std::vector<double> precisions50, precisions75;
  std::array<std::array<std::vector<double>, kAreas>, kMax.size()> recalls;
  for (const auto& [category, images] : boxes_) {
    std::vector<double> own;
    for (size_t area = 0; area < kAreas; ++area) {
      int64_t counted = 0;
      std::vector<std::vector<Match>> by_image;
      for (const auto& [image, boxes] : images)
        by_image.push_back(match(boxes.labeled, boxes.detected, kAreaRanges[area], counted));
      if (counted == 0) continue;
      for (size_t most = 0; most < kMax.size(); ++most) {
        std::vector<const Match*> sorted;
        for (const auto& matches : by_image)
          for (size_t i = 0; i < std::min(matches.size(), kMax[most]); ++i)
            sorted.push_back(&matches[i]);
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const Match* a, const Match* b) { return a->score > b->score; });
        for (size_t t = 0; t < kThresholds; ++t) {
          const Curve curve = curve_of(sorted, t, counted);
          recalls[most][area].push_back(curve.recall);
          if (most + 1 < kMax.size()) continue;
          const auto& levels = curve.precision;
          precisions[area].insert(precisions[area].end(), levels.begin(), levels.end());
          if (area > 0) continue;
          own.insert(own.end(), levels.begin(), levels.end());
          if (t == 0) precisions50.insert(precisions50.end(), levels.begin(), levels.end());
          if (t == 5) precisions75.insert(precisions75.end(), levels.begin(), levels.end());
        }
      }
    }
    out.by_category[category] = mean(own);
  }
  out.map = mean(precisions[0]);
  out.map50 = mean(precisions50);
  out.map75 = mean(precisions75);
  out.map_small = mean(precisions[1]);
  out.map_medium = mean(precisions[2]);
  out.map_large = mean(precisions[3]);
  out.recall_1 = mean(recalls[0][0]);
  out.recall_10 = mean(recalls[1][0]);
  out.recall_100 = mean(recalls[2][0]);
  out.recall_small = mean(recalls[2][1]);
  out.recall_medium = mean(recalls[2][2]);
  out.recall_large = mean(recalls[2][3]);
  return out;
}

}  // namespace paddle::metrics
