#pragma once
// The flight recorder of a rank: its last 8,192 exchanges, in a file that is mapped into memory.
// The system keeps what was written there whatever ends the process, such as SIGKILL or a lack of
// memory. flight_report.h compares the files of all ranks of a run.

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <unordered_map>

#include "comm/transport.h"

namespace paddle::comm {

/// An exchange of a rank, or what it did between exchanges (an activity), as the file has it.
struct FlightRecord {
  static constexpr size_t kMaxPlace = 120;
  static constexpr uint32_t kSends = 1;     ///< flag: a message that leaves
  static constexpr uint32_t kReceives = 2;  ///< flag: a message that is awaited
  static constexpr uint32_t kActivity = 4;  ///< flag: no exchange; `place` is its name

  uint64_t number = 0;  ///< of the rank's records, from 1
  uint64_t turn = 0;    ///< of the exchanges of its members, from 1; equal on all of them
  int64_t step = 0;
  int64_t begin = 0, end = 0;  ///< nanoseconds of the steady clock; end 0: it has not completed
  /// Of the whole collective, the same for all members; of an all-to-all those that the rank sends.
  int64_t bytes = 0;
  uint32_t kind = 0;  ///< Exchange
  uint32_t flags = 0;
  /// Members: `count` ranks from `first` on, `stride` apart. A message has its two ends.
  int32_t first = 0, stride = 1, count = 1;
  uint32_t tag = 0;            ///< of a message
  char place[kMaxPlace] = {};  ///< source location of the operation; "": not of an operation
};

enum class FlightEnd : uint32_t {
  kNone,   ///< the rank runs, or was killed
  kDone,   ///< it has ended in order
  kFailed  ///< it has ended with an error
};

/// The first 4 KiB of the file.
struct FlightHeader {
  static constexpr std::array<char, 8> kMagic = {'P', 'A', 'D', 'F', 'L', 'Y', '0', '1'};

  std::array<char, 8> magic = {};
  int32_t rank = 0, size = 1;
  int64_t process = 0;
  int64_t clock_offset = 0;  ///< to add to its steady clock for that of rank 0, nanoseconds
  std::atomic<uint64_t> records = 0;  ///< written so far; the file has the last ones
  std::atomic<int64_t> step = 0;
  int64_t activity_since = 0;
  std::array<char, 64> activity = {};  ///< what the rank does between exchanges; "": it computes
  std::array<char, 64> host = {};
  std::atomic<FlightEnd> end = FlightEnd::kNone;
};

inline constexpr size_t kFlightRecords = 8192, kFlightHeaderBytes = 4096;
inline constexpr size_t kFlightBytes = kFlightHeaderBytes + kFlightRecords * sizeof(FlightRecord);

/// The activity of a rank that waits for its data.
inline constexpr const char* kReadingBatch = "reading a batch";

/// One thread at a time enters and leaves exchanges.
class FlightRecorder {
 public:
  /// Makes the file, in place of one that is there. kDevice if that is impossible.
  FlightRecorder(const std::string& path, int rank, int size, int64_t clock_offset);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void set_step(int64_t step);
  /// Sets the activity of the rank from now on, besides exchanges; "": it computes.
  void set_activity(const char* name);
  /// How the rank ends; before that the file says that it runs.
  void set_end(FlightEnd end);

  /// Adds a record of an exchange that begins now; gives its number. `place`: the source location
  /// of its operation, may be null.
  uint64_t enter(Exchange kind, std::span<const int> group, int64_t bytes,
                 const std::string* place);
  uint64_t enter_message(int from, int to, uint32_t tag, int64_t bytes, const std::string* place);
  /// The exchange is complete.
  void leave(uint64_t number);

 private:
  FlightHeader& header() { return *static_cast<FlightHeader*>(memory_); }
  FlightRecord& place_of(uint64_t number);
  uint64_t add(FlightRecord record, const char* place, size_t place_size);

  void* memory_ = nullptr;
  int rank_;
  std::unordered_map<uint64_t, uint64_t> turns_;  ///< by members and tag
};

/// The scope of an exchange. It is complete unless an exception leaves the scope.
class FlightScope {
 public:
  /// `recorder`: null if nothing is recorded. `enter`: gives the record's number.
  template <class Enter>
  FlightScope(FlightRecorder* recorder, const Enter& enter)
      : recorder_(recorder), exceptions_(std::uncaught_exceptions()) {
    if (recorder_) number_ = enter(*recorder_);
  }
  ~FlightScope() {
    if (recorder_ && std::uncaught_exceptions() == exceptions_) recorder_->leave(number_);
  }
  FlightScope(const FlightScope&) = delete;  // a result is made in place
  FlightScope& operator=(const FlightScope&) = delete;

 private:
  FlightRecorder* recorder_;
  int exceptions_;
  uint64_t number_ = 0;
};

}  // namespace paddle::comm
