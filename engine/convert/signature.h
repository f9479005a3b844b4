#pragma once
// Signatures of models: the SHA-256 of all files of a model, signed with Ed25519. The signature of
// a folder is its file signature.json, that of a file FILE.signature.json.

#include <string>
#include <vector>

namespace paddle::convert {

/// Paths of the files in a folder and its subfolders, relative to it, sorted. kModel for
/// sockets, pipes and devices, and for more than 100,000 files.
std::vector<std::string> files_in(const std::string& folder);

/// Where the signature of a model is.
std::string signature_path(const std::string& model);

/// Signs a file or a folder with a private key (PEM) and writes the signature; the number of files.
/// kUsage for a key that is not a private one of Ed25519.
size_t sign_model(const std::string& model, const std::string& private_key);

/// The number of files that a signature covers. kModel if it is missing, damaged or of another key,
/// or if files were changed, added or removed; kUsage for a key that is not a public one of
/// Ed25519.
size_t verify_model(const std::string& model, const std::string& public_key);

}  // namespace paddle::convert
