#include "train/runs/check_numerics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/files.h"
#include "base/source_location.h"
#include "train/runs/run_folder.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

/// Adds values to the rows of their layers.
class LayerTable {
 public:
  explicit LayerTable(std::vector<LayerNumerics>& layers) : layers_(layers) {}

  void add(const ReplayedValue& value) {
    const Origin origin = parse_origin(value.location);
    const std::string& layer = origin.layer.empty() ? origin.place : origin.layer;
    const auto [row, fresh] = rows_.emplace(std::pair(layer, origin.gradient), layers_.size());
    if (fresh) layers_.push_back({layer, origin.gradient, 0, {}, value.operation});
    LayerNumerics& to = layers_[row->second];
    const infer::Numerics found = infer::count_numerics(value.whole);
    ++to.values;
    to.numerics.elements += found.elements;
    to.numerics.nan += found.nan;
    to.numerics.infinite += found.infinite;
    to.numerics.zeros += found.zeros;
    if (found.largest > to.numerics.largest) {
      to.numerics.largest = found.largest;
      to.largest_in = value.operation;
    }
  }

 private:
  std::vector<LayerNumerics>& layers_;
  std::map<std::pair<std::string, bool>, size_t> rows_;
};

}  // namespace

StepNumerics check_numerics(const std::string& run, RunConfig config, const TrainOptions& given,
                            TrainObserver& observer) {
  if (config.parallel.ranks() > 1)
    fail(ErrorCode::kUsage, "--check-numerics computes on one rank; the config has ",
         config.parallel.ranks());
  TrainOptions options;
  options.output = run;
  options.initial_weights = given.initial_weights;
  options.allow_missing = given.allow_missing;
  options.allow_unused = given.allow_unused;
  std::string checkpoint;
  if (!run.empty()) {
    const RunFolder folder(run);
    const auto checkpoints = program::list_checkpoints(folder.checkpoints());
    if (!checkpoints.empty())
      checkpoint = join_path(folder.checkpoints(), std::to_string(checkpoints.back()));
    options.fitted = fitted_of_checkpoint(checkpoint);
  }
  Trainer trainer(std::move(config), options, observer);
  trainer.prepare().require_fit();
  StepNumerics out;
  LayerTable table(out.layers);
  out.step = trainer.replay(checkpoint, [&](const ReplayedValue& value) { table.add(value); });
  return out;
}

}  // namespace paddle::train
