// The files of a profile for other programs: JSON and CSV.

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

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

std::string number(double value) { return fmt::format("{:.6g}", value); }

Json row(const OperationCost& c, const Analysis& a) {
  const double steps = std::max(1.0, a.steps());
  Cost cost;
  cost.add(c);
  return {{"function", c.function},
          {"operation", c.operation},
          {"implementation", c.implementation},
          {"device", c.device},
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

Json devices_json(const Analysis& a) {
  const double steps = std::max(1.0, a.steps());
  Json out = Json::array();
  for (const DeviceUse& d : a.devices)
    out.push_back({{"device", d.device},
                   {"calls", static_cast<double>(d.calls) / steps},
                   {"ms", 1e3 * d.seconds / steps},
                   {"copying_ms", 1e3 * d.copying / steps},
                   {"flops", d.flops / steps},
                   {"memory_bytes", d.memory}});
  return out;
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
  Json kinds = Json::array();
  for (const MemoryKind& k : a.memory.kinds)
    kinds.push_back({{"kind", k.kind}, {"peak_bytes", k.at_the_peak}, {"most_bytes", k.most}});
  memory["kinds"] = kinds;
  memory["resident_bytes"] = m.resident;
  o["memory"] = memory;
  o["devices"] = devices_json(a);
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
    Json shares = Json::array();
    for (const RankShare& s : m.shares) {
      const double ms = 1e3 / steps_measured;
      shares.push_back({{"rank", s.rank},
                        {"step_ms", ms * s.wall},
                        {"computing_ms", ms * s.computing},
                        {"waiting_for_data_ms", ms * s.data},
                        {"waiting_for_ranks_ms", ms * s.waiting},
                        {"exchanging_ms", ms * s.exchanging},
                        {"other_ms", ms * s.other()},
                        {"hidden_exchange_ms", ms * s.hidden}});
    }
    o["rank_shares"] = shares;
  }
  Json suggestions = Json::array();
  for (const Suggestion& s : a.suggestions)
    suggestions.push_back({{"gain", s.gain}, {"title", s.title}, {"reason", s.reason}});
  o["suggestions"] = suggestions;
  Json operations = Json::array();
  for (const OperationCost& c : a.operations) operations.push_back(row(c, a));
  o["operations"] = operations;
  return o.dump(-1, ' ', false, kReplace) + "\n";
}

std::string operations_csv(const Analysis& a) {
  std::string out =
      "function,operation,implementation,device,phase,layer,place,shapes,calls,ms,share,flops,"
      "bytes,"
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

}  // namespace paddle::profile
