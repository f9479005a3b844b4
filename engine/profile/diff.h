#pragma once
// The comparison of two profiles: what became slower or faster, by operation and by layer.

#include <map>
#include <string>

namespace paddle::profile {

/// The contents of a folder's profile.json; times are milliseconds of one step.
struct FolderSummary {
  std::string folder, subject, kind;
  int threads = 0;
  double step_ms = 0;  ///< median
  double spread = 0;   ///< half of the range of the middle half of steps, over the median
  double wait_ms = 0;  ///< for data, a mean
  std::map<std::string, double> operations;  ///< "conv2d  onednn  forward"
  std::map<std::string, double> layers;      ///< "encoder.0.linear  backward"
};

/// kUsage if the folder holds no profile, kData if its file is damaged.
FolderSummary read_folder(const std::string& folder);

/// Tables of changes by falling size, of those that exceed 1% of the step.
std::string compare(const FolderSummary& before, const FolderSummary& after);
/// The same as a JSON object, with all changes.
std::string compare_json(const FolderSummary& before, const FolderSummary& after);

}  // namespace paddle::profile
