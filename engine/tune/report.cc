#include "tune/report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/timing_conditions.h"
#include "tune/tuned_settings.h"

namespace paddle::tune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kTrials = "trials.json";

const char* name_of(ComparisonResult outcome) {
  switch (outcome) {
    case ComparisonResult::kFaster:
      return "faster";
    case ComparisonResult::kSlower:
      return "slower";
    case ComparisonResult::kSame:
      return "same";
    case ComparisonResult::kStopped:
      break;
  }
  return "stopped";
}

Json to_json(const Gain& gain) {
  return {{"gain", gain.mean}, {"low", gain.low}, {"high", gain.high}};
}

Json to_json(const Trial& t) {
  Json o = {{"dimension", t.dimension},
            {"key", t.change.key},
            {"before", t.before},
            {"value", t.change.value},
            {"verdict", name_of(t.outcome)},
            {"accepted", t.accepted},
            {"same_bits", t.same_bits},
            {"rounds", t.rounds},
            {"why", t.why}};
  o.update(to_json(t.gain));
  o["base"] = t.base;
  return o;
}

Trial trial_of(const Json& o) {
  Trial t;
  t.dimension = o.at("dimension").get<std::string>();
  t.change = {o.at("key").get<std::string>(), o.at("value").get<std::string>()};
  t.before = o.at("before").get<std::string>();
  t.accepted = o.at("accepted").get<bool>();
  t.same_bits = o.at("same_bits").get<bool>();
  const auto outcome = o.at("verdict").get<std::string>();
  for (const ComparisonResult v : {ComparisonResult::kFaster, ComparisonResult::kSlower,
                                   ComparisonResult::kSame, ComparisonResult::kStopped})
    if (outcome == name_of(v)) t.outcome = v;
  t.rounds = o.at("rounds").get<int>();
  t.why = o.at("why").get<std::string>();
  t.gain = {o.at("gain").get<double>(), o.at("low").get<double>(), o.at("high").get<double>()};
  t.base = o.at("base").get<Settings>();
  return t;
}

Json request_json(const Request& request) {
  return {{"subject", request.subject},
          {"arguments", request.arguments},
          {"machine", timing_conditions()}};
}

/// Accepted changes, the last of each key, in the order of the search.
std::vector<const Trial*> accepted(const Result& result) {
  std::vector<const Trial*> out;
  for (const Trial& t : result.trials)
    if (t.accepted && result.best.at(t.change.key) == t.change.value) out.push_back(&t);
  return out;
}

/// The comments at the head of a file: where it is from, and what all changes gain together.
std::string heading(const Request& request, const TuningTarget& subject, const Result& result) {
  std::string out = str("# Made by paddle-tune on ", timing_conditions(), ".\n");
  if (accepted(result).empty()) {
    out += "# Nothing was faster beyond the noise of measurements.\n";
  } else {
    const bool training = subject.kind() == "training";
    out += str("# All changes together: ", text(result.total.gain), " in ", rate(subject),
               ", with the 95% interval.\n# ",
               training ? "The losses and weights of 5 steps " : "The outputs ",
               result.same_bits
                   ? "have the same bits as without the changes."
                   : str("differ from those without the changes", training ? "." : " in bits."),
               "\n");
  }
  if (!request.arguments.empty()) out += "# Measured with: " + join(request.arguments, " ") + "\n";
  if (!result.finished) out += "# The search was stopped before it had tried everything.\n";
  return out;
}

/// The comment after a changed value.
std::string claim(const Trial& t, const std::string& before) {
  return str("  # ", text(t.gain), ", was ", before.empty() ? "none" : before,
             t.same_bits ? "; same bits" : "; other bits", "\n");
}

/// The comment for a change that holds without being stated.
std::string unstated_claim(const Trial& t) {
  return str("# ", t.change.key, " ", t.change.value, ": ", text(t.gain),
             t.same_bits ? "; same bits" : "; other bits",
             "; kept in the cache of this machine, nothing is to be stated\n");
}

}  // namespace

std::string rate(const TuningTarget& subject) {
  return subject.kind() == "language model" ? "tokens per second" : "samples per second";
}

