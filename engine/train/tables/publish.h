#pragma once
// Versions of a model for serving, made of checkpoints: a folder with the function, the dense
// weights and the tables, whose rows are filtered, have no states and may have fewer bits.
//
//   store/CURRENT       the name of the version that is served
//   store/12000/        a model folder: module.txt, model.safetensors, tables/user/manifest.json
//   store/13000/        the next one; files of tables that it shares with the one before are links
//
// A version is whole when it has its name, and CURRENT is replaced last, so a store is whole at any
// moment.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace paddle::train {

struct TablePolicy;

/// The rows of tables that are published. Scores and days are those of the statistics of a row;
/// rows of tables without statistics are all published.
struct PublishRules {
  std::optional<double> base_score = {};   ///< least score of the rows of a base
  std::optional<double> delta_score = {};  ///< least score of the changed rows of a delta
  std::optional<int64_t> delta_days = {};  ///< days since the last use of such a row, at most
  DType dtype = DType::kF32;               ///< of rows: float32, float16, bfloat16 or int8
  int64_t keep = 16;                       ///< versions that stay in the store
};

struct PublishedVersion {
  std::string name;
  bool is_base = false;  ///< of all tables
  int64_t rows = 0;      ///< in the base, or changed ones in the delta
  int64_t removed = 0;
  uint64_t bytes = 0;  ///< of keys and rows
};

/// Publishes a checkpoint as the version with the number of its step, and makes it the current one.
/// Unless `whole`, tables are written as deltas to the current version where it has a table of
/// their form. A delta has the rows that differ from it, and removes those that the checkpoint
/// lacks. `policies` say how shows and clicks are counted. A version that is there already is not
/// written again; nullopt then. kModel for a damaged checkpoint or store.
std::optional<PublishedVersion> publish(const std::string& checkpoint, const std::string& store,
                                        bool whole, const PublishRules& rules,
                                        const std::vector<TablePolicy>& policies);

/// Writes a saved model, or the model of a checkpoint, as a model folder whose tables have rows of
/// another type. Gives the bytes of keys and rows before and after.
struct ServedBytes {
  uint64_t before = 0, after = 0;
};
ServedBytes write_served_model(const std::string& source, const std::string& folder, DType dtype);

}  // namespace paddle::train
