#pragma once
// One sample on its way from the dataset into a batch: read, transformed, and checked, before the
// transforms and after them, for numbers that are not finite, and against the ranges that the model
// takes. Used from many threads.

#include <string>
#include <vector>

#include "data/loader.h"

namespace paddle::data {

/// Buffers that one thread keeps from sample to sample.
struct Workspace {
  Sample sample;
  Value scratch;
};

/// Thrown for a sample that the policies say to leave out; other errors always end the run.
struct BadSample {
  std::string reason;  ///< with the file and the row
};

class SampleReader {
 public:
  SampleReader(DatasetPtr dataset, const LoaderOptions& options);
  /// After all transforms.
  const std::vector<Field>& fields() const { return pipeline_.fields(); }
  /// kConfig if there is no such field. Not while samples are read.
  void require(std::vector<ValueRange> ranges);
  void read(int64_t index, const ReadContext& context, Workspace& workspace) const;

 private:
  void check_finite(int64_t index, const Sample& sample) const;
  void check_transformed(int64_t index, const Sample& sample) const;
  [[noreturn]] void not_finite(const std::string& where, double number, const char* from) const;
  void check_ranges(int64_t index, const Sample& sample) const;
  DatasetPtr dataset_;
  Pipeline pipeline_;
  BadSamplePolicy on_bad_sample_;
  NanPolicy nan_;
  std::vector<ValueRange> ranges_;
  std::vector<int64_t> range_fields_;
};

}  // namespace paddle::data
