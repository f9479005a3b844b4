#include "quant/search.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/files.h"
#include "base/text.h"
#include "config/schema.h"
#include "quant/quantize.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxProgressBytes = uint64_t{1} << 26;

/// Of a layer's sensitivity in progress.json.
const char* key(Sensitivity sensitivity) {
  return sensitivity == Sensitivity::kGradient ? "loss_change" : "output_sqnr_db";
}

bool better(const Trial& a, const Trial& b) {
  if (a.accepted != b.accepted) return a.accepted;
  return a.accepted ? a.kept_float < b.kept_float : a.accuracy_gap < b.accuracy_gap;
}

}  // namespace

std::optional<SearchOptions> read_search(const config::Node& document) {
  const config::Section quant = config::Section(document).section("quant");
  if (!quant.has("search")) return std::nullopt;
  const config::Section budget = quant.section("search").section("budget");
  SearchOptions out;
  out.trials = budget.integer("trials");
  out.sensitivity = parse_sensitivity(quant.section("search").text("sensitivity"));
  if (budget.has("time")) {
    out.seconds = parse_duration(budget.text("time"));
    if (out.seconds.value_or(0) <= 0)
      throw Error(ErrorCode::kConfig,
                  "quant.search.budget.time: expected seconds or a time such as '30m' or '1h30m', "
                  "found '" +
                      budget.text("time") + "'",
                  budget.at("time").location());
  }
  return out;
}

std::vector<std::optional<double>> output_noise(Quantizable& model,
                                                const std::vector<Array>& inputs,
                                                const WeightSource& weight,
                                                const Progress& progress,
                                                std::optional<double> seconds) {
  const auto begun = Clock::now();
  const std::vector<Layer> all = model.layers();
  const auto run = [&] {
    const QuantizedFunction quantized = quantize(model, Integers::kBytes);
    FunctionRunner runner(quantized.function, [&](const std::string& name) {
      const auto found = quantized.weights.find(name);
      return found == quantized.weights.end() ? weight(name) : found->second;
    });
    return runtime::copied(runner.run(inputs).at(0));  // the runner's memory goes with it
  };
  for (Layer& layer : model.layers()) layer.quantized = false;
  const Array expected = run();
  std::vector<std::optional<double>> out(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].quantized) continue;
    if (seconds && std::chrono::duration<double>(Clock::now() - begun).count() > *seconds) break;
    progress({str("layer ", i + 1, " of ", all.size(), ": ", all[i].name), static_cast<int64_t>(i),
              static_cast<int64_t>(all.size())});
    model.layers()[i].quantized = true;
    Sqnr sqnr;
    sqnr.add(expected, run());
    out[i] = sqnr.decibels();
    model.layers()[i].quantized = false;
  }
  model.layers() = all;
  return out;
}

std::optional<SearchProgress> read_progress(const std::filesystem::path& file,
                                            const std::string& fingerprint) {
  if (!file_exists(file.string())) return std::nullopt;
  const Json json = Json::parse(read_file(file.string(), kMaxProgressBytes, ErrorCode::kModel),
                                nullptr, /*allow_exceptions=*/false);
  try {
    SearchProgress out;
    out.fingerprint = json.at("fingerprint").get<std::string>();
    if (out.fingerprint != fingerprint) return std::nullopt;
    for (const Json& layer : json.at("order")) {
      out.order.push_back(layer.at("name").get<std::string>());
      if (layer.contains(key(Sensitivity::kGradient))) out.sensitivity = Sensitivity::kGradient;
      out.values.push_back(layer.at(key(out.sensitivity)).get<double>());
    }
    for (const auto& [name, why] : json.at("kept").items())
      out.kept.emplace_back(name, why.get<std::string>());
    for (const Json& trial : json.at("trials"))
      out.trials.push_back({trial.at("kept_float").get<int64_t>(), trial.at("accepted").get<bool>(),
                            trial.at("shortfall").get<double>()});
    return out;
  } catch (const Json::exception&) {
    fail(ErrorCode::kModel, file.string(), ": is not the progress of a search");
  }
}

void write_progress(const std::filesystem::path& file, const SearchProgress& progress) {
  Json order = Json::array(), trials = Json::array();
  for (size_t i = 0; i < progress.order.size(); ++i)
    order.push_back({{"name", progress.order[i]}, {key(progress.sensitivity), progress.values[i]}});
  for (const Trial& each : progress.trials)
    trials.push_back({{"kept_float", each.kept_float},
                      {"accepted", each.accepted},
                      {"shortfall", each.accuracy_gap}});
  Json kept = Json::object();
  for (const auto& [name, why] : progress.kept) kept[name] = why;
  const Json out = {{"version", 1},
                    {"fingerprint", progress.fingerprint},
                    {"order", order},
                    {"kept", kept},
                    {"trials", trials}};
  write_file_atomically(file.string(), out.dump(2) + "\n");
}

