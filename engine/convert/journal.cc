#include "convert/journal.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "convert/source.h"

namespace paddle::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxJournal = 4096;

struct Content {
  std::string settings;
  size_t finished = 0;
};

std::optional<Content> content_of(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  const auto read = nlohmann::json::parse(read_file(path, kMaxJournal, ErrorCode::kModel), nullptr,
                                          /*allow_exceptions=*/false);
  if (!read.is_object() || !read.contains("settings") || !read["settings"].is_string() ||
      !read.contains("finished") || !read["finished"].is_number_unsigned())
    return std::nullopt;
  return Content{read["settings"], read["finished"]};
}

}  // namespace

std::string waiting_name(const std::string& shard) { return shard + ".partial"; }

std::string state_of_input(const std::string& path) {
  std::vector<std::string> files = {path};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    files.clear();
    for (const auto& entry : fs::directory_iterator(path, ignored))
      if (entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  } else if (path.ends_with(".index.json")) {
    const std::vector<std::string> shards = shard_files(path);
    files.insert(files.end(), shards.begin(), shards.end());
  }
  std::sort(files.begin(), files.end());
  std::string out;
  for (const std::string& file : files)
    out += str(file, " ", static_cast<int64_t>(fs::file_size(file, ignored)), " ",
               static_cast<int64_t>(fs::last_write_time(file, ignored).time_since_epoch().count()),
               "\n");
  return out;
}

Journal::Journal(std::string index, const std::string& settings)
    : path_(std::move(index) + ".partial") {
  Sha256 hash;
  hash.add(settings);
  settings_ = hash.finish_digits();
}

size_t Journal::finished(const std::vector<std::string>& shards) const {
  const auto content = content_of(path_);
  if (!content || content->settings != settings_) return 0;
  size_t out = 0;
  while (out < std::min(content->finished, shards.size()) && file_exists(waiting_name(shards[out])))
    ++out;
  return out;
}

bool Journal::is_of_other_settings() const {
  const auto content = content_of(path_);
  return content && content->settings != settings_;
}

void Journal::write(size_t finished) const {
  write_file_atomically(
      path_, nlohmann::json{{"settings", settings_}, {"finished", finished}}.dump() + "\n");
}

void Journal::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace paddle::convert
