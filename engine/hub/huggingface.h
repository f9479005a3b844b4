#pragma once
// Repositories of models and data sets on huggingface.co, or on a mirror with the same interface.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/download.h"

namespace paddle::hub {

/// "hf:OWNER/NAME", "hf:OWNER/NAME@REVISION", "hf:datasets/OWNER/NAME".
struct Repository {
  bool is_dataset = false;
  std::string name;  ///< "OWNER/NAME"
  std::string revision = "main";
};
/// kUsage for anything else.
Repository parse_repository(const std::string& text);

struct HubFile {
  std::string path;  ///< in the repository: relative, without ".."
  std::optional<uint64_t> size;
  std::string sha256;  ///< "" where the hub does not state it
};

/// Where the hub is: $PADDLE_HUB, or https://huggingface.co.
std::string hub_address();

/// The files of a repository. kData for an answer that is none, and for paths that would leave the
/// folder of the download.
std::vector<HubFile> list_files(const Repository& repository);
/// Of these the files that fit one of the patterns; without patterns what a model needs: configs,
/// tokenizers and safetensors, or all files of a data set. kUsage if nothing fits, and where
/// several GGUF files are the only weights.
std::vector<HubFile> choose_files(const Repository& repository, const std::vector<HubFile>& files,
                                  const std::vector<std::string>& patterns);
/// The download of a file into `folder`. $HF_TOKEN is sent to the hub.
Download download_of(const Repository& repository, const HubFile& file, const std::string& folder);

}  // namespace paddle::hub
