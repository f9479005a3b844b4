#include "train/records/metrics_log.h"

#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "train/job/trainer.h"

namespace paddle::train {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

bool is_log_key(std::string_view key) {
  static const std::set<std::string, std::less<>> kKeys = {"kind",
                                                           "step",
                                                           "epoch",
                                                           "loss",
                                                           "learning_rate",
                                                           "gradient_norm",
                                                           "loss_scale",
                                                           "skipped_updates",
                                                           "samples_per_second",
                                                           "data_wait",
                                                           "seconds",
                                                           "intervals"};
  return kKeys.contains(key);
}

bool is_reserved_name(std::string_view name) {
  static const std::set<std::string, std::less<>> kKeysOfEval = {"model", "data", "samples"};
  return is_log_key(name) || kKeysOfEval.contains(name) || name.starts_with("loss.");
}

std::string kept_lines(const std::string& path, int64_t step, bool evaluates_again) {
  std::string out;
  if (!file_exists(path)) return out;
  for (const std::string& line : split(read_file(path), '\n')) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || kind_of(object) == "end") continue;
    const int64_t of = step_of(object);
    // A pass is evaluated after the checkpoint that it begins with.
    const bool again = of == step && (kind_of(object) == "pass" ||
                                      (evaluates_again && kind_of(object) == "valid"));
    if (of <= step && !again) out += line + "\n";
  }
  return out;
}

MetricsLog::MetricsLog(const std::string& path, int64_t from_step, bool evaluates_again)
    : path_(path) {
  write_file_atomically(path, from_step >= 0 ? kept_lines(path, from_step, evaluates_again) : "");
  file_.open(path, std::ios::app);
}

void MetricsLog::append(const std::string& text) {
  file_ << text << '\n';
  file_.flush();
  if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
}

void MetricsLog::write(const LogLine& line) {
  nlohmann::ordered_json o;
  o["kind"] = line.kind;
  o["step"] = line.step;
  o["epoch"] = line.epoch;
  o["loss"] = number_or_null<Json>(line.loss);
  for (const auto& [name, value] : line.metrics) o[name] = number_or_null<Json>(value);
  o["learning_rate"] = number_or_null<Json>(line.learning_rate);
  if (line.gradient_norm) o["gradient_norm"] = number_or_null<Json>(*line.gradient_norm);
  if (line.loss_scale) o["loss_scale"] = number_or_null<Json>(*line.loss_scale);
  if (line.loss_scale || line.skipped_updates > 0) o["skipped_updates"] = line.skipped_updates;
  o["samples_per_second"] = number_or_null<Json>(line.samples_per_second);
  if (line.kind == "train") o["data_wait"] = number_or_null<Json>(line.data_wait);
  o["seconds"] = number_or_null<Json>(line.seconds);
  for (const auto& [name, interval] : line.intervals)
    o["intervals"][name] = {interval.low, interval.high};
  append(o.dump());
}

void MetricsLog::end(int64_t step, int64_t traces, int64_t plans, size_t planned_bytes,
                     double seconds, int64_t skipped, std::optional<int64_t> skipped_updates) {
  nlohmann::ordered_json o;
  o["kind"] = "end";
  o["step"] = step;
  o["traces"] = traces;
  o["plans"] = plans;
  o["planned_bytes"] = planned_bytes;
  o["seconds"] = number_or_null<Json>(seconds);
  o["skipped_samples"] = skipped;
  if (skipped_updates) o["skipped_updates"] = *skipped_updates;
  append(o.dump());
}

}  // namespace paddle::train
