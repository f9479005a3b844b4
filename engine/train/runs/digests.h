#pragma once
// digests.jsonl of a run: after each update the loss and a checksum of each parameter, as whole
// tensors, so that runs of any layout can be compared bit by bit.

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/parameter_store.h"

namespace paddle::train {

struct StepDigest {
  int64_t step = 0;
  double loss = 0;
  std::map<std::string, std::string> parameters;  ///< checksums; empty if only the loss is known
};

class DigestLog {
 public:
  /// On resume (`from_step` >= 0) lines of later steps are dropped, as in metrics.jsonl.
  DigestLog(const std::string& path, int64_t from_step);
  /// `whole` has whole parameters; of those in 16 bits the float32 masters count.
  void write(int64_t step, double loss, const program::ParameterStore& whole);

 private:
  std::string path_;
  std::ofstream file_;
};

/// The digests of a run folder, or, if it has none, the logged losses. Damaged lines are passed
/// over. kUsage if it is not the folder of a run.
std::vector<StepDigest> read_digests(const std::string& run);

/// Where two runs part.
struct RunDifference {
  int64_t compared = 0;  ///< steps that both have
  bool has_parameters = false;
  struct At {
    StepDigest a, b;
    std::vector<std::string> parameters;  ///< that differ
  };
  std::optional<At> first_bits;    ///< the first step with another loss or parameter
  std::optional<At> first_beyond;  ///< the first one whose losses differ by more than the bound
  double largest = 0;              ///< relative difference of losses
};
RunDifference compare_digests(const std::vector<StepDigest>& a, const std::vector<StepDigest>& b,
                              double bound);
/// |a - b| / |a|; 0 for equal values and two NaN, infinity for one.
double relative_difference(double a, double b);

}  // namespace paddle::train
