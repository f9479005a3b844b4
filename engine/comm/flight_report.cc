#include "comm/flight_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/files.h"
#include "base/text.h"

namespace paddle::comm {
namespace {

namespace fs = std::filesystem;

constexpr double kNanoseconds = 1e9;

bool is_activity(const FlightRecord& record) {
  return (record.flags & FlightRecord::kActivity) != 0;
}
bool is_message(const FlightRecord& record) {
  return (record.flags & (FlightRecord::kSends | FlightRecord::kReceives)) != 0;
}

/// The characters up to the first NUL, printable ones only: the file may hold anything.
template <size_t Size>
std::string text_of(const char (&characters)[Size]) {
  std::string out(characters, ::strnlen(characters, Size));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return out;
}
template <size_t Size>
std::string text_of(const std::array<char, Size>& characters) {
  char copy[Size];
  std::copy(characters.begin(), characters.end(), copy);
  return text_of(copy);
}

/// The members of an exchange, with the tag of a message: equal on all of them.
using Members = std::tuple<bool, int32_t, int32_t, int32_t, uint32_t>;
Members members_of(const FlightRecord& r) {
  return {is_message(r), r.first, r.stride, r.count, r.tag};
}

bool is_member(const FlightRecord& record, int rank) {
  if (record.stride == 0) return rank == record.first;
  const int64_t i = (int64_t{rank} - record.first) / record.stride;
  return i >= 0 && i < record.count && record.first + i * record.stride == rank;
}

std::string seconds(int64_t nanoseconds) {
  return str(std::max<int64_t>(0, nanoseconds) / static_cast<int64_t>(kNanoseconds), " s");
}

/// Whether both records are of one exchange of the same program.
bool agree(const FlightRecord& a, const FlightRecord& b) {
  const bool varies = a.kind == static_cast<uint32_t>(Exchange::kAllToAll);
  return a.kind == b.kind && (varies || a.bytes == b.bytes) &&
         std::strncmp(a.place, b.place, sizeof a.place) == 0;
}

/// The record of a rank for a turn of these members; null: it did not enter that.
const FlightRecord* find_turn(const FlightLog& log, const FlightRecord& waiting) {
  const auto it = std::find_if(log.records.rbegin(), log.records.rend(), [&](const auto& r) {
    return !is_activity(r) && r.turn == waiting.turn && members_of(r) == members_of(waiting);
  });
  return it == log.records.rend() ? nullptr : &*it;
}

/// A later turn of the members is in the record, so the one in question is too old for it.
bool has_passed(const FlightLog& log, const FlightRecord& waiting) {
  return std::any_of(log.records.begin(), log.records.end(), [&](const auto& r) {
    return !is_activity(r) && r.turn > waiting.turn && members_of(r) == members_of(waiting);
  });
}

bool waits(const FlightLog& log) {
  const FlightRecord* const last = log.last_exchange();
  return last && last->end == 0;
}

/// A reason for which a rank waits for another one.
struct Fault {
  bool is_mismatch = false, also_waits = false;
  int64_t begin = 0;
  int rank = 0;
  std::string message = {};
  bool operator<(const Fault& other) const {
    return std::tuple(!is_mismatch, also_waits, begin, rank) <
           std::tuple(!other.is_mismatch, other.also_waits, other.begin, other.rank);
  }
};

double lower_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

/// Seconds of a step in which a rank read data, did something else or computed.
struct StepTime {
  double reading = 0, other = 0, computing = 0;
  double own() const { return reading + computing; }
};

/// The steps that the record has whole, by number.
std::map<int64_t, StepTime> step_times(const FlightLog& log) {
  std::map<int64_t, StepTime> out;
  int64_t before = 0;
  for (const FlightRecord& r : log.records) {
    if (r.end == 0) break;
    StepTime& step = out[r.step];
    if (before > 0)
      step.computing += static_cast<double>(std::max<int64_t>(0, r.begin - before)) / kNanoseconds;
    if (is_activity(r)) {
      const double time = static_cast<double>(r.end - r.begin) / kNanoseconds;
      (text_of(r.place) == kReadingBatch ? step.reading : step.other) += time;
    }
    before = std::max(before, r.end);
  }
  if (!out.empty()) out.erase(out.begin());
  if (!out.empty()) out.erase(std::prev(out.end()));
  return out;
}

constexpr double kSlowFactor = 1.5;
/// Smaller differences are not reported.
constexpr double kLeastSeconds = 1e-4;

std::string milliseconds(double time) {
  constexpr double kMilliseconds = 1e3, kTenths = 10;
  return str(std::round(time * kMilliseconds * kTenths) / kTenths, " ms");
}

void find_slow_ranks(const std::vector<FlightLog>& logs, std::vector<SlowPart>& out) {
  std::vector<std::map<int64_t, StepTime>> times;
  for (const FlightLog& log : logs) times.push_back(step_times(log));
  std::vector<int64_t> steps;  // that all ranks have
  for (const auto& first : times.at(0)) {
    const int64_t step = first.first;
    if (step > 0 && std::all_of(times.begin(), times.end(),
                                [step](const auto& each) { return each.contains(step); }))
      steps.push_back(step);
  }
  if (steps.size() < kSlowSteps) return;
  steps.erase(steps.begin(), steps.end() - static_cast<ptrdiff_t>(kSlowSteps));
  const auto mean = [&](size_t rank, double StepTime::*part) {
    double sum = 0;
    for (const int64_t step : steps) sum += times[rank].at(step).*part;
    return sum / static_cast<double>(steps.size());
  };
  for (size_t rank = 0; rank < logs.size(); ++rank) {
    const bool is_slow = std::all_of(steps.begin(), steps.end(), [&](int64_t step) {
      std::vector<double> all;
      for (const auto& each : times) all.push_back(each.at(step).own());
      return times[rank].at(step).own() > kSlowFactor * lower_median(all) + kLeastSeconds;
    });
    if (!is_slow) continue;
    const auto median = [&](double StepTime::*part) {
      std::vector<double> all;
      for (size_t other = 0; other < logs.size(); ++other) all.push_back(mean(other, part));
      return lower_median(all);
    };
    const double more_reading = mean(rank, &StepTime::reading) - median(&StepTime::reading);
    const double more_computing = mean(rank, &StepTime::computing) - median(&StepTime::computing);
    const bool reads = more_reading > more_computing;
    const auto part = reads ? &StepTime::reading : &StepTime::computing;
    const std::string name = str("rank ", logs[rank].rank);
    out.push_back({name, str(name, " is slow: it ", reads ? "waits for data" : "computes", " for ",
                             milliseconds(mean(rank, part)), " in each of the last ", steps.size(),
                             " steps, the median rank ", milliseconds(median(part)))});
  }
}

/// Messages between pairs of ranks, whose two ends show when the bytes were on their way.
void find_slow_links(const std::vector<FlightLog>& logs, std::vector<SlowPart>& out) {
  constexpr int64_t kLeastBytes = 1024;
  std::map<std::pair<int, int>, std::vector<double>> rates;  // bytes per second
  constexpr size_t kMaxMessages = 512;                       // of a rank: each is looked up
  for (const FlightLog& log : logs) {
    size_t messages = 0;
    for (auto it = log.records.rbegin(); it != log.records.rend() && messages < kMaxMessages;
         ++it) {
      const FlightRecord& r = *it;
      if ((r.flags & FlightRecord::kReceives) == 0 || r.end == 0 || r.bytes < kLeastBytes) continue;
      const auto from = std::find_if(logs.begin(), logs.end(),
                                     [&](const auto& other) { return other.rank == r.first; });
      const FlightRecord* const sent = from == logs.end() ? nullptr : find_turn(*from, r);
      if (!sent) continue;
      ++messages;
      const int64_t time = r.end - std::max(r.begin, sent->begin);
      if (time > 0)
        rates[{r.first, log.rank}].push_back(static_cast<double>(r.bytes) * kNanoseconds /
                                             static_cast<double>(time));
    }
  }
  std::vector<double> medians;
  for (const auto& [link, all] : rates)
    if (all.size() >= kSlowSteps) medians.push_back(lower_median(all));
  std::sort(medians.rbegin(), medians.rend());
  constexpr double kSlowLink = 3;
  for (const auto& [link, all] : rates) {
    if (all.size() < kSlowSteps || medians.size() < 2) continue;
    const double here = lower_median(all), usual = medians[(medians.size() - 1) / 2];
    if (here * kSlowLink > usual) continue;
    const std::string name = str("the link from rank ", link.first, " to rank ", link.second);
    out.push_back({name, str(name, " is slow: ", human_bytes(static_cast<uint64_t>(here)),
                             "/s in the median of ", all.size(), " messages, the median link ",
                             human_bytes(static_cast<uint64_t>(usual)), "/s")});
  }
}

}  // namespace

const FlightRecord* FlightLog::last_exchange() const {
  const auto it = std::find_if(records.rbegin(), records.rend(),
                               [](const FlightRecord& r) { return !is_activity(r); });
  return it == records.rend() ? nullptr : &*it;
}

FlightLog read_flight(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() != kFlightBytes ||
      std::memcmp(bytes.data(), FlightHeader::kMagic.data(), FlightHeader::kMagic.size()) != 0)
    fail(ErrorCode::kData, path, ": is not a record of exchanges of this version");
  FlightHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  FlightLog out;
  out.rank = header.rank;
  out.size = header.size;
  constexpr int kMaxRankCount = 1 << 20;
  if (out.rank < 0 || out.size > kMaxRankCount || out.rank >= out.size)
    fail(ErrorCode::kData, path, ": has the rank ", out.rank, " of ", out.size);
  out.process = header.process;
  out.host = text_of(header.host);
  out.step = header.step;
  out.activity = text_of(header.activity);
  // Differences of times of a damaged file must be numbers, too.
  constexpr int64_t kLatest = int64_t{1} << 60;
  const auto is_time = [](int64_t time) { return time >= 0 && time < kLatest; };
  if (!is_time(header.activity_since) || header.clock_offset <= -kLatest ||
      header.clock_offset >= kLatest)
    fail(ErrorCode::kData, path, ": has times that no clock gives");
  out.activity_since = header.activity_since + header.clock_offset;
  out.end = header.end;
  out.exchanges = header.records;
  for (size_t i = 0; i < kFlightRecords; ++i) {
    FlightRecord record;
    std::memcpy(&record, bytes.data() + kFlightHeaderBytes + i * sizeof record, sizeof record);
    record.place[sizeof record.place - 1] = '\0';
    const bool is_there = record.number > 0 && record.number <= out.exchanges &&
                          (record.number - 1) % kFlightRecords == i &&
                          record.kind < kExchangeKinds && record.count > 0 && record.bytes >= 0 &&
                          is_time(record.begin) && is_time(record.end);
    if (!is_there) continue;
    record.begin += header.clock_offset;
    if (record.end != 0) record.end += header.clock_offset;
    out.records.push_back(record);
  }
  std::sort(out.records.begin(), out.records.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return out;
}

FlightLog read_flight(const std::string& path) {
  const std::string bytes = read_file(path, kFlightBytes);
  return read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), path);
}

