#pragma once
// Writes a checkpoint by several processes: one makes the files, and each puts in the parts of the
// tensors that it has, so no process has to hold whole ones. Writing needs neither the store nor
// the other processes and can happen while training continues.

#include <map>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "program/checkpoint.h"
#include "program/checkpoint_files.h"
#include "program/parameter_store.h"
#include "program/tensor_part.h"

namespace paddle::program {

class CheckpointWriter {
 public:
  /// The store says which tensors there are, with their whole shapes; values may be missing.
  /// `averages`: states whose values the file has in the place of those of parameters, and the
  /// other way round.
  CheckpointWriter(const std::string& folder, const ParameterStore& store,
                   CheckpointContent content, const std::map<std::string, std::string>& averages);
  /// Removes what `create` has made, unless it was finished.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Makes the folder and all files next to their final place; one process calls it, before the
  /// others write. kDevice with path and cause if there is not enough space or the disk rejects;
  /// what was there stays.
  void create();
  /// Takes the parts of this process; `copied` if the store changes before they are written.
  void take(const PartOf& part_of, bool copied);
  /// Where the files are until `finish`; others may be added there before it.
  const std::string& folder() const { return temporary_; }
  /// Keeps sizes and checksums of further files, by their names in the folder.
  void check_also(std::vector<std::string> files) { checked_also_ = std::move(files); }
  /// Writes what was taken.
  void write();
  /// Puts the checkpoint in its place and points `latest` at it; the process that made it calls
  /// this when all have written. The path of the checkpoint.
  std::string finish();

 private:
  struct Tensor {
    CheckpointTensor stored;
    TensorPart part;  ///< of this process, if it writes any
  };
  struct File {
    formats::SafetensorsParts parts;
    std::vector<Tensor> tensors;
  };
  static File file_of(const std::string& path, std::vector<CheckpointTensor> stored,
                      const ParameterStore& store);

  std::string folder_, temporary_;
  CheckpointContent content_;
  uint64_t seed_ = 0;
  std::map<std::string, Array> starts_;
  std::vector<File> files_;
  std::vector<std::string> checked_also_;
  bool created_ = false;
};

}  // namespace paddle::program
