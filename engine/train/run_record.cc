#include "train/run_record.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/parallel.h"

namespace paddle::train {
namespace {

using nlohmann::ordered_json;

ordered_json record_of(const data::Dataset& dataset) {
  ordered_json files = ordered_json::array();
  for (const std::string& path : dataset.paths()) {
    ordered_json file = {{"path", path}};
    if (!is_directory(path)) {
      file["bytes"] = file_size(path);
      file["digest"] = digest_of({path});
    }
    files.push_back(std::move(file));
  }
  return {{"samples", dataset.size()}, {"files", std::move(files)}};
}

}  // namespace

uint32_t digest_of(const std::vector<std::string>& files) {
  constexpr size_t kPart = size_t{1} << 20;
  uint32_t digest = 0;
  for (const std::string& path : files) {
    const auto file = MappedFile::open(path);
    const uint64_t size = file->size();
    digest = crc32(std::as_bytes(std::span(&size, 1)), digest);
    const auto bytes = file->bytes();
    const size_t part = std::min(kPart, bytes.size());
    digest = crc32(bytes.first(part), digest);
    if (bytes.size() > part) digest = crc32(bytes.last(part), digest);
  }
  return digest;
}

void write_run_record(const std::string& file, const RunConfig& config, bool eager,
                      const data::Dataset& train, const data::Dataset* valid) {
  const std::string resolved = model::dump_yaml(config.document);
  ordered_json record = {
      {"version", 1},
      {"program", PADDLE_VERSION},
      {"name", config.name},
      {"config", config.file},
      {"config_digest", crc32(std::as_bytes(std::span(resolved.data(), resolved.size())))},
      {"seed", config.seed},
      {"precision", precision_name(config)},
      {"deterministic", config.deterministic},
      {"mode", eager ? "eager" : "compiled"},
      {"device", "cpu"},
      {"threads", thread_count()},
      {"train", record_of(train)}};
  if (valid) record["valid"] = record_of(*valid);
  write_file_atomically(
      file, record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace paddle::train
