#include "train/runs/find_nonfinite.h"

#include <utility>

#include "base/files.h"
#include "train/runs/run_folder.h"

namespace paddle::train {

NonFiniteSearch find_nonfinite(const std::string& run, RunConfig config, int64_t last_step,
                               double max_seconds, const TrainOptions& given,
                               TrainObserver& observer) {
  if (config.parallel.ranks() > 1)
    fail(ErrorCode::kUsage, "the search for values that are not finite needs a run of one rank; ",
         run, " has ", config.parallel.ranks());
  TrainOptions options;
  options.output = run;
  options.initial_weights = given.initial_weights;
  options.allow_missing = given.allow_missing;
  options.allow_unused = given.allow_unused;
  const RunFolder folder(run);
  const std::vector<int64_t> checkpoints = program::list_checkpoints(folder.checkpoints());
  std::string checkpoint;
  if (!checkpoints.empty())
    checkpoint = join_path(folder.checkpoints(), std::to_string(checkpoints.back()));
  options.fitted = fitted_of_checkpoint(checkpoint);
  Trainer trainer(std::move(config), options, observer);
  trainer.prepare().require_fit();
  return trainer.find_nonfinite(checkpoint, last_step, max_seconds);
}

std::string text(const NonFiniteOrigin& o) {
  const auto named = [](const std::string& operation, const std::string& place) {
    return str("'", operation, "'", place.empty() ? "" : " at " + place);
  };
  const bool is_nan = o.count.nan > 0;
  std::string out =
      str(named(o.operation, o.location), " gave the first ", is_nan ? "NaN" : "infinity", " (",
          is_nan ? o.count.nan : o.count.infinite, " of ", o.count.elements,
          o.count.elements == 1 ? " element)" : " elements)");
  if (!o.seen_in.empty()) out += ", which " + named(o.seen_in, o.seen_at) + " turned into NaN";
  return out;
}

}  // namespace paddle::train
