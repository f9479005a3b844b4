#include "quant_gguf.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/reader.h"
#include "llm/language_model.h"
#include "quant/gguf_job.h"

namespace paddle::cli {
namespace {

using quant::fixed;

/// The path next to the model.
std::string gguf_output(const quant::GgufJob& job) {
  std::filesystem::path name = std::filesystem::path(job.model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const std::string stem = (is_directory(job.model) ? name.filename() : name.stem()).string();
  return (name.parent_path() / (stem + "-" + job.type + ".gguf")).string();
}

}  // namespace

bool writes_gguf(const QuantOptions& options) {
  if (formats::gguf::find_block_type(options.scheme)) return true;
  return (options.scheme == "float16" || options.scheme == "bf16") && !options.arguments.empty() &&
         llm::is_language_model(options.arguments[0]);
}

int run_gguf(const QuantOptions& options, bool dry_run) {
  if (options.arguments.size() != 1)
    fail(ErrorCode::kUsage, "one Hugging Face folder or GGUF file is expected with --scheme ",
         options.scheme);
  quant::GgufJob job{options.arguments[0],
                     options.job.output,
                     options.scheme,
                     options.keep_float,
                     options.job.overwrite,
                     options.scales == "searched" ? formats::gguf::BlockScales::kSearched
                                                  : formats::gguf::BlockScales::kPlain};
  if (!llm::is_language_model(job.model))
    fail(ErrorCode::kUsage, job.model, ": --scheme ", job.type,
         " needs a Hugging Face folder or a GGUF file");
  if (job.output.empty()) job.output = gguf_output(job);
  if (!job.output.ends_with(".gguf"))
    fail(ErrorCode::kUsage, "--output: expected a name that ends in .gguf, found '", job.output,
         "'");
  const auto report = quant::quantize_gguf(job, dry_run, options.progress());
  for (const std::string& note : report.notes) print_note(note);
  if (options.json) {
    print(quant::gguf_report_json(job, report) + "\n");
    return 0;
  }
  size_t width = 0;
  for (const auto& each : report.tensors) width = std::max(width, each.name.size());
  for (const auto& each : report.tensors) {
    std::string line = padded(each.name, width + 2) + each.before;
    if (each.before != each.after) line += " → " + each.after;
    if (each.sqnr_db > 0) line += "  " + fixed(each.sqnr_db, 1) + " dB";
    if (!each.why.empty()) line += "  (" + each.why + ")";
    print_line(line);
  }
  const double share = 100 * static_cast<double>(report.bytes_after) /
                       static_cast<double>(std::max<uint64_t>(1, report.bytes_before));
  print((dry_run ? "" : job.output + "\n") + job.type + ": " + fixed(share, 1) + "% of the size\n");
  return 0;
}

}  // namespace paddle::cli
