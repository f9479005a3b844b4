#include "convert/program.h"

#include <map>

#include "base/files.h"
#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "onnx/validity/validity.h"
#include "program/traced_model.h"

namespace paddle::convert {

Summary convert_program(const Options& options, const Printer& printer) {
  if (!options.rules.empty() || !options.dtypes.empty() || !options.only.empty() ||
      !options.exclude.empty() || !options.shard_size.empty())
    fail(
        ErrorCode::kUsage, options.in,
        ": is converted whole; --map, --dtype, --only, --exclude and --shard-size are for weights");
  if (!file_exists(options.in)) fail(ErrorCode::kUsage, options.in, ": no such file");
  const program::TracedModel traced = program::trace_model(options.in, {});
  onnx::ExportOptions form;
  form.name = traced.name;
  const onnx::ExportedModel exported = onnx::export_function(*traced.function, traced.weight, form);
  onnx::require_valid(exported.model, options.in);
  const formats::onnx::Model& model = exported.model;
  const Summary result{.output = options.out,
                       .tensors = static_cast<int64_t>(model.graph.initializers.size()),
                       .bytes = formats::onnx::encoded_bytes(model),
                       .is_program = true};
  const std::string summary =
      str(model.graph.nodes.size(), " nodes, ", model.graph.initializers.size(), " constants, ",
          human_bytes(result.bytes));
  if (options.dry_run) {
    std::map<std::string, int64_t> operators;
    for (const auto& node : model.graph.nodes) ++operators[node.op_type];
    for (const auto& [type, count] : operators) printer.line(str(type, "  x", count));
    printer.line(str(summary, "; nothing is written"));
    return result;
  }
  if (file_exists(options.out) && !options.overwrite)
    fail(ErrorCode::kUsage, options.out, ": already exists; --overwrite replaces it");
  const auto written = formats::onnx::write_model(model, options.out, {});
  printer.line(str(summary, "; written to ", options.out,
                   written.data_file.empty() ? "" : " and " + written.data_file));
  return result;
}

}  // namespace paddle::convert
