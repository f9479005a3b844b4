#pragma once
// Random calls of the operations of a family: whatever the arguments, an operation gives results or
// a typed error of one line. Calls are made by changing the samples of the schema and from scratch,
// each in a child process, in both modes and with gradients.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace paddle::inspect {

struct FuzzOptions {
  std::string filter;         ///< regular expression on names of operations; "" for all
  double seconds = 60;        ///< about how long it runs
  uint64_t seed = 1;          ///< of the calls
  int workers = 1;            ///< child processes at a time
  double timeout = 20;        ///< seconds that one call may take
  int64_t memory_mib = 1024;  ///< address space of a call beyond what the process has
  bool keep_going = false;    ///< continue after a failure without the operation that failed
};

struct FuzzResult {
  int64_t calls = 0;     ///< made
  int64_t rejected = 0;  ///< of these, with a typed error
  int64_t failed = 0;    ///< crashes, errors without a type, calls that did not end
  /// Operations of which no call was accepted: they need a sample in their schema.
  std::vector<std::string> only_rejected;
};

/// Folders of engine/ops that have operations.
std::vector<std::string> families();

/// `report` gets a line for each failure, which ends with a command that repeats the call. kUsage
/// for an unknown family.
FuzzResult fuzz(const std::string& family, const FuzzOptions& options,
                const std::function<void(const std::string& line)>& report);

/// The words of call number `index` of an operation, for `parse_call`.
std::vector<std::string> random_call(const std::string& op, uint64_t seed, uint64_t index);

/// Limits the memory of this process, once, to what it has and `mib` more.
void limit_memory(int64_t mib);

}  // namespace paddle::inspect
