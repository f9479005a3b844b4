#pragma once
// Every case of a table as an ONNX file, so that other runtimes can check the exporter.

#include <functional>
#include <string>

namespace paddle::inspect {

struct ExportCounts {
  int64_t exported = 0, no_form = 0, failed = 0, skipped = 0;
};

struct ExportCaseOptions {
  std::string filter;    ///< only names that match this regular expression
  int64_t opset = 0;     ///< 0: the lowest that fits
  bool dry_run = false;  ///< write no files
  bool check = false;    ///< read the file back, run it and compare with the operation
};

/// Writes FOLDER/NAME.onnx for each case of the table (slashes in names become underscores), with
/// inputs named by the arguments in the order of the table. `report` gets one line a case:
/// "NAME: exported", "NAME: no ONNX form: reason", or "NAME: error: …"; cases that must be rejected
/// are skipped. Differences that a check finds are errors.
ExportCounts export_cases(const std::string& table, const std::string& folder,
                          const ExportCaseOptions& options,
                          const std::function<void(const std::string&)>& report);

}  // namespace paddle::inspect
