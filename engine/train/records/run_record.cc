#include "train/records/run_record.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/parallel.h"
#include "plugin/plugin.h"

namespace paddle::train {
namespace {

using nlohmann::ordered_json;

/// Names and sizes of all files below a folder.
uint32_t folder_digest(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> entries;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored))
      entries.push_back(str(it->path().lexically_relative(path).string(), ":",
                            static_cast<int64_t>(it->file_size(ignored))));
  }
  std::sort(entries.begin(), entries.end());
  const std::string all = join(entries, "\n");
  return crc32(std::as_bytes(std::span(all.data(), all.size())));
}

ordered_json record_of(const data::Dataset& dataset) {
  ordered_json files = ordered_json::array();
  for (const std::string& path : dataset.paths()) {
    ordered_json file = {{"path", path}};
    if (is_directory(path)) {
      file["digest"] = folder_digest(path);
    } else {
      file["bytes"] = file_size(path);
      file["digest"] = digest_of({path});
    }
    files.push_back(std::move(file));
  }
  ordered_json out = {{"samples", dataset.size()}, {"files", std::move(files)}};
  if (const std::string fingerprint = dataset.fingerprint(); !fingerprint.empty())
    out["fingerprint"] = fingerprint;
  return out;
}

/// A line for each file of the data that has other contents than the record says.
std::vector<std::string> changed_files(const ordered_json& before, const ordered_json& now) {
  std::vector<std::string> out;
  const ordered_json &old_files = before.at("files"), &files = now.at("files");
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = files[i].at("path").get<std::string>();
    if (i >= old_files.size()) {
      out.push_back(path + " is new");
    } else if (old_files[i].contains("digest") && old_files[i]["digest"] != files[i]["digest"]) {
      const bool sizes = old_files[i].contains("bytes") && files[i].contains("bytes") &&
                         old_files[i]["bytes"] != files[i]["bytes"];
      out.push_back(sizes ? str(path, " had ", old_files[i]["bytes"].dump(), " bytes, it has ",
                                files[i]["bytes"].dump())
                          : path + " has other contents");
    }
  }
  for (size_t i = files.size(); i < old_files.size(); ++i)
    out.push_back(old_files[i].at("path").get<std::string>() + " is no longer read");
  if (out.empty() && before.contains("fingerprint") && now.contains("fingerprint") &&
      before["fingerprint"] != now["fingerprint"])
    out.push_back("its fingerprint is another one");
  if (out.empty() && before.at("samples") != now.at("samples"))
    out.push_back(str("there were ", before.at("samples").dump(), " samples, there are ",
                      now.at("samples").dump()));
  return out;
}

}  // namespace

RecordChanges changes_since(const std::string& file, const data::Dataset& train,
                            const data::Dataset* valid, uint32_t model_digest) {
  RecordChanges out;
  if (!std::filesystem::exists(file)) return out;
  const ordered_json record =
      ordered_json::parse(read_file(file, 64 << 20, ErrorCode::kModel), nullptr, false);
  try {
    out.train = changed_files(record.at("train"), record_of(train));
    if (valid && record.contains("valid"))
      out.valid = changed_files(record.at("valid"), record_of(*valid));
    out.model = record.at("program").get<std::string>() == PADDLE_VERSION &&
                record.value("model_digest", model_digest) != model_digest;
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, file,
         ": is damaged; remove it to resume without a comparison of the "
         "data");
  }
  return out;
}

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
                      const data::Dataset& train, const data::Dataset* valid,
                      uint32_t model_digest) {
  const std::string resolved = config::dump_yaml(config.document);
  ordered_json record = {
      {"version", 1},
      {"program", PADDLE_VERSION},
      {"name", config.name},
      {"config", config.file},
      {"config_digest", crc32(std::as_bytes(std::span(resolved.data(), resolved.size())))},
      {"model_digest", model_digest},
      {"seed", config.seed},
      {"precision", precision_name(config)},
      {"deterministic", config.deterministic},
      {"mode", eager ? "eager" : "compiled"},
      {"device", config.compile.target.device.text()},
      {"threads", thread_count()},
      {"train", record_of(train)}};
  if (valid) record["valid"] = record_of(*valid);
  for (const plugin::Plugin* used : plugin::loaded())
    record["plugins"].push_back({{"name", used->provider.name},
                                 {"version", used->provider.version},
                                 {"path", used->path},
                                 {"sha256", used->sha256}});
  write_file_atomically(
      file, record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace paddle::train
