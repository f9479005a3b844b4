#pragma once
// Shared by the models of ai.onnx.ml: feature rows, class labels and post-transforms of scores.

#include <span>
#include <string>
#include <vector>

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// Input i as feature rows (a vector is one row) in float32, or in float64 if `keep_float64` and
/// the input has that dtype.
Array feature_rows(const NodeCall& c, size_t i, bool keep_float64 = false);

/// A matrix of scores; kModel if it takes more than half of the memory.
Array score_matrix(DType dtype, int64_t rows, int64_t columns);

/// Class labels, strings or integers.
class Labels {
 public:
  /// From attributes; empty if both are absent.
  static Labels of(const NodeCall& c, const char* strings, const char* integers);
  size_t size() const { return are_strings() ? strings_.size() : integers_.size(); }
  bool are_strings() const { return !strings_.empty(); }
  /// All labels as a vector.
  Value all() const;
  /// Labels by index.
  Value at(const std::vector<size_t>& indices) const;
  /// These labels if there are two; otherwise "0" and "1", or 0 and 1.
  Labels binary() const;

 private:
  std::vector<std::string> strings_;
  std::vector<int64_t> integers_;
};

enum class PostTransform : uint8_t { kNone, kLogistic, kSoftmax, kSoftmaxZero, kProbit };
PostTransform post_transform(const NodeCall& c);

/// How one score becomes two class scores. With LOGISTIC both go through the logistic function, as
/// -score and score.
enum class SecondClass : uint8_t {
  kNone,
  kComplement,  ///< 1 - score, score
  kOpposite     ///< -score, score
};
/// Transforms the scores of one row. A single score is only transformed by PROBIT, as in ONNX
/// Runtime.
void apply_post_transform(std::vector<float>& scores, PostTransform transform,
                          SecondClass second = SecondClass::kNone);

float logistic(float x);

}  // namespace paddle::onnx