void write_decisions(const std::filesystem::path& file, const std::vector<Layer>& layers) {
  Json out = Json::array();
  for (const Layer& each : layers)
    out.push_back({{"name", each.name},
                   {"quantized", each.quantized},
                   {"why", each.why},
                   {"sqnr_db", each.sqnr_db},
                   {"float_us", each.float_us},
                   {"quantized_us", each.quantized_us}});
  write_file_atomically(file.string(), out.dump(2) + "\n");
}

bool read_decisions(const std::filesystem::path& file, std::vector<Layer>& layers) {
  if (!file_exists(file.string())) return false;
  const Json json = Json::parse(read_file(file.string(), kMaxProgressBytes, ErrorCode::kModel),
                                nullptr, /*allow_exceptions=*/false);
  std::vector<Layer> out = layers;
  try {
    if (!json.is_array() || json.size() != out.size()) return false;
    for (size_t i = 0; i < out.size(); ++i) {
      const Json& each = json.at(i);
      if (each.at("name").get<std::string>() != out[i].name) return false;
      out[i].quantized = each.at("quantized").get<bool>();
      out[i].why = each.at("why").get<std::string>();
      out[i].sqnr_db = each.at("sqnr_db").get<double>();
      out[i].float_us = each.at("float_us").get<double>();
      out[i].quantized_us = each.at("quantized_us").get<double>();
    }
  } catch (const Json::exception&) {
    return false;
  }
  layers = std::move(out);
  return true;
}

int64_t most_trials_left(const SearchProgress& progress, const SearchOptions& options) {
  const auto halvings = [](int64_t rejected, int64_t accepted) -> int64_t {
    return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(0, accepted - rejected - 1)));
  };
  const auto most = static_cast<int64_t>(progress.order.size()) - 1;
  int64_t rejected = -1, accepted = -1;
  for (const Trial& each : progress.trials)
    if (!each.accepted) rejected = std::max(rejected, each.kept_float);
  for (const Trial& each : progress.trials)
    if (each.accepted && (accepted < 0 || each.kept_float < accepted)) accepted = each.kept_float;
  int64_t left = 0;
  if (accepted >= 0) {
    left = halvings(std::max<int64_t>(0, rejected), accepted);
  } else {
    // Whichever of the steps ahead is accepted, halves of it follow.
    for (int64_t steps = 1; rejected < most; ++steps) {
      const int64_t next = rejected < 0 ? 0 : std::min(most, std::max<int64_t>(1, 2 * rejected));
      left = std::max(left, steps + halvings(std::max<int64_t>(0, rejected), next));
      rejected = next;
    }
  }
  const auto run = static_cast<int64_t>(progress.trials.size());
  return std::clamp<int64_t>(left, 0, std::max<int64_t>(0, options.trials - run));
}

Trial search(SearchProgress& progress, const SearchOptions& options,
             const std::function<Trial(int64_t kept_float)>& run,
             const std::function<void(const Trial& trial, bool best)>& record) {
  const auto begun = Clock::now();
  std::optional<Trial> best;
  for (const Trial& each : progress.trials)
    if (!best || better(each, *best)) best = each;
  const auto is_spent = [&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return static_cast<int64_t>(progress.trials.size()) >= options.trials ||
           (options.seconds && seconds > *options.seconds) ||
           (options.deadline && Clock::now() > *options.deadline);
  };
  const auto tried = [&](int64_t kept) -> std::optional<Trial> {
    const auto found = std::find_if(progress.trials.begin(), progress.trials.end(),
                                    [&](const Trial& t) { return t.kept_float == kept; });
    if (found != progress.trials.end()) return *found;
    if (best && is_spent()) return std::nullopt;
    const Trial trial = run(kept);
    progress.trials.push_back(trial);
    const bool leads = !best || better(trial, *best);
    if (leads) best = trial;
    record(trial, leads);
    return trial;
  };
  // All layers, then 1, 2, 4, … until one is accepted, then halves of the last step.
  const auto most = static_cast<int64_t>(progress.order.size()) - 1;
  auto trial = tried(0);
  int64_t rejected = 0, step = 1;
  while (trial && !trial->accepted && rejected < most) {
    const int64_t next = std::min(most, step);
    trial = tried(next);
    if (trial && !trial->accepted) rejected = next;
    step *= 2;
  }
  if (!trial || !trial->accepted) return *best;
  int64_t accepted = trial->kept_float;
  while (accepted - rejected > 1) {
    const int64_t middle = rejected + (accepted - rejected) / 2;
    trial = tried(middle);
    if (!trial) break;
    (trial->accepted ? accepted : rejected) = middle;
  }
  return *best;
}

}  // namespace paddle::quant
