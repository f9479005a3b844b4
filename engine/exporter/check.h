#pragma once
// Compares an exported file with the model that it was made of.

#include <functional>
#include <string>
#include <vector>

#include "exporter/export_job.h"
#include "program/traced_model.h"

namespace paddle::exporter {

/// Runs model and file on random inputs with different values of the symbolic dims. A binding that
/// the model itself rejects is replaced by a larger one; if it takes none, `note` says so.
/// Weights of more than a gigabyte pass through memory one at a time, on both sides. A file that
/// differs is searched for its first differing node. `model`, what was exported, also gives the
/// first values of states and the rows of tables, which are inputs of the file.
std::vector<CheckResult> check_export(const ExportJob& job, const std::string& file,
                                      const program::TracedModel& model,
                                      const onnx::ExportedModel& exported,
                                      const std::function<void(const std::string&)>& note);

/// The largest finite |x|; 0 for integers.
double largest_of(const Array& array);
/// Removes a written model and its data file.
void remove_model(const std::string& file);

}  // namespace paddle::exporter
