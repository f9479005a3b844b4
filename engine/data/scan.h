#pragma once
// A look at the samples of a loader before anything is trained on them: bad ones with their places,
// class numbers that skip some, and texts that are empty. All samples are checked without decoding
// files; then they are read and transformed as training does, as many as the time allows.

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"

namespace paddle::data {

struct ScanOptions {
  using Time = std::chrono::steady_clock::time_point;
  /// When to end the checks without decoding, and the reading; at least one sample is looked at.
  Time check_until = Time::max(), read_until = Time::max();
  /// Integer fields with one number per sample, whose class numbers are counted.
  std::vector<std::string> class_fields = {};
  /// The numbers that fields may have; samples with others are read in any case.
  std::vector<ValueRange> ranges = {};
  /// Checks samples in groups of `group` as batches, if it is set; `skips`: what it finds is left
  /// out by the policy. The last samples are not checked with `whole_groups`.
  Loader::BatchCheck batch_check = {};
  int64_t group = 1;
  bool whole_groups = false, skips = false;
};

/// A sample that training would reject or leave out.
struct BadSampleFound {
  int64_t index = 0;
  std::string reason = {};  ///< with the file and the row
  bool skipped = false;     ///< a policy says to leave it out
};

struct ScanResult {
  int64_t samples = 0;
  int64_t checked = 0;  ///< without decoding files
  int64_t read = 0;     ///< and transformed, as training does
  int64_t bad_count = 0, skipped_count = 0;
  std::vector<BadSampleFound> bad = {};  ///< the first thousand, by index
  /// How often each class number occurs, by field. A field of more than a thousand is left out.
  std::map<std::string, std::map<int64_t, int64_t>> classes = {};
  struct Empty {
    int64_t count = 0;
    std::string first = {};  ///< its place
  };
  std::map<std::string, Empty> empty_texts = {};  ///< by field, among the samples that were read

  bool is_complete() const { return checked == samples; }
  /// "all 5000 samples", "5000 samples, of which 1200 were read".
  std::string extent() const;
};

/// Reads epoch 0 of the loader's samples without changing its position. Samples are taken in runs
/// that are spread over the dataset where the time does not suffice for all. Errors that are not
/// about a sample (kConfig of a transform) are thrown.
ScanResult scan_samples(Loader& loader, const ScanOptions& options);

/// Integer fields with one number per sample that `dataset` knows without decoding, by name;
/// without those that `inputs` names.
std::vector<std::string> class_fields_of(const Dataset& dataset,
                                         const std::vector<std::string>& inputs);

/// Applies the policies of a loader to the bad samples: kData with the first one if they end the
/// run, else a line for each kind of finding that deserves a warning. `part`: "train".
std::vector<std::string> check_bad_samples(const ScanResult& result, const LoaderOptions& options,
                                           const std::string& part);
/// Warnings about class numbers that do not occur although larger ones do, and about empty texts.
/// `are_labels`: the counted fields are known to be class numbers; else those whose numbers are few
/// among the possible ones are taken for ids or amounts. `ignored`: a number that is not a class.
std::vector<std::string> check_contents(const ScanResult& result, const Dataset& dataset,
                                        bool are_labels, std::optional<int64_t> ignored,
                                        const std::string& part);

}  // namespace paddle::data
