#pragma once
// The checks of what a plug-in adds besides operations: its devices, transports, tables,
// readers and compilers, and parts of training.

#include <functional>
#include <string>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

/// The parts of a plug-in, by names such as "acme.ring".
struct Kinds {
  std::vector<std::string> transports;
  std::vector<std::string> tables;
  std::vector<std::string> readers;
  std::vector<std::string> devices;
  std::vector<std::string> compilers;
  std::vector<std::string> optimizers;
  std::vector<std::string> schedules;
  std::vector<std::string> metrics;
  std::vector<std::string> transforms;
  std::vector<std::string> sharding;  ///< operations with rules for several ranks
};

struct KindCheck {
  std::string group;                 ///< "transports"
  std::string name;                  ///< "acme.ring/sizes/2"
  std::function<std::string()> run;  ///< "" or what is wrong; the plug-in is loaded
  std::string skipped = {};          ///< the reason, without `run`
};
/// `keys`: those of a dataset, "path=rows.fvecs", for the readers.
std::vector<KindCheck> kind_checks(const Kinds& kinds, const Extent& extent,
                                   const std::vector<std::string>& keys);

}  // namespace paddle::conformance
