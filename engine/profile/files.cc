// The files of a profile for other programs: JSON, CSV and the timeline.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "profile/report.h"

namespace paddle::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kReplace = Json::error_handler_t::replace;

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Json row(const OperationCost& c, const Analysis& a) {
  const double steps = std::max(1.0, a.steps());
  Cost cost;
  cost.add(c);
  return {{"function", c.function},
          {"operation", c.operation},
          {"implementation", c.implementation},
          {"phase", c.phase},
          {"layer", c.layer},
          {"place", c.place},
          {"shapes", c.shapes},
          {"calls", static_cast<double>(c.calls) / steps},
          {"ms", 1e3 * c.seconds / steps},
          {"share", c.seconds / a.operation_seconds()},
          {"flops", c.flops / steps},
          {"bytes", c.bytes / steps},
          {"gflops_per_second", c.flops / c.seconds / 1e9},
          {"gigabytes_per_second", c.bytes / c.seconds / 1e9},
          {"share_of_peak", share_of_peak(cost, a.measured.peaks)}};
}

}  // namespace

std::string json(const Analysis& a) {
  const Measurement& m = a.measured;
  Json o;
  o["subject"] = m.subject;
  o["kind"] = m.training ? "training" : "inference";
  o["dtype"] = m.dtype;
  o["threads"] = m.threads;
  o["warm_up"] = m.warm_up;
  o["steps"] = m.steps.size();
  o["samples"] = a.samples;
  o["median_step_ms"] = 1e3 * a.median_step();
  o["samples_per_second"] =
      a.wall + a.waiting > 0 ? static_cast<double>(a.samples) / (a.wall + a.waiting) : 0;
  o["operation_share"] = a.wall > 0 ? a.operation_seconds() / a.wall : 0;
  o["overhead_share"] = a.overhead;
  o["complete"] = a.complete;
  o["peaks"] = {{"gflops", m.peaks.gflops},
                {"gigabytes_per_second", m.peaks.gigabytes},
                {"bfloat16_gflops", m.bfloat16_gflops}};
  o["data"] = {{"workers", m.loader_workers},
               {"waiting_share", a.wall + a.waiting > 0 ? a.waiting / (a.wall + a.waiting) : 0},
               {"batches", a.batches},
               {"batch_ms", 1e3 * a.batch_seconds}};
  Json steps = Json::array();
  for (const Step& s : m.steps)
    steps.push_back({{"wait_ms", 1e-6 * static_cast<double>(s.loaded - s.begin)},
                     {"ms", 1e-6 * static_cast<double>(s.end - s.loaded)},
                     {"samples", s.samples}});
  o["timed_steps"] = steps;
  Json memory = {
      {"arena_bytes", a.memory.arena},
      {"scratch_bytes", a.memory.scratch},
      {"input_bytes", a.memory.inputs},
      {"constant_bytes", a.memory.constants},
      {"peak_bytes", a.memory.timeline.empty() ? 0 : a.memory.timeline[a.memory.peak].bytes}};
  Json buffers = Json::array();
  for (size_t i = 0; i < a.memory.at_the_peak.size() && i < 50; ++i) {
    const LiveBuffer& b = a.memory.at_the_peak[i];
    buffers.push_back(
        {{"name", b.label}, {"layer", b.layer}, {"phase", b.phase}, {"bytes", b.bytes}});
  }
  memory["at_the_peak"] = buffers;
  o["memory"] = memory;
  if (m.ranks > 1) {
    o["ranks"] = m.ranks;
    Json communication = Json::array();
    const double steps_measured = std::max(1.0, a.steps());
    for (const Communication& c : m.communication)
      communication.push_back({{"rank", c.rank},
                               {"operation", c.operation},
                               {"calls", static_cast<double>(c.calls) / steps_measured},
                               {"sent_bytes", static_cast<double>(c.bytes) / steps_measured},
                               {"ms", 1e3 * c.seconds / steps_measured}});
    o["communication"] = communication;
  }
  Json suggestions = Json::array();
  for (const Suggestion& s : a.suggestions)
    suggestions.push_back({{"gain", s.gain}, {"title", s.title}, {"reason", s.reason}});
  o["suggestions"] = suggestions;
  Json operations = Json::array();
  for (const OperationCost& c : a.operations) operations.push_back(row(c, a));
  o["operations"] = operations;
  return o.dump(1, ' ', false, kReplace) + "\n";
}

std::string operations_csv(const Analysis& a) {
  std::string out =
      "function,operation,implementation,phase,layer,place,shapes,calls,ms,share,flops,bytes,"
      "gflops_per_second,gigabytes_per_second,share_of_peak\n";
  for (const OperationCost& c : a.operations) {
    const Json fields = row(c, a);
    std::string text;
    for (const auto& [key, value] : fields.items())
      text += (text.empty() ? "" : ",") +
              (value.is_string() ? quoted(value.get<std::string>()) : number(value.get<double>()));
    out += text + "\n";
  }
  return out;
}

std::string memory_csv(const Analysis& a) {
  std::string out = "position,ms,live_bytes,operation,layer,phase\n";
  for (const MemoryPoint& p : a.memory.timeline)
    out += str(p.position, ",", number(1e3 * p.seconds), ",", p.bytes, ",", quoted(p.operation),
               ",", quoted(p.layer), ",", p.phase, "\n");
  return out;
}

void write_trace(const runtime::Profile& profile, const std::vector<SpanRecord>& spans,
                 const std::string& path) {
  int64_t origin = profile.events.empty() ? 0 : profile.events.front().begin;
  int main_thread = 0;
  std::set<int> threads;
  for (const SpanRecord& span : spans) {
    origin = std::min(origin, span.begin);
    threads.insert(span.thread);
    if (std::string_view(span.name) == "step") main_thread = span.thread;
  }
  threads.insert(main_thread);
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const int thread : threads)
    out += Json{{"name", "thread_name"},
                {"ph", "M"},
                {"pid", 1},
                {"tid", thread + 1},
                {"args", {{"name", thread == main_thread ? "steps" : "data loader"}}}}
               .dump() +
           ",\n";
  const auto add = [&](const Json& common, int64_t begin, int64_t end, int thread) {
    Json o = common;
    o["ph"] = "X";
    o["ts"] = static_cast<double>(begin - origin) * 1e-3;
    o["dur"] = static_cast<double>(end - begin) * 1e-3;
    o["pid"] = 1;
    o["tid"] = thread + 1;
    out += o.dump(-1, ' ', false, kReplace) + ",\n";
  };
  for (const SpanRecord& span : spans)
    add({{"name", span.name}, {"cat", "step"}}, span.begin, span.end, span.thread);
  for (const auto& event : profile.events) {
    const auto& info = profile.instructions[static_cast<size_t>(event.instruction)];
    add({{"name", info.operation},
         {"cat", info.function},
         {"args",
          {{"implementation", info.implementation},
           {"shapes", info.shapes},
           {"origin", info.origin}}}},
        event.begin, event.end, main_thread);
  }
  out.resize(out.size() - 2);  // the last comma
  write_file_atomically(path, out + "\n]}\n");
}

}  // namespace paddle::profile
