#pragma once
// The part of report.html about the last evaluation: the confusion matrix, a table of the classes,
// curves and the worst samples.

#include <string>

namespace paddle::train {

/// HTML of what EvaluationDetails wrote; "" if there is none.
std::string evaluation_section(const std::string& evaluation_json);

}  // namespace paddle::train