std::vector<FlightLog> read_flights(const std::string& folder) {
  std::vector<FlightLog> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".flight") out.push_back(read_flight(entry.path().string()));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return out;
}

std::string text(const FlightRecord& record) {
  const std::string place = text_of(record.place);
  return str(text(static_cast<Exchange>(record.kind)), " ", record.turn, " of step ", record.step,
             place.empty() ? "" : str(" (", place, ")"));
}

std::string state_text(const FlightLog& log, int64_t now) {
  if (log.end != FlightEnd::kNone)
    return log.end == FlightEnd::kDone ? "it has ended" : "it has stopped with an error";
  const FlightRecord* const last = log.last_exchange();
  if (last && last->end == 0)
    return str("it has waited in ", text(*last), " for ", seconds(now - last->begin));
  if (!log.activity.empty())
    return str("it is in \"", log.activity, "\" since ", seconds(now - log.activity_since));
  if (!last) return str("it computes since ", seconds(now - log.activity_since));
  return str("it computes since ", seconds(now - std::max(log.activity_since, last->end)),
             ", after ", text(*last));
}

int64_t latest(const std::vector<FlightLog>& logs) {
  int64_t time = 0;
  for (const FlightLog& log : logs) {
    time = std::max(time, log.activity_since);
    for (const FlightRecord& r : log.records) time = std::max({time, r.begin, r.end});
  }
  return time;
}

