#pragma once
// Compares the flight records of the ranks of a run (flight.h): finds the exchange that ranks
// wait in and the rank that did not enter it, ranks that compute or read more slowly than the
// others, and links that are slower.

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "comm/flight.h"

namespace paddle::comm {

/// The record of a rank as its file had it. Times are those of the clock of rank 0.
struct FlightLog {
  int rank = 0, size = 1;
  int64_t process = 0;
  std::string host = {};
  int64_t step = 0;
  std::string activity = {};  ///< "": it computes
  int64_t activity_since = 0;
  FlightEnd end = FlightEnd::kNone;
  uint64_t exchanges = 0;                  ///< records so far, activities included
  std::vector<FlightRecord> records = {};  ///< the last ones, in order

  /// The exchange that the rank is in, or the last one; null: there is none.
  const FlightRecord* last_exchange() const;
};

/// Reads what a rank has written, which may continue meanwhile. kData if the file is not a record.
FlightLog read_flight(const std::string& path);
/// The same of bytes, whose origin errors name.
FlightLog read_flight(std::span<const std::byte> bytes, const std::string& path);
/// The records RANK.flight of a folder, by rank. kData as above; empty if the folder does not
/// exist.
std::vector<FlightLog> read_flights(const std::string& folder);

/// "all_reduce 412 of step 88 (models/moe.yaml:31)".
std::string text(const FlightRecord& record);
/// The state of a rank: `it is in "reading a batch" since 41 s`, "it computes since 2 s, after …".
/// `now`: nanoseconds of the clock of rank 0.
std::string state_text(const FlightLog& log, int64_t now);
/// The latest time in any record.
int64_t latest(const std::vector<FlightLog>& logs);

/// The first exchange in which members of a group differ, in one line: that has another kind, size
/// or operation on a rank, that a rank did not enter while others wait in it, or in which a rank
/// has ended.
std::optional<std::string> find_divergence(const std::vector<FlightLog>& logs, int64_t now);

/// A rank or link that is slower than the median in at least `kSlowSteps` of the last steps.
struct SlowPart {
  std::string name;      ///< "rank 3", "the link from rank 0 to rank 1"
  std::string evidence;  ///< in one line, with the name
};
inline constexpr size_t kSlowSteps = 20;
std::vector<SlowPart> find_slow(const std::vector<FlightLog>& logs);

/// Looks at the records of a run every ten seconds.
class SlowWatch {
 public:
  /// The evidence about parts that are newly found slow; `folder`: of the records, "" for none.
  std::vector<std::string> advance(const std::string& folder);

 private:
  std::chrono::steady_clock::time_point next_ = {};
  std::set<std::string> told_;
};

}  // namespace paddle::comm
