#pragma once
// The measured steps of each rank of a run, on the clock of rank 0: for a merged timeline,
// and for the share of a step that a rank computes, exchanges, and waits for data or other ranks.

#include <string>
#include <vector>

#include "base/span.h"
#include "profile/analysis.h"

namespace paddle::profile {

/// An exchange with other ranks; fields as in comm::ExchangeRecord.
struct TimelineExchange {
  std::string operation;
  int64_t begin = 0, end = 0;
  int64_t bytes = 0;
  uint64_t group = 0;
  bool sends_only = false, background = false;
  int64_t waits = 0;  ///< nanoseconds from `begin` until the last of its ranks came; see `match`
};

/// Times are nanoseconds of the rank's steady clock.
struct RankTimeline {
  int rank = 0;
  std::vector<runtime::InstructionInfo> instructions;
  std::vector<runtime::Profile::Event> events;
  std::vector<TimelineSpan> spans;
  std::vector<TimelineExchange> exchanges;
  std::vector<Step> steps;
};

/// The timeline of this process's profile and of the spans that belong to `rank`.
RankTimeline timeline_of(const runtime::Profile& profile, const std::vector<SpanRecord>& spans,
                         int rank);

/// As bytes, to be sent to another rank, and back. kPeer if the bytes are damaged.
std::string to_bytes(const RankTimeline& timeline);
RankTimeline timeline_from_bytes(const std::string& bytes);

/// Adds `nanoseconds` to all times.
void shift(RankTimeline& timeline, int64_t nanoseconds);

/// Finds the exchanges that belong together, in timelines on one clock, and sets how long each
/// waits for the last of its ranks.
void match(std::vector<RankTimeline>& timelines);

/// The steps of each rank by what it did. Exchanges are matched.
std::vector<RankShare> share_of_ranks(const std::vector<RankTimeline>& timelines);

/// The timelines in the JSON form that chrome://tracing and Perfetto read, a process for each rank.
/// Throws kDevice if the file can't be written.
void write_trace(const std::vector<RankTimeline>& timelines, const std::string& path);

}  // namespace paddle::profile
