#pragma once
// Average precision of boxes as COCO defines it (its evaluation of bounding boxes): ten thresholds
// of overlap, 101 levels of recall, areas by size, at most 1, 10 or 100 boxes of an image.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paddle::metrics {

struct LabeledBox {
  double x = 0, y = 0, width = 0, height = 0;  ///< pixels
  double area = 0;                             ///< of the object, which may be less than its box
  bool is_crowd = false;  ///< matches any number of detections, and counts for none
};
struct DetectedBox {
  double x = 0, y = 0, width = 0, height = 0;
  double score = 0;
};

/// COCO's twelve numbers, each -1 where it is not defined: no objects of that kind.
struct DetectionScore {
  double map = -1;                ///< mean over thresholds 0.5, 0.55, …, 0.95
  double map50 = -1, map75 = -1;  ///< at one threshold
  double map_small = -1, map_medium = -1, map_large = -1;  ///< areas below 32², to 96², above
  double recall_1 = -1, recall_10 = -1, recall_100 = -1;   ///< with at most 1, 10 and 100 boxes
  double recall_small = -1, recall_medium = -1, recall_large = -1;
  std::map<int64_t, double> by_category = {};  ///< map of each category
};

/// An accumulator over images; results do not depend on the order of the images but for detections
/// of equal scores.
class DetectionEvaluator {
 public:
  void add(int64_t image, int64_t category, const LabeledBox& box);
  void add(int64_t image, int64_t category, const DetectedBox& box);
  DetectionScore result() const;

 private:
  struct Boxes {
    std::vector<LabeledBox> labeled;
    std::vector<DetectedBox> detected;
  };
  /// By category, then by image, in the order of their numbers.
  std::map<int64_t, std::map<int64_t, Boxes>> boxes_;
};

}  // namespace paddle::metrics
