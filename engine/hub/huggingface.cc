#include "hub/huggingface.h"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "hub/http.h"

namespace paddle::hub {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxList = uint64_t{64} << 20;
constexpr size_t kMaxFiles = 100'000;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), is_plain);
}

/// Percent-encodes all but slashes and plain characters.
std::string encoded(const std::string& path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    if (is_plain(c) || c == '/' || c == '~') {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

/// Whether a path stays in the folder that it is relative to.
bool is_inside(const std::string& path) {
  if (path.empty() || path.size() > 1024 || path.starts_with('/')) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 32 || c == '\\' || c == 127) return false;
  for (const std::string& part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

std::vector<std::string> token_header() {
  const char* const token = std::getenv("HF_TOKEN");
  if (!token || !*token) return {};
  const std::string text = token;
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < 33 || c > 126; }))
    fail(ErrorCode::kUsage, "HF_TOKEN: has characters that a token cannot have");
  return {"Authorization: Bearer " + text};
}

HubFile file_of(const json& entry, const std::string& address) {
  const auto text = [](const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  };
  HubFile out;
  if (entry.is_object()) out.path = text(entry, "rfilename");
  if (!is_inside(out.path))
    fail(ErrorCode::kData, address, ": names a file '", printable(out.path),
         "' outside of the repository");
  if (const auto size = entry.find("size"); size != entry.end() && size->is_number_unsigned())
    out.size = size->get<uint64_t>();
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object())
    if (const std::string hash = text(*lfs, "sha256");
        hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos)
      out.sha256 = hash;
  return out;
}

bool is_of_model(const std::string& path) {
  if (path.find('/') != std::string::npos) return path.ends_with("/config.json");
  constexpr const char* kEndings[] = {".json", ".txt", ".model", ".jinja", ".safetensors"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* ending) { return path.ends_with(ending); });
}

}  // namespace

Repository parse_repository(const std::string& text) {
  Repository out;
  std::string rest = text.starts_with("hf:") ? text.substr(3) : text;
  if (rest.starts_with("datasets/")) {
    out.is_dataset = true;
    rest = rest.substr(9);
  }
  if (const size_t at = rest.find('@'); at != std::string::npos) {
    out.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  const size_t slash = rest.find('/');
  out.name = rest;
  if (slash == std::string::npos || !is_name(rest.substr(0, slash)) ||
      !is_name(rest.substr(slash + 1)) || !is_inside(out.revision))
    fail(ErrorCode::kUsage, "'", text, "': expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION");
  return out;
}

std::string hub_address() {
  const char* const stated = std::getenv("PADDLE_HUB");
  std::string out = stated && *stated ? stated : "https://huggingface.co";
  if (!out.starts_with("https://") && !out.starts_with("http://"))
    fail(ErrorCode::kUsage, "PADDLE_HUB is '", out, "', expected the address of a hub: https://…");
  while (out.ends_with('/')) out.pop_back();
  return out;
}

std::vector<HubFile> list_files(const Repository& repository) {
  const std::string address =
      str(hub_address(), "/api/", repository.is_dataset ? "datasets/" : "models/", repository.name,
          "/revision/", encoded(repository.revision), "?blobs=true");
  const json answer =
      json::parse(http_text({address, token_header()}, kMaxList), nullptr, /*throws=*/false);
  const auto list = answer.is_object() ? answer.find("siblings") : answer.end();
  if (!answer.is_object() || list == answer.end() || !list->is_array())
    fail(ErrorCode::kData, address, ": the response is not a list of files");
  if (list->size() > kMaxFiles)
    fail(ErrorCode::kData, address, ": lists more than ", kMaxFiles, " files");
  std::vector<HubFile> out;
  for (const json& entry : *list) out.push_back(file_of(entry, address));
  return out;
}

std::vector<HubFile> choose_files(const Repository& repository, const std::vector<HubFile>& files,
                                  const std::vector<std::string>& patterns) {
  std::vector<HubFile> out;
  std::vector<std::string> names;
  for (const HubFile& file : files) {
    names.push_back(file.path);
    const bool wanted = patterns.empty() ? repository.is_dataset || is_of_model(file.path)
                                         : std::any_of(patterns.begin(), patterns.end(),
                                                       [&](const std::string& pattern) {
                                                         return matches_pattern(pattern, file.path);
                                                       });
    if (wanted) out.push_back(file);
  }
  if (!patterns.empty()) {
    for (const std::string& pattern : patterns)
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return matches_pattern(pattern, name); }))
        fail(ErrorCode::kUsage, "--only: '", pattern, "' matches no file of ", repository.name,
             did_you_mean(pattern, names));
    return out;
  }
  const auto ends = [](const char* ending) {
    return [=](const HubFile& file) { return file.path.ends_with(ending); };
  };
  if (repository.is_dataset || std::any_of(out.begin(), out.end(), ends(".safetensors")))
    return out;
  std::vector<HubFile> gguf;
  std::copy_if(files.begin(), files.end(), std::back_inserter(gguf), ends(".gguf"));
  if (gguf.size() == 1) return gguf;
  if (gguf.size() > 1) {
    std::vector<std::string> choices;
    for (const HubFile& file : gguf) choices.push_back(file.path);
    fail(ErrorCode::kUsage, repository.name, ": has ", gguf.size(),
         " GGUF files; choose with --only: ", join(choices, ", "));
  }
  // Older repositories have the weights in PyTorch's format only.
  std::copy_if(files.begin(), files.end(), std::back_inserter(out), [](const HubFile& file) {
    return file.path.find('/') == std::string::npos && file.path.starts_with("pytorch_model") &&
           file.path.ends_with(".bin");
  });
  if (out.empty())
    fail(ErrorCode::kUsage, repository.name, ": has no files of a model; see --only");
  return out;
}

Download download_of(const Repository& repository, const HubFile& file, const std::string& folder) {
  return {.url = str(hub_address(), repository.is_dataset ? "/datasets/" : "/", repository.name,
                     "/resolve/", encoded(repository.revision), "/", encoded(file.path)),
          .file = join_path(folder, file.path),
          .size = file.size,
          .sha256 = file.sha256,
          .headers = token_header()};
}

}  // namespace paddle::hub