std::optional<std::string> find_divergence(const std::vector<FlightLog>& logs, int64_t now) {
  std::optional<Fault> first;
  for (const FlightLog& log : logs) {
    const FlightRecord* const waiting = waits(log) ? log.last_exchange() : nullptr;
    if (!waiting) continue;
    for (const FlightLog& other : logs) {
      if (other.rank == log.rank || !is_member(*waiting, other.rank)) continue;
      Fault fault{.begin = waiting->begin, .rank = other.rank};
      if (const FlightRecord* const same = find_turn(other, *waiting)) {
        if (agree(*same, *waiting)) continue;
        fault.is_mismatch = true;
        fault.message = str("rank ", other.rank, " is in ", text(*same), " of ", same->bytes,
                            " bytes where rank ", log.rank, " is in ", text(*waiting), " of ",
                            waiting->bytes, " bytes: their programs differ");
      } else if (!has_passed(other, *waiting)) {
        fault.also_waits = waits(other);
        fault.message = str("rank ", other.rank, " did not enter ", text(*waiting), "; ",
                            state_text(other, now));
      } else {
        continue;
      }
      if (!first || fault < *first) first = std::move(fault);
    }
  }
  if (first) return std::move(first->message);
  // All have entered, but one of them has ended there, without an error of its own.
  const bool others_failed = std::any_of(
      logs.begin(), logs.end(), [](const auto& log) { return log.end == FlightEnd::kFailed; });
  for (const FlightLog& log : logs)
    if (others_failed && log.end == FlightEnd::kNone && waits(log))
      return str("rank ", log.rank, " ended in ", text(*log.last_exchange()));
  return std::nullopt;
}

std::vector<std::string> SlowWatch::advance(const std::string& folder) {
  constexpr auto kInterval = std::chrono::seconds(10);
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::string> out;
  if (folder.empty() || now < next_) return out;
  next_ = now + kInterval;
  try {
    for (SlowPart& part : find_slow(read_flights(folder)))
      if (told_.insert(part.name).second) out.push_back(std::move(part.evidence));
  } catch (const Error&) {  // a rank replaces its record just now
  }
  return out;
}

std::vector<SlowPart> find_slow(const std::vector<FlightLog>& logs) {
  std::vector<SlowPart> out;
  if (logs.size() < 2) return out;
  find_slow_ranks(logs, out);
  find_slow_links(logs, out);
  return out;
}

}  // namespace paddle::comm
