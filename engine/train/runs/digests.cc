#include "train/runs/digests.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "train/records/metrics_log.h"
#include "train/runs/run_index.h"

namespace paddle::train {
namespace {

std::string digest_of(const Array& array) {
  const Array here = array.on_host().contiguous();
  const uint32_t crc = crc32({static_cast<const std::byte*>(here.raw()),
                              static_cast<size_t>(storage_bytes(here.dtype, here.size()))});
  return fmt::format("{:08x}", crc);
}

}  // namespace

DigestLog::DigestLog(const std::string& path, int64_t from_step) : path_(path) {
  write_file_atomically(path, from_step >= 0 ? kept_lines(path, from_step) : "");
  file_.open(path, std::ios::app);
}

void DigestLog::write(int64_t step, double loss, const program::ParameterStore& whole) {
  nlohmann::ordered_json o = {{"step", step}, {"loss", loss}};
  for (const auto& [name, parameter] : whole.parameters) {
    const Array* const master = whole.master(name);
    o["parameters"][name] = digest_of(master ? *master : parameter.value);
  }
  file_ << o.dump() << '\n';
  file_.flush();
  if (!file_) fail(ErrorCode::kDevice, path_, ": cannot be written");
}

std::vector<StepDigest> read_digests(const std::string& run) {
  if (!is_run_folder(run)) fail(ErrorCode::kUsage, run, ": is not the folder of a run");
  std::vector<StepDigest> out;
  const std::string path = join_path(run, "digests.jsonl");
  if (!file_exists(path)) {
    for (const LossAt& line : read_losses(run)) out.push_back({line.step, line.loss, {}});
    return out;
  }
  constexpr uint64_t kMaxBytes = uint64_t{1} << 32;
  for (const std::string& line : split(read_file(path, kMaxBytes), '\n')) {
    const auto o = nlohmann::json::parse(line, nullptr, false);
    if (!o.is_object() || !o.contains("step") || !o["step"].is_number_integer()) continue;
    StepDigest digest;
    digest.step = o["step"].get<int64_t>();
    const auto loss = o.find("loss");
    digest.loss = loss != o.end() && loss->is_number() ? loss->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
    if (const auto all = o.find("parameters"); all != o.end() && all->is_object())
      for (const auto& [name, value] : all->items())
        if (value.is_string()) digest.parameters[name] = value.get<std::string>();
    out.push_back(std::move(digest));
  }
  return out;
}

double relative_difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b) / std::abs(a);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

RunDifference compare_digests(const std::vector<StepDigest>& a, const std::vector<StepDigest>& b,
                              double bound) {
  RunDifference out;
  size_t j = 0;
  for (const StepDigest& x : a) {
    while (j < b.size() && b[j].step < x.step) ++j;
    if (j == b.size()) break;
    const StepDigest& y = b[j];
    if (y.step != x.step) continue;
    ++out.compared;
    const bool both = !x.parameters.empty() && !y.parameters.empty();
    out.has_parameters = out.has_parameters || both;
    const double difference = relative_difference(x.loss, y.loss);
    out.largest = std::max(out.largest, difference);
    RunDifference::At at{x, y, {}};
    if (both)
      for (const auto& [name, digest] : x.parameters) {
        const auto other = y.parameters.find(name);
        if (other == y.parameters.end() || other->second != digest) at.parameters.push_back(name);
      }
    if (!out.first_bits && (difference > 0 || !at.parameters.empty())) out.first_bits = at;
    if (!out.first_beyond && difference > bound) out.first_beyond = std::move(at);
  }
  return out;
}

}  // namespace paddle::train
