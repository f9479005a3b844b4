#pragma once
// Passes: training data that arrives day by day or hour by hour, each piece in files of its own.
// Numbers count passes from the first one of the config.
//
//   passes: {path: "logs/{day:%Y%m%d}/{hour:%H}/part-*", done: to.done, from: 2026-01-01/00}

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace paddle::data {

struct PassOptions {
  std::string path;                   ///< pattern with {day:FORMAT} and {hour:FORMAT}
  std::string done = {};              ///< a file next to those of a pass that is whole; "": none
  bool hourly = false;                ///< passes are hours, else days
  int64_t first = 0;                  ///< hours or days since 1970-01-01
  std::optional<int64_t> count = {};  ///< passes up to the last one
  double wait = 0;                    ///< seconds for a pass to be whole, from when it is wanted
  bool predict_first = false;         ///< evaluate each pass before it is trained
  int64_t shrink_days = 1;            ///< days after which a day of the tables ends; 0: never
};

config::Spec passes_spec();
PassOptions read_passes(const config::Section& section);
/// Gives `data.train` the files of all passes as its path, as far as a pattern can say.
void expand_passes(config::Node& section);

/// "2026-01-01/03", or "2026-01-01".
std::string pass_name(const PassOptions& passes, int64_t number);
/// The pattern of the files of a pass.
std::string pass_path(const PassOptions& passes, int64_t number);
/// Whole days from the first pass to this one.
int64_t pass_day(const PassOptions& passes, int64_t number);
/// Whether the pass is there: its done file and at least one other, or its files.
bool is_pass_ready(const PassOptions& passes, int64_t number);

}  // namespace paddle::data
