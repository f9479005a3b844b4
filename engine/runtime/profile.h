#pragma once
// The cost of a plan's instructions. A plan with a profile describes itself in it and records when
// each of its instructions began and ended; the room profile turns that into reports.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::runtime {

struct InstructionInfo {
  std::string function, operation, implementation;
  std::string shapes;  ///< "float32[64, 10] x float32[10] -> float32[64, 10]"
  double flops = 0;
  double bytes = 0;            ///< of operands and results, each counted once
  std::string origin = {};     ///< of the operation, as in base/source_location.h
  int plan = -1;               ///< in Profile::plans, -1 outside of plans
  int position = 0;            ///< of the instruction in its plan
  std::string device = "cpu";  ///< that it ran on: the host for what the plan's device cannot do
};

/// The memory of a plan. Positions are those of InstructionInfo.
struct PlanInfo {
  struct Buffer {
    std::string label;  ///< the operation or port that it was created for
    uint64_t bytes = 0;
    int first = 0, last = 0;  ///< positions of definition and last use
  };
  /// Memory that outlives runs.
  struct Input {
    enum class Kind : uint8_t { kValue, kParameter, kState };
    std::string name;
    Kind kind = Kind::kValue;
    uint64_t bytes = 0;
  };
  std::string function;
  std::string device = "cpu";
  std::vector<Buffer> buffers;                                 ///< of the arena
  std::vector<Input> held;                                     ///< of `inputs` bytes
  uint64_t arena = 0, scratch = 0, inputs = 0, constants = 0;  ///< bytes, as in MemoryReport
};

struct Profile {
  /// Further events are dropped.
  static constexpr size_t kMaxEvents = size_t{1} << 20;

  struct Event {
    int instruction;
    int64_t begin, end;  ///< nanoseconds of the steady clock
  };
  std::vector<InstructionInfo> instructions;
  std::vector<PlanInfo> plans;
  std::vector<Event> events;
  bool recording = true;  ///< while false, plans do not read the clock

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
