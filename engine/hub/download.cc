#include "hub/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "hub/http.h"

namespace paddle::hub {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 6;

std::string lower_hex(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool has_hash(const std::string& digits, const std::string& wanted) {
  return !wanted.empty() && digits.starts_with(lower_hex(wanted));
}

/// A file that grows at its end and stays when its writer is gone.
class PartFile {
 public:
  PartFile(std::string path, bool keep) : path_(std::move(path)) {
    descriptor_ =
        ::open(path_.c_str(),
               O_WRONLY | O_CREAT | O_APPEND | (keep ? 0 : O_TRUNC) | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) fail_write();
    size_ = file_size(path_, ErrorCode::kDevice);
    if (size_ > 0) hash_.add_file(path_);
  }
  ~PartFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  uint64_t size() const { return size_; }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) fail_write();
      size_ += static_cast<uint64_t>(put);
      hash_.add(bytes.substr(0, static_cast<size_t>(put)));
      bytes.remove_prefix(static_cast<size_t>(put));
    }
  }
  void clear() {
    if (::ftruncate(descriptor_, 0) != 0) fail_write();
    size_ = 0;
    hash_ = {};
  }
  /// Brings the file to the disk and returns its SHA-256; nothing may be written after it.
  std::string finish() {
    if (::fsync(descriptor_) != 0) fail_write();
    return hash_.finish_digits();
  }

 private:
  [[noreturn]] void fail_write() const {
    fail(ErrorCode::kDevice, "cannot write '", path_, "': ", std::strerror(errno));
  }
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  Sha256 hash_;  ///< of what the file has
};

/// The file that is there already, if it is the one that is wanted.
std::optional<Downloaded> find_present(const Download& what) {
  if (is_directory(what.file)) fail(ErrorCode::kUsage, what.file, ": is a folder");
  if (!file_exists(what.file) || what.overwrite) return std::nullopt;
  const uint64_t bytes = file_size(what.file);
  const bool fits = !what.size || *what.size == bytes;
  if (fits && !what.sha256.empty()) {
    const std::string digits = sha256_of_file(what.file);
    if (has_hash(digits, what.sha256)) return Downloaded{bytes, digits, true, true};
  } else if (fits && what.size) {
    return Downloaded{bytes, sha256_of_file(what.file), false, true};
  }
  fail(ErrorCode::kUsage, what.file, ": already exists",
       what.size || !what.sha256.empty() ? " with different contents" : "",
       " (--overwrite replaces it)");
}

/// One request for what is missing. True at the end of the file.
bool fetch_rest(const Download& what, PartFile& part, const DownloadProgress& progress,
                std::string& problem, bool& interrupted) {
  std::optional<uint64_t> total = what.size;
  int status_error = 0;
  const uint64_t from = part.size();
  const auto reply = http_get(
      {what.url, what.headers, from},
      {.begin =
           [&](int status, std::optional<uint64_t> length) {
             if (status != 200 && status != 206) {
               status_error = status;
               return false;
             }
             if (status == 200 && from > 0) part.clear();
             if (length && !total) total = part.size() + *length;
             if (length && total && part.size() + *length != *total)
               fail(ErrorCode::kData, what.url, ": has ", part.size() + *length,
                    " bytes, expected ", *total);
             if (const uint64_t missing = total ? *total - std::min(*total, part.size()) : 0;
                 missing > free_space(what.file))
               fail(ErrorCode::kDevice, "cannot write '", what.file, "': it needs ",
                    human_bytes(missing), ", the disk has ", human_bytes(free_space(what.file)),
                    " left");
             return true;
           },
       .body =
           [&](std::string_view bytes) {
             if (total && part.size() + bytes.size() > *total)
               fail(ErrorCode::kData, what.url, ": has more than ", *total, " bytes");
             part.write(bytes);
             return true;
           },
       .proceed =
           [&] {
             interrupted = !progress(part.size(), total);
             return !interrupted;
           }});
  if (status_error == 416) {  // there is nothing after what is here
    part.clear();
    problem = "the server does not have this range of the file";
    return false;
  }
  if (status_error >= 500 || status_error == 429) {
    problem = str("the server answers with status ", status_error);
    return false;
  }
  if (status_error != 0)
    fail(ErrorCode::kData, what.url, ": the server answers with status ", status_error,
         status_error == 404 ? ", no such file"
         : status_error == 401 || status_error == 403
             ? ", which means that a token is needed (HF_TOKEN)"
             : "");
  if (reply.end == HttpReply::End::kWholeOnly) part.clear();
  problem = reply.problem;
  if (reply.end != HttpReply::End::kDone) return false;
  if (total && part.size() < *total) {
    problem = "the connection ended early";
    return false;
  }
  return true;
}

}  // namespace

Downloaded download(const Download& what, const DownloadProgress& progress) {
  if (auto present = find_present(what)) return *present;
  if (const std::string folder = fs::path(what.file).parent_path().string(); !folder.empty())
    ensure_directory(folder);
  const std::string path = what.file + ".part";
  const bool is_known = what.size || !what.sha256.empty();
  Downloaded out;
  {
    PartFile part(path, is_known);
    if (what.size && part.size() > *what.size) part.clear();
    std::string problem;
    bool done = what.size && part.size() == *what.size;
    for (int attempt = 0; !done; ++attempt) {
      const uint64_t before = part.size();
      done = fetch_rest(what, part, progress, problem, out.interrupted);
      out.bytes = part.size();
      if (out.interrupted) return out;
      if (part.size() > before) attempt = 0;  // the download advances
      if (!done && attempt + 1 >= kAttempts)
        fail(ErrorCode::kDevice, what.url, ": the download was interrupted: ", problem,
             "; the same command continues it");
      for (int i = 0; !done && i < (1 << attempt) * 5; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (progress(part.size(), what.size)) continue;
        out.interrupted = true;
        return out;
      }
    }
    out.sha256 = part.finish();
    out.bytes = part.size();
  }
  if (!what.sha256.empty() && !has_hash(out.sha256, what.sha256)) {
    std::error_code ignored;
    fs::remove(path, ignored);
    fail(ErrorCode::kData, what.url, ": the file has the SHA-256 ", out.sha256, ", expected ",
         what.sha256, what.sha256.size() < 64 ? "…" : "", "; it was removed");
  }
  out.verified = !what.sha256.empty();
  std::error_code error;
  fs::rename(path, what.file, error);
  if (error) fail(ErrorCode::kDevice, what.file, ": ", error.message());
  if (const std::string folder = fs::path(what.file).parent_path().string(); !folder.empty())
    sync_directory(folder);
  return out;
}

}  // namespace paddle::hub
