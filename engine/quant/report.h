#pragma once
// The report of a quantization as JSON, as a table, and as a page.

#include <string>

#include "quant/quant_job.h"

namespace paddle::quant {

/// Fixed notation with `digits` decimals: "1.50".
std::string fixed(double value, int digits);

/// Five significant digits.
std::string short_number(double value);

/// report.json, on several lines.
std::string report_json(const QuantJob& job, const QuantReport& report);
/// layers.csv: one row a layer.
std::string layers_csv(const QuantReport& report);
/// report.html: one page without other files.
std::string report_html(const QuantJob& job, const QuantReport& report);
/// "int8: accuracy 98.62 → 98.57 (±0.21) · 3.1× as fast (batch 1) · …"
std::string summary(const QuantJob& job, const QuantReport& report);

}  // namespace paddle::quant
