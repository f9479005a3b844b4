#include "profile/ranks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace paddle::profile {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `visit(exchange, key)` for each exchange of a group, where those that belong together have
/// the same key: the group and the number of the exchange in it.
template <class Visit>
void for_each_in_group(RankTimeline& timeline, Visit&& visit) {
  std::map<uint64_t, int64_t> counts;
  for (TimelineExchange& e : timeline.exchanges)
    if (e.group != 0) visit(e, std::pair(e.group, counts[e.group]++));
}

bool within(const std::vector<Step>& steps, int64_t begin) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), begin,
                                      [](int64_t at, const Step& s) { return at < s.loaded; });
  return after != steps.begin() && begin < std::prev(after)->end;
}

/// The part of the step's time, in seconds, in which one of these intervals is.
double covered(std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t sum = 0, until = INT64_MIN;
  for (const auto& [begin, end] : intervals) {
    sum += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return static_cast<double>(sum) * kNano;
}

RankShare share_of(const RankTimeline& timeline) {
  RankShare share;
  share.rank = timeline.rank;
  for (const Step& s : timeline.steps) {
    share.wall += static_cast<double>(s.end - s.begin) * kNano;
    share.data += static_cast<double>(s.loaded - s.begin) * kNano;
  }
  std::vector<std::pair<int64_t, int64_t>> busy, exchanging;
  for (const auto& event : timeline.events)
    if (within(timeline.steps, event.begin)) busy.emplace_back(event.begin, event.end);
  for (const TimelineExchange& e : timeline.exchanges) {
    if (!within(timeline.steps, e.begin)) continue;
    const double seconds = static_cast<double>(e.end - e.begin) * kNano;
    if (e.background) {
      share.hidden += seconds;
      continue;
    }
    busy.emplace_back(e.begin, e.end);
    exchanging.emplace_back(e.begin, e.end);
    share.waiting += static_cast<double>(e.waits) * kNano;
  }
  const double all = covered(std::move(busy)), communication = covered(std::move(exchanging));
  share.exchanging = communication - share.waiting;
  share.computing = all - communication;
  return share;
}

}  // namespace

RankTimeline timeline_of(const runtime::Profile& profile, const std::vector<SpanRecord>& spans,
                         int rank) {
  RankTimeline out;
  out.rank = rank;
  out.instructions = profile.instructions;
  out.events = profile.events;
  for (const SpanRecord& s : spans)
    if (s.rank == rank) out.spans.push_back({s.name, s.thread, s.begin, s.end});
  return out;
}

void shift(RankTimeline& timeline, int64_t nanoseconds) {
  for (auto& e : timeline.events) e.begin += nanoseconds, e.end += nanoseconds;
  for (TimelineSpan& s : timeline.spans) s.begin += nanoseconds, s.end += nanoseconds;
  for (TimelineExchange& e : timeline.exchanges) e.begin += nanoseconds, e.end += nanoseconds;
  for (Step& s : timeline.steps)
    s.begin += nanoseconds, s.loaded += nanoseconds, s.end += nanoseconds;
}

std::string to_bytes(const RankTimeline& timeline) {
  Json o = {{"rank", timeline.rank}};
  Json& instructions = o["instructions"] = Json::array();
  for (const runtime::InstructionInfo& i : timeline.instructions)
    instructions.push_back({i.function, i.operation, i.implementation, i.shapes, i.origin});
  Json& events = o["events"] = Json::array();
  for (const auto& e : timeline.events) events.push_back({e.instruction, e.begin, e.end});
  Json& spans = o["spans"] = Json::array();
  for (const TimelineSpan& s : timeline.spans) spans.push_back({s.name, s.thread, s.begin, s.end});
  Json& exchanges = o["exchanges"] = Json::array();
  for (const TimelineExchange& e : timeline.exchanges)
    exchanges.push_back(
        {e.operation, e.begin, e.end, e.bytes, e.group, e.sends_only, e.background});
  Json& steps = o["steps"] = Json::array();
  for (const Step& s : timeline.steps) steps.push_back({s.begin, s.loaded, s.end, s.samples});
  const std::vector<uint8_t> bytes = Json::to_msgpack(o);
  return {bytes.begin(), bytes.end()};
}

RankTimeline timeline_from_bytes(const std::string& bytes) {
  RankTimeline out;
  try {
    const Json o = Json::from_msgpack(bytes);
    out.rank = o.at("rank").get<int>();
    for (const Json& i : o.at("instructions"))
      out.instructions.push_back({.function = i.at(0).get<std::string>(),
                                  .operation = i.at(1).get<std::string>(),
                                  .implementation = i.at(2).get<std::string>(),
                                  .shapes = i.at(3).get<std::string>(),
                                  .origin = i.at(4).get<std::string>()});
    for (const Json& e : o.at("events")) {
      out.events.push_back({e.at(0).get<int>(), e.at(1).get<int64_t>(), e.at(2).get<int64_t>()});
      const int instruction = out.events.back().instruction;
      if (instruction < 0 || static_cast<size_t>(instruction) >= out.instructions.size())
        fail(ErrorCode::kPeer, "rank ", out.rank, " sent a timeline with an event of instruction ",
             instruction, " of ", out.instructions.size());
    }
    for (const Json& s : o.at("spans"))
      out.spans.push_back({s.at(0).get<std::string>(), s.at(1).get<int>(), s.at(2).get<int64_t>(),
                           s.at(3).get<int64_t>()});
    for (const Json& e : o.at("exchanges"))
      out.exchanges.push_back({e.at(0).get<std::string>(), e.at(1).get<int64_t>(),
                               e.at(2).get<int64_t>(), e.at(3).get<int64_t>(),
                               e.at(4).get<uint64_t>(), e.at(5).get<bool>(), e.at(6).get<bool>()});
    for (const Json& s : o.at("steps"))
      out.steps.push_back({s.at(0).get<int64_t>(), s.at(1).get<int64_t>(), s.at(2).get<int64_t>(),
                           s.at(3).get<int64_t>()});
  } catch (const Json::exception& e) {
    fail(ErrorCode::kPeer, "a rank sent a damaged timeline: ", e.what());
  }
  return out;
}

void match(std::vector<RankTimeline>& timelines) {
  std::map<std::pair<uint64_t, int64_t>, int64_t> last;  // begin of an exchange on the last rank
  for (RankTimeline& timeline : timelines)
    for_each_in_group(timeline, [&](const TimelineExchange& e, const auto& key) {
      const auto [it, added] = last.try_emplace(key, e.begin);
      if (!added) it->second = std::max(it->second, e.begin);
    });
  for (RankTimeline& timeline : timelines)
    for_each_in_group(timeline, [&](TimelineExchange& e, const auto& key) {
      if (!e.sends_only) e.waits = std::clamp(last.at(key), e.begin, e.end) - e.begin;
    });
}

std::vector<RankShare> share_of_ranks(const std::vector<RankTimeline>& timelines) {
  std::vector<RankShare> out;
  for (const RankTimeline& timeline : timelines) out.push_back(share_of(timeline));
  return out;
}

}  // namespace paddle::profile
