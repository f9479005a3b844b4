#pragma once
// What the models of ai.onnx.ml share: rows of features, labels of classes, and what becomes of
// scores after a model has given them.

#include <span>
#include <string>
#include <vector>

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// Input i as rows of features: one row if it is a vector. float32, or float64 if it is that and
/// `wide` asks to keep it.
Array feature_rows(const NodeCall& c, size_t i, bool wide = false);

/// A matrix for scores; kModel if it is more than half of the memory.
Array score_matrix(DType dtype, int64_t rows, int64_t columns);

/// The classes of a model, strings or numbers.
class Labels {
 public:
  /// From the attributes of these names; none if neither is there.
  static Labels of(const NodeCall& c, const char* strings, const char* integers);
  size_t size() const { return are_strings() ? strings_.size() : integers_.size(); }
  bool are_strings() const { return !strings_.empty(); }
  /// All of them, a vector.
  Value all() const;
  /// Those at these places.
  Value at(const std::vector<size_t>& places) const;
  /// With two labels themselves; else "0" and "1", 0 and 1.
  Labels binary() const;

 private:
  std::vector<std::string> strings_;
  std::vector<int64_t> integers_;
};

enum class PostTransform : uint8_t { kNone, kLogistic, kSoftmax, kSoftmaxZero, kProbit };
PostTransform post_transform(const NodeCall& c);

/// What two classes get where a model gives one score; with the logistic function both are it, of
/// the opposite score and of the score.
enum class SecondClass : uint8_t {
  kNone,
  kComplement,  ///< 1 - score, score
  kOpposite     ///< -score, score
};
/// Transforms the scores of one row. One score alone is only transformed by probit, as in ONNX
/// Runtime.
void apply_post_transform(std::vector<float>& scores, PostTransform transform,
                          SecondClass second = SecondClass::kNone);

float logistic(float x);

}  // namespace paddle::onnx
