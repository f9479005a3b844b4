#pragma once
// Compares two ONNX files: what they declare, their nodes and weights, and what they compute.

#include <map>
#include <string>
#include <vector>

namespace paddle::exporter {

struct DiffOptions {
  int runs = 3;  ///< on different inputs; 0: the files are not run
  double relative = 1e-3, absolute = 1e-4;
  std::map<std::string, int64_t> dims;  ///< sizes of symbolic dims of the first file
};

/// How far an output of the second file is from that of the first, over all runs.
struct OutputDifference {
  std::string name;
  double absolute = 0, relative = 0;  ///< the largest |a - b|, and |a - b| / max |a|
  std::string difference;             ///< beyond the tolerance; "" for none
};

struct OnnxDiff {
  std::vector<std::string> interface;  ///< inputs and outputs that differ
  std::vector<std::string> structure;  ///< opsets, operators, nodes
  std::vector<std::string> weights;
  std::vector<OutputDifference> outputs;
  std::string not_run;  ///< why the files were not compared by their results
  bool same_structure() const { return interface.empty() && structure.empty() && weights.empty(); }
  bool same_results() const;
};

/// kModel if a file is damaged or does not run.
OnnxDiff diff_onnx(const std::string& a, const std::string& b, const DiffOptions& options);

}  // namespace paddle::exporter
