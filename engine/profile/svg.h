#pragma once
// Charts of the page as inline SVG. Colors come from the page's style sheet by class.

#include <string>

#include "profile/analysis.h"

namespace paddle::profile {

/// Time of a step by phase, layer and operation: every box lies on the part that contains it, and
/// its width is its time.
std::string flame_graph(const Analysis& analysis);
/// Arithmetic per byte against GFLOP/s, both logarithmic, under the measured peaks.
std::string roofline(const Analysis& analysis);
/// Bytes of live values over the step.
std::string memory_chart(const Analysis& analysis);
/// The step of each rank by what it does, as shares of its time.
std::string rank_chart(const Analysis& analysis);
/// Waiting for data and computing, step by step.
std::string step_chart(const Analysis& analysis);

}  // namespace paddle::profile
