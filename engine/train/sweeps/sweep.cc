#include "train/sweeps/sweep.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "config/overrides.h"
#include "data/sources/record_source.h"
#include "tensor/random.h"
#include "train/records/run_record.h"

namespace paddle::train {
namespace {

bool is_integer(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos;
}

/// The parts between commas that are outside of brackets, braces and quotes.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
  }
  return out;
}

}  // namespace

bool parse_number(const std::string& text, double& out) {
  try {
    size_t used = 0;
    out = std::stod(text, &used);
    return used == text.size() && std::isfinite(out);
  } catch (const std::exception&) {
    return false;
  }
}

SweptKey parse_swept(const std::string& text) {
  if (!config::is_override(text))
    fail(ErrorCode::kUsage, "'", text, "': expected key=value,value or key=low..high");
  const size_t equals = text.find('=');
  SweptKey out;
  out.key = text.substr(0, equals);
  const std::string values = text.substr(equals + 1);
  if (const size_t dots = values.find(".."); dots != std::string::npos) {
    const std::string low = values.substr(0, dots), high = values.substr(dots + 2);
    if (parse_number(low, out.low) && parse_number(high, out.high)) {
      if (!(out.low < out.high)) fail(ErrorCode::kUsage, text, ": the range ends before it begins");
      out.is_integer = is_integer(low) && is_integer(high);
      out.is_log = out.low > 0 && out.high >= 10 * out.low;
      return out;
    }
  }
  for (const std::string& value : split(values)) {
    if (value.empty()) fail(ErrorCode::kUsage, text, ": an empty value between commas");
    out.values.push_back(value);
  }
  return out;
}

std::vector<Trial> grid_trials(const std::vector<SweptKey>& keys) {
  constexpr size_t kMax = 10000;
  std::vector<Trial> out = {{}};
  for (const SweptKey& key : keys) {
    if (key.values.empty())
      fail(ErrorCode::kUsage, key.key, ": a range needs --random N; list values for a grid");
    std::vector<Trial> next;
    for (const Trial& trial : out)
      for (const std::string& value : key.values) {
        next.push_back(trial);
        next.back().push_back(key.key + "=" + value);
        if (next.size() > kMax) fail(ErrorCode::kUsage, "a grid of more than ", kMax, " trials");
      }
    out = std::move(next);
  }
  return out;
}

std::vector<Trial> random_trials(const std::vector<SweptKey>& keys, int64_t count, uint64_t seed) {
  std::vector<Trial> out;
  for (int64_t i = 0; i < count; ++i) {
    Trial trial;
    for (const SweptKey& key : keys) {
      const Random random(seed, stream_of(key.key));
      const auto at = static_cast<uint64_t>(i);
      if (!key.values.empty()) {
        trial.push_back(key.key + "=" + key.values[random.below(at, key.values.size())]);
        continue;
      }
      const double share = random.uniform(at);
      if (key.is_integer && !key.is_log) {
        const auto value =
            static_cast<int64_t>(std::floor(key.low + share * (key.high - key.low + 1)));
        trial.push_back(str(key.key, "=", value));
        continue;
      }
      const double value =
          key.is_log
              ? std::exp(std::log(key.low) + share * (std::log(key.high) - std::log(key.low)))
              : key.low + share * (key.high - key.low);
      const std::string text =
          key.is_integer ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
      trial.push_back(key.key + "=" + text);
    }
    out.push_back(std::move(trial));
  }
  return out;
}

std::vector<Rung> halving_rungs(size_t trials, int64_t factor) {
  if (factor < 2) fail(ErrorCode::kUsage, "successive halving needs a factor of at least 2");
  const auto by = static_cast<size_t>(factor);
  std::vector<Rung> out = {{1, trials}};
  while (out.back().trials >= by) out.push_back({1, out.back().trials / by});
  double share = 1;
  for (size_t i = out.size(); i-- > 0; share /= static_cast<double>(factor)) out[i].share = share;
  return out;
}

