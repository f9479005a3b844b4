// Any bytes as the beginning of the record of exchanges of a rank, and what two such records say
// together.

#include "comm/flight_report.h"

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  using namespace paddle::comm;
  if (size == 0) return 0;
  std::vector<std::byte> bytes(kFlightBytes);
  // The header and the first records are those of the input, the others are not there.
  std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
  fuzz::expect_documented_end([&] {
    std::vector<FlightLog> logs = {read_flight(bytes, "0.flight")};
    logs.push_back(logs[0]);
    logs[1].rank = logs[0].rank + 1;
    if (!logs[1].records.empty()) logs[1].records.pop_back();
    const int64_t now = latest(logs);
    for (const FlightLog& log : logs) state_text(log, now);
    find_divergence(logs, now);
    find_slow(logs);
  });
  return 0;
}
