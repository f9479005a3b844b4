#include "infer_dump.h"

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "common.h"
#include "common_table.h"
#include "formats/npz.h"
#include "infer/layer_values.h"
#include "infer/numerics.h"
#include "infer/results.h"

namespace paddle::cli {
namespace {

Array joined(const std::string& name, const std::vector<Array>& batches) {
  const bool has_rows = batches.size() == 1 || !batches[0].shape.empty();
  const std::optional<Array> all = has_rows ? infer::joined_batches(batches) : std::nullopt;
  if (!all)
    fail(ErrorCode::kUsage, "--dump: '", name,
         "' changes its shape from batch to batch; use one batch (--batch)");
  return *all;
}

}  // namespace

int dump_values(program::Model& model, const std::string& path, const program::LoadOptions& load,
                const std::vector<std::string>& patterns, const PredictOptions& options) {
  const bool names_only = options.dry_run && options.output.empty();
  if (!names_only && !options.output.ends_with(".npz"))
    fail(ErrorCode::kUsage,
         "--dump writes arrays: give --output FILE.npz, or --dry-run for a list of names");
  if (!names_only) check_output(options.output, options.overwrite);
  infer::LayerValues values(program::trace_model(path, load), patterns);
  if (options.dry_run) {
    if (!names_only) infer::open_inputs(model, options.input);
    for (const std::string& name : values.names()) print_line(name);
    return 0;
  }
  const auto batches = infer::open_inputs(model, options.input);
  std::vector<std::vector<Array>> found(values.names().size());
  int64_t rows = 0;
  while (const auto batch = batches->next()) {
    if (pending_interrupt() != 0) return 128 + pending_interrupt();
    if (batch->rows == 0) continue;
    rows += batch->rows;
    const std::vector<Array> arrays = values.run(batch->inputs);
    for (size_t i = 0; i < arrays.size(); ++i) found[i].push_back(runtime::copied(arrays[i]));
  }
  formats::NpzWriter writer(options.output);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].empty()) writer.add(values.names()[i], joined(values.names()[i], found[i]));
  writer.close();
  if (options.json)
    print(nlohmann::ordered_json(
              {{"samples", rows}, {"output", options.output}, {"values", values.names()}})
              .dump() +
          "\n");
  else
    print(str("values of ", rows, " samples: ", values.names().size(), " arrays in ",
              options.output, "\n"));
  return 0;
}

int check_numerics(program::Model& model, const std::string& path, const program::LoadOptions& load,
                   const PredictOptions& options) {
  if (!options.output.empty() || options.dry_run)
    fail(ErrorCode::kUsage,
         "--check-numerics prints a table; it cannot be combined with --output or "
         "--dry-run");
  infer::LayerValues values(program::trace_model(path, load), {"*"});
  const auto batches = infer::open_inputs(model, options.input);
  auto batch = batches->next();
  while (batch && batch->rows == 0) batch = batches->next();
  if (!batch) fail(ErrorCode::kData, "--check-numerics: the input has no sample");
  if (pending_interrupt() != 0) return 128 + pending_interrupt();
  const std::vector<Array> arrays = values.run(batch->inputs);
  Table table({"value", "operation", "type", "NaN", "infinite", "zeros", "largest"});
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  int64_t nan = 0, infinite = 0;
  // The outputs come first in the list and last in the model.
  const size_t outputs = model.outputs().size();
  for (size_t n = 0; n < arrays.size(); ++n) {
    const size_t i = (n + outputs) % arrays.size();
    const infer::Numerics found = infer::count_numerics(arrays[i]);
    const std::string type = TensorType{arrays[i].dtype, to_shape(arrays[i].shape)}.text();
    nan += found.nan;
    infinite += found.infinite;
    table.add_row({values.names()[i], values.operations()[i], type, str(found.nan),
                   str(found.infinite), str(found.zeros), short_number(found.largest)});
    objects.push_back({{"value", values.names()[i]},
                       {"operation", values.operations()[i]},
                       {"type", type},
                       {"elements", found.elements},
                       {"nan", found.nan},
                       {"infinite", found.infinite},
                       {"zeros", found.zeros},
                       {"largest", found.largest}});
  }
  print(table.text());
  if (options.json)
    print(nlohmann::ordered_json(
              {{"samples", batch->rows}, {"nan", nan}, {"infinite", infinite}, {"values", objects}})
              .dump() +
          "\n");
  return 0;
}

}  // namespace paddle::cli
