// The timeline of all ranks for Perfetto: a process for each rank, with its steps, operations and
// exchanges on one thread, its loader's workers on others, and its layers on a further one.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/source_location.h"
#include "base/text.h"
#include "profile/ranks.h"

namespace paddle::profile {
namespace {

using Json = nlohmann::ordered_json;

class Trace {
 public:
  /// `origin` is the time 0 of the timeline.
  explicit Trace(int64_t origin) : origin_(origin) {}

  void name(const char* what, int process, int thread, const std::string& text) {
    add({{"name", what},
         {"ph", "M"},
         {"pid", process},
         {"tid", thread},
         {"args", {{"name", text}}}});
  }
  /// `fields`: the name and further ones.
  void interval(Json fields, int process, int thread, int64_t begin, int64_t end) {
    fields["ph"] = "X";
    fields["ts"] = static_cast<double>(begin - origin_) * 1e-3;
    fields["dur"] = static_cast<double>(end - begin) * 1e-3;
    fields["pid"] = process;
    fields["tid"] = thread;
    add(fields);
  }
  std::string text() const { return out_ + "\n]}\n"; }

 private:
  void add(const Json& event) {
    out_ += (empty_ ? "" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
    empty_ = false;
  }
  int64_t origin_;
  bool empty_ = true;
  std::string out_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
};

int64_t first_time(const std::vector<RankTimeline>& timelines) {
  int64_t first = INT64_MAX;
  for (const RankTimeline& t : timelines) {
    for (const TimelineSpan& s : t.spans) first = std::min(first, s.begin);
    for (const auto& e : t.events) first = std::min(first, e.begin);
    for (const TimelineExchange& e : t.exchanges) first = std::min(first, e.begin);
  }
  return first == INT64_MAX ? 0 : first;
}

/// The parts of a layer's path, after the direction.
std::vector<std::string> parts_of(const Origin& origin) {
  std::vector<std::string> out = {origin.gradient ? "backward" : "forward"};
  for (std::string& part : split(origin.layer, '.')) out.push_back(std::move(part));
  return out;
}

/// Layers, blocks and ranges as nested intervals: each part of a path lasts from its first
/// operation to its last one before another part runs, or the step ends.
void add_layers(Trace& trace, const RankTimeline& t, const std::vector<Origin>& origins,
                int process, int thread) {
  struct Open {
    std::string name;
    int64_t begin, end;
  };
  std::vector<Open> open;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      trace.interval({{"name", open.back().name}, {"cat", "layer"}}, process, thread,
                     open.back().begin, open.back().end);
  };
  std::vector<int64_t> ends;  // of steps
  for (const TimelineSpan& s : t.spans)
    if (s.name == "step") ends.push_back(s.end);
  std::sort(ends.begin(), ends.end());
  auto events = t.events;
  std::sort(events.begin(), events.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  size_t step = 0;
  for (const auto& event : events) {
    const Origin& origin = origins[static_cast<size_t>(event.instruction)];
    while (step < ends.size() && event.begin >= ends[step]) {
      close_to(0);
      ++step;
    }
    if (origin.layer.empty()) continue;
    const std::vector<std::string> parts = parts_of(origin);
    size_t same = 0;
    while (same < std::min(parts.size(), open.size()) && open[same].name == parts[same]) ++same;
    close_to(same);
    for (size_t i = same; i < parts.size(); ++i) open.push_back({parts[i], event.begin, event.end});
    for (Open& o : open) o.end = event.end;
  }
  close_to(0);
}

void add_rank(Trace& trace, const RankTimeline& t, bool several) {
  const int process = t.rank + 1;
  int main_thread = 0, last_thread = 0;
  std::set<int> threads;
  for (const TimelineSpan& s : t.spans) {
    threads.insert(s.thread);
    if (s.name == "step") main_thread = s.thread;
  }
  threads.insert(main_thread);
  last_thread = *threads.rbegin();
  if (several) trace.name("process_name", process, main_thread + 1, str("rank ", t.rank));
  for (const int thread : threads)
    trace.name("thread_name", process, thread + 1, thread == main_thread ? "steps" : "data loader");
  const int background = last_thread + 2;
  if (std::any_of(t.exchanges.begin(), t.exchanges.end(),
                  [](const TimelineExchange& e) { return e.background; }))
    trace.name("thread_name", process, background, "exchanges in the background");
  for (const TimelineSpan& s : t.spans)
    trace.interval({{"name", s.name}, {"cat", "step"}}, process, s.thread + 1, s.begin, s.end);
  for (const auto& event : t.events) {
    const auto& info = t.instructions[static_cast<size_t>(event.instruction)];
    trace.interval({{"name", info.operation},
                    {"cat", info.function},
                    {"args",
                     {{"implementation", info.implementation},
                      {"shapes", info.shapes},
                      {"origin", info.origin}}}},
                   process, main_thread + 1, event.begin, event.end);
  }
  std::vector<Origin> origins;  // by instruction
  for (const runtime::InstructionInfo& info : t.instructions)
    origins.push_back(parse_origin(info.origin));
  if (std::any_of(origins.begin(), origins.end(),
                  [](const Origin& origin) { return !origin.layer.empty(); })) {
    trace.name("thread_name", process, background + 1, "layers");
    add_layers(trace, t, origins, process, background + 1);
  }
  for (const TimelineExchange& e : t.exchanges) {
    const int thread = e.background ? background : main_thread + 1;
    trace.interval({{"name", e.operation}, {"cat", "exchange"}, {"args", {{"bytes", e.bytes}}}},
                   process, thread, e.begin, e.end);
    if (e.waits > 0)
      trace.interval({{"name", "wait for other ranks"}, {"cat", "exchange"}}, process, thread,
                     e.begin, e.begin + e.waits);
  }
}

}  // namespace

void write_trace(const std::vector<RankTimeline>& timelines, const std::string& path) {
  Trace trace(first_time(timelines));
  for (const RankTimeline& timeline : timelines) add_rank(trace, timeline, timelines.size() > 1);
  write_file_atomically(path, trace.text());
}

}  // namespace paddle::profile
