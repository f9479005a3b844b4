#include "convert/signature.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/crypto.h"
#include "base/files.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paddle::convert {
namespace {

using nlohmann::json;

constexpr size_t kMaxFiles = 100'000, kSignatureBytes = 64;
constexpr uint64_t kMaxKeyBytes = 64 << 10, kMaxJsonBytes = 64 << 20;
constexpr const char* kFolderSignature = "signature.json";

using Hashes = std::map<std::string, std::string>;  // by path, relative to the model

Hashes hashes_of(const std::string& model) {
  Hashes out;
  if (!is_directory(model)) {
    out[std::filesystem::path(model).filename().string()] = sha256_of_file(model);
    return out;
  }
  for (const std::string& name : files_in(model))
    if (name != kFolderSignature) out[name] = sha256_of_file(join_path(model, name));
  return out;
}

/// The signed text: JSON with sorted keys and without spaces.
std::string message_of(const Hashes& hashes) {
  return json({{"version", 1}, {"files", hashes}})
      .dump(-1, ' ', true, json::error_handler_t::replace);
}

void check_there(const std::string& model) {
  if (!file_exists(model)) fail(ErrorCode::kUsage, model, ": no such file or folder");
}

struct Signature {
  Hashes hashes;
  std::array<uint8_t, kSignatureBytes> bytes{};
};

std::optional<Signature> parse(const std::string& text) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object() || root.value("version", json()) != 1 || !root.contains("files") ||
      !root["files"].is_object() || !root.contains("signature") || !root["signature"].is_string())
    return std::nullopt;
  Signature out;
  for (const auto& [name, hash] : root["files"].items()) {
    if (!hash.is_string()) return std::nullopt;
    out.hashes[name] = hash.get<std::string>();
  }
  if (!read_hex_digits(root["signature"].get<std::string>(),
                       std::as_writable_bytes(std::span(out.bytes))))
    return std::nullopt;
  return out;
}

/// The first differences, as a clause of a message; "" if there are none.
std::string differences(const Hashes& signed_hashes, const Hashes& found) {
  std::vector<std::string> all;
  for (const auto& [name, hash] : signed_hashes) {
    const auto it = found.find(name);
    if (it == found.end())
      all.push_back(name + " is missing");
    else if (it->second != hash)
      all.push_back(name + " was changed");
  }
  for (const auto& [name, hash] : found)
    if (!signed_hashes.count(name)) all.push_back(name + " was added");
  constexpr size_t kShown = 5;
  const size_t more = all.size() > kShown ? all.size() - kShown : 0;
  all.resize(all.size() - more);
  return join(all, ", ") + (more > 0 ? str(", and ", more, " more") : "");
}

}  // namespace

std::vector<std::string> files_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::error_code problem;
  fs::recursive_directory_iterator each(folder, problem), end;
  while (!problem && each != end) {
    if (each->is_regular_file(problem))
      out.push_back(each->path().lexically_relative(folder).string());
    else if (!problem && !each->is_directory(problem) && !problem)
      fail(ErrorCode::kModel, each->path().string(), ": is neither a file nor a folder");
    if (out.size() > kMaxFiles)
      fail(ErrorCode::kModel, folder, ": has more than ", kMaxFiles, " files");
    if (!problem) each.increment(problem);
  }
  if (problem)
    fail(ErrorCode::kModel, "cannot list the folder '", folder, "': ", problem.message());
  std::sort(out.begin(), out.end());
  return out;
}

std::string signature_path(const std::string& model) {
  return is_directory(model) ? join_path(model, kFolderSignature) : model + ".signature.json";
}

size_t sign_model(const std::string& model, const std::string& private_key) {
  check_there(model);
  const Hashes hashes = hashes_of(model);
  const std::string message = message_of(hashes);
  const std::string key = read_file(private_key, kMaxKeyBytes, ErrorCode::kUsage);
  std::array<uint8_t, kSignatureBytes> signature{};
  if (crypto_function<paddle_ed25519_sign_t>("paddle_ed25519_sign")(
          key.data(), key.size(), reinterpret_cast<const uint8_t*>(message.data()), message.size(),
          signature.data()) != 1)
    fail(ErrorCode::kUsage, private_key,
         ": is not a private key of Ed25519 without a passphrase, in PEM (openssl genpkey "
         "-algorithm ed25519)");
  nlohmann::ordered_json out = {{"version", 1},
                                {"files", hashes},
                                {"signature", hex_digits(std::as_bytes(std::span(signature)))}};
  write_file_atomically(signature_path(model),
                        out.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  return hashes.size();
}

size_t verify_model(const std::string& model, const std::string& public_key) {
  check_there(model);
  const std::string path = signature_path(model);
  if (!file_exists(path)) fail(ErrorCode::kModel, model, ": has no signature (", path, ")");
  const auto signature = parse(read_file(path, kMaxJsonBytes, ErrorCode::kModel));
  if (!signature) fail(ErrorCode::kModel, path, ": is not a signature of version 1");
  const std::string message = message_of(signature->hashes);
  const std::string key = read_file(public_key, kMaxKeyBytes, ErrorCode::kUsage);
  const int verified = crypto_function<paddle_ed25519_verify_t>("paddle_ed25519_verify")(
      key.data(), key.size(), reinterpret_cast<const uint8_t*>(message.data()), message.size(),
      signature->bytes.data());
  if (verified < 0)
    fail(ErrorCode::kUsage, public_key,
         ": is not a public key of Ed25519 in PEM (openssl pkey "
         "-pubout)");
  if (verified == 0) fail(ErrorCode::kModel, path, ": is not signed with this key");
  const Hashes found = hashes_of(model);
  if (const std::string what = differences(signature->hashes, found); !what.empty())
    fail(ErrorCode::kModel, model, ": is not what was signed: ", what);
  return found.size();
}

}  // namespace paddle::convert