std::string tuned_yaml(const Request& request, TuningTarget& subject, const Result& result,
                       const std::string& folder) {
  std::error_code ignored;
  fs::path base = fs::relative(request.subject, folder, ignored);
  if (base.empty()) base = fs::absolute(request.subject);
  std::string out = heading(request, subject, result);
  out +=
      str("extends: ", Json(base.string()).dump(), "\nname: ", Json(subject.name()).dump(), "\n");
  std::vector<std::string> sections;
  std::map<std::string, std::string> lines;
  std::string unstated;
  for (const Trial* t : accepted(result)) {
    const std::string value = subject.publish(t->change, folder);
    if (value.empty()) {
      unstated += unstated_claim(*t);
      continue;
    }
    const size_t dot = t->change.key.find('.');
    const std::string section = dot == std::string::npos ? "" : t->change.key.substr(0, dot);
    if (lines.try_emplace(section).second) sections.push_back(section);
    lines[section] += str(section.empty() ? "" : "  ", t->change.key.substr(dot + 1), ": ", value,
                          claim(*t, t->before));
  }
  out += unstated;
  for (const std::string& section : sections)
    out += (section.empty() ? "" : section + ":\n") + lines[section];
  return out;
}

std::string tuned_settings_yaml(const Request& request, TuningTarget& subject, const Result& result,
                                const std::string& folder) {
  const bool language = subject.kind() == "language model";
  std::string unstated, lines;
  for (const Trial* t : accepted(result)) {
    std::string key = t->change.key, before = t->before;
    std::string value = subject.publish(t->change, folder);
    if (value.empty()) {
      unstated += unstated_claim(*t);
      continue;
    }
    if (key == "kernels") {
      value = Json(fs::path(value).filename().string()).dump();  // next to the file
    } else if (key.starts_with("no-")) {
      key = key.substr(3);
      std::replace(key.begin(), key.end(), '-', '_');
      value = value == "true" ? "false" : "true";
      before = before == "true" ? "false" : "true";
    }
    lines += str(key, ": ", value, claim(*t, before));
  }
  return str(heading(request, subject, result), "# For ",
             language ? "paddle-infer and paddle-serve" : "paddle-infer", ": --tuned FILE.\n",
             unstated,
             "subject: ", word_of(language ? TunedSubject::kLanguageModel : TunedSubject::kModel),
             "  # ", Json(subject.name()).dump(), "\n", lines);
}

std::string tuned_command(const Request& request, const TuningTarget& subject, const Result& result,
                          const std::string& file) {
  std::string arguments = " " + request.subject;
  if (!request.family.empty()) arguments += " --family " + request.family;
  arguments += " --tuned " + file;
  std::string out = "paddle-infer" + arguments;
  if (subject.kind() != "language model" || result.best.at("streams") == "1") return out;
  // Texts at a time are those of requests.
  return str(out, "\n", out, " --requests in.jsonl --output out.jsonl\npaddle-serve", arguments);
}

std::string report_json(const Request& request, const TuningTarget& subject, const Result& result) {
  Json o = request_json(request);
  o["kind"] = subject.kind();
  o["start"] = result.start;
  o["best"] = result.best;
  Json changes = Json::array(), trials = Json::array();
  for (const Trial* t : accepted(result)) changes.push_back(to_json(*t));
  for (const Trial& t : result.trials) trials.push_back(to_json(t));
  o["changes"] = changes;
  o["total"] = to_json(result.total.gain);
  o["same_bits"] = result.best == result.start || result.same_bits;
  o["finished"] = result.finished;
  o["trials"] = trials;
  return o.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_trials(const Request& request, const std::vector<Trial>& trials,
                  const std::string& state, const std::string& folder) {
  Json o = request_json(request);
  Json list = Json::array();
  for (const Trial& t : trials) list.push_back(to_json(t));
  o["trials"] = list;
  if (!state.empty()) o["state"] = Json::parse(state);
  write_file_atomically((fs::path(folder) / kTrials).string(),
                        o.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<Trial> read_trials(const Request& request, const std::string& folder,
                               TuningTarget& subject) {
  const std::string path = (fs::path(folder) / kTrials).string();
  if (!file_exists(path)) return {};
  try {
    const Json o = Json::parse(read_file(path));
    const Json expected = request_json(request);
    for (const auto& [key, value] : expected.items())
      if (o.at(key) != value)
        fail(ErrorCode::kUsage, "--resume: ", path, " is of another ", key, ", ", o.at(key).dump(),
             "; this is ", value.dump());
    std::vector<Trial> trials;
    const bool has_state = o.contains("state");
    for (const Json& t : o.at("trials")) {
      trials.push_back(trial_of(t));
      // Files of earlier versions lack the tables that such trials refer to.
      if (!has_state && trials.back().change.key.find("kernels") != std::string::npos) {
        trials.pop_back();
        break;
      }
    }
    if (has_state) subject.restore(o.at("state").dump());
    return trials;
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::kData, path, ": is not a list of trials: ", e.what());
  }
}

}  // namespace paddle::tune