std::string trial_name(size_t index, const Trial& trial) {
  const std::string number = fmt::format("{:03}", index);
  std::string out = number;
  for (const std::string& each : trial) {
    const size_t equals = each.find('='), dot = each.rfind('.', equals);
    std::string part = "-" + each.substr(dot == std::string::npos ? 0 : dot + 1);
    for (char& c : part)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            std::string_view("-=._+").find(c) != std::string_view::npos))
        c = '_';
    out += part.substr(0, 24);
  }
  return out.substr(0, 120);
}

namespace {

namespace fs = std::filesystem;

/// Feeds what a config depends on into a checksum.
class DependencyDigest {
 public:
  uint32_t of(const config::Node& document) {
    add(config::dump_yaml(document));
    add_files(document, 0);
    return digest_;
  }

 private:
  static constexpr int kMaxNested = 8;                   ///< model files that include others
  static constexpr uint64_t kWhole = uint64_t{1} << 30;  ///< larger files count by parts and time

  void add(std::string_view bytes) {
    digest_ = crc32(std::as_bytes(std::span(bytes.data(), bytes.size())), digest_);
  }
  void add_time(const fs::path& path) {
    std::error_code ignored;
    add(std::to_string(fs::last_write_time(path, ignored).time_since_epoch().count()));
  }

  void add_files(const config::Node& node, int depth) {
    for (const config::Entry& e : node.entries) add_files(e.value, depth);
    for (const config::Node& item : node.items) add_files(item, depth);
    constexpr size_t kMaxPathLength = 4096;
    if (!node.is_scalar() || node.text.empty() || node.text.size() > kMaxPathLength ||
        node.text.find('\n') != std::string::npos || node.text.find('\0') != std::string::npos)
      return;
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (std::none_of(node.text.begin(), node.text.end(), is_word)) return;
    std::string path = config::resolve_path(node);
    if (const size_t variant = path.rfind(".yaml:"); variant != std::string::npos)
      path.resize(variant + 5);
    if (path.find_first_of("*?") != std::string::npos && path.find('/') != std::string::npos) {
      try {
        for (const std::string& each : data::expand_pattern(path)) add_path(each, depth);
      } catch (const Error&) {  // no file matches
      }
      return;
    }
    add_path(path, depth);
  }

  void add_path(const std::string& path, int depth) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return add_folder(path);
    if (!fs::is_regular_file(path, ignored) || !seen_.insert(path).second) return;
    add(path);
    const auto file = MappedFile::open(path);
    const auto bytes = file->bytes();
    add(std::to_string(bytes.size()));
    if (bytes.size() <= kWhole) {
      digest_ = crc32(bytes, digest_);
    } else {
      add(std::to_string(digest_of({path})));
      add_time(path);
    }
    if (!path.ends_with(".yaml") || depth == kMaxNested) return;
    try {
      config::Diagnostics diagnostics;
      add_files(config::read_document(path, diagnostics), depth + 1);
    } catch (const Error&) {  // its user reports what is wrong
    }
  }

  /// Names, sizes and times of all files below it.
  void add_folder(const std::string& path) {
    if (!seen_.insert(path).second) return;
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      if (it->is_regular_file(ignored)) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    add(path);
    for (const fs::path& file : files) {
      std::error_code ignored;
      add(str(file.lexically_relative(path).string(), ":",
              static_cast<int64_t>(fs::file_size(file, ignored))));
      add_time(file);
    }
  }

  uint32_t digest_ = 0;
  std::set<std::string> seen_;
};

}  // namespace

std::string trial_digest(const config::Node& document) {
  return str(PADDLE_VERSION, " ", DependencyDigest().of(document));
}

FolderLock::FolderLock(const std::string& folder, const std::string& what) {
  const std::string path = (fs::path(folder) / ".lock").string();
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    fail(ErrorCode::kDevice, "cannot write '", folder,
         "': ", std::generic_category().message(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    fail(ErrorCode::kUsage, folder, ": another ", what, " is running in this folder");
  }
}

FolderLock::~FolderLock() { ::close(file_); }

}  // namespace paddle::train
