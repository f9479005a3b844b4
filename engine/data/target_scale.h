#pragma once
// Brings values of a scaled target back to the units of the data files: the inverse of the scaling
// that was fitted and of the `scale` and `normalize` transforms of the field.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/fitted.h"
#include "data/transforms.h"

namespace paddle::data {

class TargetScale {
 public:
  /// `transforms` are those of validation, in order.
  TargetScale(const std::string& field, std::span<const Fitted> fitted,
              std::span<const TransformOptions> transforms);
  bool is_identity() const { return !log_ && steps_.empty(); }
  /// That of some columns of the field, which are then the columns.
  TargetScale of_columns(const std::vector<int64_t>& chosen) const;
  /// Whether distances have one factor, whatever the values: not on a logarithmic scale.
  bool is_linear() const { return !log_; }
  size_t columns() const { return columns_; }
  /// The inverse of the linear steps: x * first + second.
  std::pair<double, double> inverse(size_t column) const;
  /// The size for the model of a distance of 1 in the units of the files.
  double factor(size_t column) const;
  /// Values as the model sees them, [...] or [..., columns], floating; a copy in the units of the
  /// files. kData if the number of columns differs.
  Array restored(const Array& values) const;
  double restored(double value, size_t column) const;

 private:
  /// x * factor + offset, per column or for all.
  struct Affine {
    std::vector<double> factor, offset;
  };
  std::string field_;
  bool log_ = false;
  std::vector<Affine> steps_;  ///< in the order in which they were applied
  size_t columns_ = 1;
};

}  // namespace paddle::data
