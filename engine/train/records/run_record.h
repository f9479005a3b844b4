#pragma once
// The record of a run, `run.json` in its folder: what ran (version, config, threads), on which data
// (files with sizes and digests), so that a result can be traced back and repeated.

#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/config/run_config.h"

namespace paddle::train {

/// A checksum of each file's size and content (its first and last MiB for large ones).
uint32_t digest_of(const std::vector<std::string>& files);

void write_run_record(const std::string& file, const RunConfig& config, bool eager,
                      const data::Dataset& train, const data::Dataset* valid,
                      uint32_t model_digest);

/// Differences to the record of a run that is resumed.
struct RecordChanges {
  std::vector<std::string> train, valid;  ///< a line for each changed file of the data
  bool model = false;                     ///< the model or the loss computes something else
};
/// Compares with a record that `write_run_record` wrote; nothing has changed if there is none. The
/// model is not compared if another version of the program wrote the record.
RecordChanges changes_since(const std::string& file, const data::Dataset& train,
                            const data::Dataset* valid, uint32_t model_digest);

}  // namespace paddle::train
