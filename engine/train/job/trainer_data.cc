// The data of a run: its loaders, and what is found in the samples before the first step.

#include <algorithm>
#include <chrono>

#include "base/phase.h"
#include "data/open_data.h"
#include "data/scan.h"
#include "train/job/trainer_impl.h"
#include "train/session/batch_sizes.h"

namespace paddle::train {
namespace {

/// Images whose size the data does not declare must come in the size that the model takes.
void check_image_sizes(const lang::Program& program, const data::Loader& loader) {
  const std::vector<Dims> shapes = loader.sample_shapes();
  for (const auto& [name, type] : lang::input_types(program, program.model)) {
    const int64_t field = loader.dataset().find_field(name);
    if (field < 0 || !type.ranked) continue;
    const Dims& declared = loader.fields()[static_cast<size_t>(field)].shape;
    const Dims& sample = shapes[static_cast<size_t>(field)];
    if (declared == sample || type.shape.size() != sample.size() + 1) continue;
    for (size_t d = 0; d < sample.size(); ++d)
      if (const auto size = type.shape[d + 1].constant(); size && *size != sample[d])
        fail(ErrorCode::kData, loader.dataset().location(0), ": '", name, "' has shape ",
             str(sample), " after the transforms, the model takes ", type,
             "; add a transform, such as resize, or declare another input");
  }
}

/// The time in `seconds` from now; the latest time there is for more than a year.
Clock::time_point after(double seconds) {
  constexpr double kYear = 365.0 * 24 * 3600;
  if (!(seconds < kYear)) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string text_of(const LongLabels& found) {
  const std::string repeated =
      found.repeated > 0 ? str(", ", found.repeated, " of them equal to the one before,") : "";
  return str("ctc_loss: ", found.labels, " labels", repeated, " need ",
             found.labels + found.repeated, " steps of the output, it has ", found.steps);
}

}  // namespace

void Trainer::Impl::open_loaders() {
  const Phase phase("opening the data");
  if (options_.benchmark) {
    config_.data.valid.reset();
    config_.data.test.reset();
  }
  data::OpenData opened = data::open_data(config_.document, config_.data);
  loader_ = std::move(opened.train_loader);
  valid_loader_ = std::move(opened.valid_loader);
  test_loader_ = std::move(opened.test_loader);
  for (const std::string& line : opened.warnings) observer_.warn(line);
  for (const program::NamedModel& model : config_.models)
    for (const data::Loader* loader : {loader_.get(), valid_loader_.get(), test_loader_.get()})
      if (loader) check_image_sizes(*model.program, *loader);
}

data::Loader::BatchCheck Trainer::Impl::watch_alignments() {
  if (!session_->analysis().aligns_labels()) return {};
  const data::Loader::BatchCheck check = [this](const data::Batch& batch) {
    std::vector<data::Loader::BadRow> out;
    // A model that states its batch is computed for as many rows at a time; others are left out.
    const int64_t rows = session_->analysis().stated_batch().value_or(batch.samples);
    for (int64_t begin = 0; begin + rows <= batch.samples; begin += rows)
      for (const LongLabels& each :
           session_->long_labels(rows_of(batch.arrays, begin, begin + rows)))
        out.push_back({begin + each.row, text_of(each)});
    return out;
  };
  for (data::Loader* loader : {loader_.get(), valid_loader_.get(), test_loader_.get()})
    if (loader) loader->check_batches(check);
  return check;
}

void Trainer::Impl::scan_data() {
  const data::Loader::BatchCheck check = watch_alignments();
  if (config_.data.check_seconds <= 0 || !communicator_->is_root()) return;
  const Phase phase("checking the data");
  struct Part {
    const char* name;
    data::Loader* loader;
    const data::LoaderOptions* options;
    double share;  ///< of the time
  };
  std::vector<Part> parts = {{"train", loader_.get(), &config_.data.loader, 6},
                             {"valid", valid_loader_.get(), &config_.data.valid_loader, 2},
                             {"test", test_loader_.get(), &config_.data.valid_loader, 2}};
  // Samples that are drawn have no faults of files.
  std::erase_if(parts, [](const Part& part) {
    return !part.loader || part.loader->dataset().paths().empty();
  });
  std::vector<std::string> extents;
  double left = config_.data.check_seconds, shares = 0;
  for (const Part& part : parts) shares += part.share;
  for (const Part& part : parts) {
    const auto begun = Clock::now();
    const double seconds = left * part.share / shares;
    data::ScanOptions options;
    options.check_until = after(seconds / 2);
    options.read_until = after(seconds);
    options.ranges = use_.ranges;
    options.batch_check = check;
    options.group =
        std::max<int64_t>(1, part.loader == loader_.get()
                                 ? largest_micro_batch(part.options->batch_size, config_.accumulate)
                                 : part.options->batch_size);
    options.whole_groups = session_->analysis().stated_batch().has_value();
    options.skips = part.options->on_bad_sample == data::BadSamplePolicy::kSkip;
    const data::Dataset& dataset = part.loader->dataset();
    for (const data::ValueRange& range : use_.ranges) {
      const std::vector<std::string> fields = data::class_fields_of(dataset, {});
      if (std::find(fields.begin(), fields.end(), range.field) != fields.end())
        options.class_fields.push_back(range.field);
    }
    data::ScanResult result = data::scan_samples(*part.loader, options);
    for (const std::string& line : data::check_bad_samples(result, *part.options, part.name))
      observer_.warn(line);
    // Only what is trained on must have all classes, and ids of inputs may skip numbers.
    std::erase_if(result.classes, [&](const auto& each) {
      return part.loader != loader_.get() || each.first != use_.label;
    });
    for (const std::string& line :
         data::check_contents(result, dataset, true, use_.ignored, part.name))
      observer_.warn(line);
    extents.push_back(str("data.", part.name, ": ", result.extent()));
    left = std::max(0.0, left - seconds_since(begun));
    shares -= part.share;
  }
  if (!extents.empty()) observer_.note(join(extents, "; "));
}

}  // namespace paddle::train
