#pragma once
// Where tensors go: files that appear whole when all tensors are there, in the order that the
// format asks for.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convert/format.h"
#include "convert/journal.h"
#include "convert/source.h"

namespace paddle::convert {

/// Whether a format has this type.
bool can_hold(Format format, DType dtype);
/// The smallest type of the format that holds every value of `dtype`; `dtype` itself if there is
/// none.
DType wider_type(Format format, DType dtype);

class Target {
 public:
  virtual ~Target() = default;
  /// Positions in the list of tensors, in the order in which they must come; without those of
  /// finished shards.
  virtual const std::vector<size_t>& order() const = 0;
  virtual void add(const StoredTensor& tensor, const Array& array) = 0;
  /// The files appear.
  virtual void close() = 0;
};

struct TargetOptions {
  std::string path;
  Format format = Format::kSafetensors;
  uint64_t shard_bytes = 0;
  std::map<std::string, std::string> metadata;
  const Journal* journal = nullptr;  ///< of shards
  size_t finished = 0;               ///< shards that an interrupted conversion has finished
};

/// The files that writing these tensors will make.
std::vector<std::string> target_files(const TargetOptions& options,
                                      const std::vector<StoredTensor>& tensors);
/// kModel if the tensors are not those that the model of this folder needs.
void check_folder(const std::string& folder, const std::vector<StoredTensor>& tensors);
/// Opens the files for these tensors. kDevice if that cannot be.
std::unique_ptr<Target> open_target(const TargetOptions& options,
                                    const std::vector<StoredTensor>& tensors);

}  // namespace paddle::convert
