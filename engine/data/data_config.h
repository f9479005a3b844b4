#pragma once
// The `data:` section of a config: datasets for training and validation, transforms, batching and
// the loader, turned into the data room's options.

#include <optional>

#include "config/schema.h"
#include "data/loader.h"
#include "data/loading/sampler.h"
#include "data/options.h"
#include "data/passes.h"

namespace paddle::data {

struct DataConfig {
  DatasetOptions train;
  std::optional<DatasetOptions> valid;
  std::optional<DatasetOptions> test;     ///< evaluated once, at the end
  std::optional<SamplerOptions> sampler;  ///< of training
  std::optional<ClassWeightOptions> class_weights;
  std::optional<PassOptions> passes;  ///< the files of `train` change from pass to pass
  /// For training; batch_size is the global batch, the seed is the run's.
  LoaderOptions loader;
  double check_seconds = 1;  ///< of looking at samples before the first step (data/scan.h)
  /// For validation: no shuffling, no random transforms, short last batch kept.
  LoaderOptions valid_loader;
  /// Whether the model takes `segments`, by which it keeps documents of one sample apart.
  bool takes_segments = false;
  /// Whether samples that two parts share deserve a warning; not where a trained model is
  /// evaluated.
  bool warns_of_overlap = true;
};

config::Schema data_schema();
/// Registers the section (config/sections.h).
void register_section();
/// Replaces the paths of a `data:` section by absolute ones, so that the resolved config means the
/// same wherever it is read.
void make_data_paths_absolute(config::Node& section, config::Diagnostics& diagnostics);
/// The `data:` section of a whole config, which need not be valid otherwise; paths must be absolute
/// or are resolved relative to the file that states them. kConfig if there is none.
DataConfig read_data_section(config::Node document);
/// The same of a config file, with what it extends.
DataConfig read_config_data(const std::string& path);
/// "CONFIG.yaml[:part]", or only the name of a part, of the run's own config (`file` is "" then).
struct DataName {
  std::string file, part = "valid";
};
DataName parse_data_name(const std::string& text, const std::vector<std::string>& parts);
/// Paths are resolved relative to the file that states them; a path below `$PADDLE_TEST_DATA` or
/// `../shared/data` may be written as `data://mnist/…`.
DataConfig read_data(const config::Section& section, uint64_t seed,
                     config::Diagnostics& diagnostics);

}  // namespace paddle::data
