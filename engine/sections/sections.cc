#include "sections/sections.h"

#include "data/data_config.h"
#include "graph/description.h"
#include "quant_common/quant_config.h"
#include "serve/serve_section.h"
#include "train/config/parallel_config.h"
#include "train/config/run_keys.h"
#include "tune/tune_section.h"

namespace paddle {

void register_sections() {
  data::register_section();
  graph::register_section();
  train::register_section();
  train::register_run_keys();
  quant::register_section();
  serve::register_section();
  tune::register_section();
  quant::register_keys();
}

}  // namespace paddle
