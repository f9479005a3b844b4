#include "profile/diff.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace paddle::profile {
namespace {

using Json = nlohmann::ordered_json;

struct Change {
  std::string name;
  double before = 0, after = 0;
};

/// Changes by falling size.
std::vector<Change> changes(const std::map<std::string, double>& before,
                            const std::map<std::string, double>& after) {
  std::map<std::string, Change> all;
  for (const auto& [name, ms] : before) all[name] = {name, ms, 0};
  for (const auto& [name, ms] : after) {
    all[name].name = name;
    all[name].after = ms;
  }
  std::vector<Change> out;
  for (const auto& [name, change] : all) out.push_back(change);
  std::stable_sort(out.begin(), out.end(), [](const Change& a, const Change& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return out;
}

std::string row(const Change& c) {
  const std::string text =
      fmt::format("{:10.3f} {:10.3f} {:+10.3f} {:>8}  ", c.before, c.after, c.after - c.before,
                  c.before <= 0  ? "new"
                  : c.after <= 0 ? "gone"
                                 : str(std::round(100 * c.after / c.before) / 100, "x").c_str());
  return text + c.name + "\n";
}

double quantile(std::vector<double> sorted, double q) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

}  // namespace

FolderSummary read_folder(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "profile.json").string();
  if (!is_directory(folder)) fail(ErrorCode::kUsage, folder, ": no such folder");
  if (!file_exists(path))
    fail(ErrorCode::kUsage, folder, ": holds no profile (there is no profile.json in it)");
  FolderSummary out;
  out.folder = folder;
  try {
    const Json json = Json::parse(read_file(path));
    out.subject = json.at("subject").get<std::string>();
    out.kind = json.at("kind").get<std::string>();
    out.threads = json.at("threads").get<int>();
    std::vector<double> steps;
    for (const Json& step : json.at("timed_steps")) {
      steps.push_back(step.at("ms").get<double>());
      out.wait_ms += step.at("wait_ms").get<double>();
    }
    if (steps.empty()) fail(ErrorCode::kData, path, ": no step was measured");
    out.wait_ms /= static_cast<double>(steps.size());
    std::sort(steps.begin(), steps.end());
    out.step_ms = quantile(steps, 0.5);
    out.spread = (quantile(steps, 0.75) - quantile(steps, 0.25)) / 2 / out.step_ms;
    for (const Json& o : json.at("operations")) {
      const auto field = [&](const char* name) { return o.at(name).get<std::string>(); };
      const double ms = o.at("ms").get<double>();
      out.operations[field("operation") + "  " + field("implementation") + "  " + field("phase")] +=
          ms;
      const std::string layer = field("layer");
      out.layers[(layer.empty() ? "-" : layer) + "  " + field("phase")] += ms;
    }
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::kData, path, ": is not a profile: ", e.what());
  }
  return out;
}

std::string compare(const FolderSummary& before, const FolderSummary& after) {
  std::string out = str("before: ", before.folder, " (", before.subject, ", ", before.kind, ", ",
                        before.threads, " threads)\nafter:  ", after.folder, " (", after.subject,
                        ", ", after.kind, ", ", after.threads, " threads)\n");
  const char* const kHeader = "    before      after     change             ";
  out += str(kHeader, "ms of a step\n");
  out += row({"step (median)", before.step_ms, after.step_ms});
  out += row({"waiting for data", before.wait_ms, after.wait_ms});
  const double noise = std::max(before.spread, after.spread);
  const double change = std::abs(after.step_ms - before.step_ms) / before.step_ms;
  if (change <= noise) {
    const std::string text =
        fmt::format("the step changed by {:.1f}%, which is within the spread of steps ({:.1f}%)\n",
                    100 * change, 100 * noise);
    out += text;
  }
  const auto section = [&](const char* title, const std::map<std::string, double>& a,
                           const std::map<std::string, double>& b) {
    std::string rows;
    for (const Change& c : changes(a, b))
      if (std::abs(c.after - c.before) >= 0.01 * before.step_ms) rows += row(c);
    out +=
        str("\n", kHeader, title, "\n", rows.empty() ? "  nothing above 1% of the step\n" : rows);
  };
  section("operation  implementation  phase", before.operations, after.operations);
  section("layer  phase", before.layers, after.layers);
  return out;
}

std::string compare_json(const FolderSummary& before, const FolderSummary& after) {
  Json o;
  o["step_ms"] = {{"before", before.step_ms}, {"after", after.step_ms}};
  o["wait_ms"] = {{"before", before.wait_ms}, {"after", after.wait_ms}};
  o["spread"] = std::max(before.spread, after.spread);
  const auto list = [](const std::map<std::string, double>& a,
                       const std::map<std::string, double>& b) {
    Json out = Json::array();
    for (const Change& c : changes(a, b))
      out.push_back({{"name", c.name}, {"before_ms", c.before}, {"after_ms", c.after}});
    return out;
  };
  o["operations"] = list(before.operations, after.operations);
  o["layers"] = list(before.layers, after.layers);
  return o.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paddle::profile
