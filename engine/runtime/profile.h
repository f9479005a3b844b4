#pragma once
// What the instructions of plans cost. A plan that is given a profile describes its instructions
// there and records when each began and ended; profile/report.h makes tables of it.

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
  /// Beyond this many nothing more is recorded.
  static constexpr size_t kMaxEvents = size_t{1} << 20;

  struct Event {
    int instruction;
    int64_t begin, end;  ///< nanoseconds of the steady clock
  };
  std::vector<InstructionInfo> instructions;
  std::vector<Event> events;
  bool recording = true;

  /// Describes an instruction; gives its number.
  int add(InstructionInfo info) {
    instructions.push_back(std::move(info));
    return static_cast<int>(instructions.size()) - 1;
  }
  void record(int instruction, int64_t begin, int64_t end) {
    if (recording && events.size() < kMaxEvents) events.push_back({instruction, begin, end});
  }
};

}  // namespace paddle::runtime
