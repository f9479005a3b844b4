#pragma once
// The cost of a plan's instructions. A plan with a profile describes its instructions in it and
// records when each began and ended; profile/report.h turns that into tables.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::runtime {

struct InstructionInfo {
  std::string function, operation, implementation;
  std::string shapes;  ///< "float32[64, 10] x float32[10] -> float32[64, 10]"
  double flops = 0;
  double bytes = 0;  ///< of operands and results, each counted once
};

struct Profile {
  /// Further events are dropped.
  static constexpr size_t kMaxEvents = size_t{1} << 20;

  struct Event {
    int instruction;
    int64_t begin, end;  ///< nanoseconds of the steady clock
  };
  std::vector<InstructionInfo> instructions;
  std::vector<Event> events;
  bool recording = true;

  /// Adds an instruction and returns its index.
  int add(InstructionInfo info) {
    instructions.push_back(std::move(info));
    return static_cast<int>(instructions.size()) - 1;
  }
  void record(int instruction, int64_t begin, int64_t end) {
    if (recording && events.size() < kMaxEvents) events.push_back({instruction, begin, end});
  }
};

}  // namespace paddle::runtime
