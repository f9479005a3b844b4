#include "inspect/export_cases.h"

#include <algorithm>
#include <regex>

#include "base/files.h"
#include "formats/onnx/write.h"
#include "inspect/case_table.h"
#include "inspect/compare.h"
#include "ir/tracer.h"
#include "onnx/export/export.h"
#include "onnx/graph/session.h"
#include "onnx/graph/value_io.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

/// The call as a function of its tensors, without passes.
std::unique_ptr<ir::Function> traced(const NamedCall& call) {
  runtime::register_backends();
  auto function = std::make_unique<ir::Function>("case");
  ir::Tracer tracer(*function);
  const InterpreterScope scope(tracer);
  const Tensor random =
      tracer.input({ir::PortKind::kRandom, "seed_and_step"}, {DType::kU64, {Dim(2)}});
  const RandomScope random_scope(random);
  Tensors inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < call.inputs().size(); ++i) {
    std::string name = call.input_name(i);
    const auto taken = std::count(names.begin(), names.end(), name);
    names.push_back(name);
    if (taken > 0) name += str(".", taken);
    const Array& array = call.inputs()[i];
    inputs.push_back(
        tracer.input({ir::PortKind::kValue, name}, {array.dtype, to_shape(array.shape)}));
  }
  size_t count = 0;
  for (const Tensor& t : call(inputs)) {
    const std::string name = str("out", count++);
    if (t.defined()) tracer.output({ir::PortKind::kValue, name}, t);
  }
  return function;
}

bool is_random(const ir::Function& function) {
  bool found = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
    found = found || operation.op->has(kRandom);
  });
  return found;
}

/// Runs the file on the inputs of the call; "" if the results agree.
std::string compare_with_call(const std::string& file, const NamedCall& call) {
  const auto expected = run(
      Mode::kEager, [&](const Tensors& inputs) { return call(inputs); }, call.inputs());
  onnx::Session session(file, {});
  std::vector<Array> inputs;
  for (const Array& each : call.inputs()) inputs.push_back(each.contiguous());
  const auto found = onnx::plain_arrays(session, session.run(onnx::to_values(inputs)));
  size_t next = 0;
  for (const auto& each : expected) {
    if (!each) continue;
    // Attributes of ONNX are float32, also in float64 graphs.
    const bool wide = each->dtype == DType::kF64 || each->dtype == DType::kF32;
    const double tolerance = each->dtype == DType::kF64 ? 1e-6 : wide ? 1e-4 : 2e-2;
    const std::string bad = difference(found.at(next).second, *each, {tolerance, tolerance});
    if (!bad.empty()) return found[next].first + ": " + bad;
    ++next;
  }
  return "";
}

}  // namespace

ExportCounts export_cases(const std::string& path, const std::string& folder,
                          const ExportCaseOptions& wanted,
                          const std::function<void(const std::string&)>& report) {
  const CaseTable table = read_case_table(path);
  if (!wanted.dry_run) ensure_directory(folder);
  const std::regex filter(wanted.filter);
  ExportCounts counts;
  for (const Case& each : table.cases) {
    if (!wanted.filter.empty() && !std::regex_search(each.name, filter)) continue;
    try {
      const auto call = read_case_call(each, table.arrays.get());
      if (!call) {
        ++counts.skipped;
        continue;
      }
      const auto function = traced(*call);
      if (const auto missing = onnx::unsupported_operations(*function); !missing.empty()) {
        report(str(each.name, ": no ONNX form: ", missing[0].operation, ": ", missing[0].note));
        ++counts.no_form;
        continue;
      }
      onnx::ExportOptions options;
      options.name = each.op;
      options.opset = wanted.opset;
      const auto no_weights = [](const std::string& name) -> Array {
        fail(ErrorCode::kInternal, "a case has no parameter '", name, "'");
      };
      const auto exported = onnx::export_function(*function, no_weights, options);
      std::string file = each.name;
      std::replace(file.begin(), file.end(), '/', '_');
      file = folder + "/" + file + ".onnx";
      if (!wanted.dry_run) formats::onnx::write_model(exported.model, file, {});
      if (wanted.check && !is_random(*function))
        if (const std::string bad = compare_with_call(file, *call); !bad.empty())
          fail(ErrorCode::kDifference, bad);
      report(each.name + ": exported");
      ++counts.exported;
    } catch (const Error& e) {
      constexpr std::string_view kNoForm = ": has no ONNX form: ";
      const std::string what = e.what();
      if (const size_t at = what.find(kNoForm); at != std::string::npos) {
        report(str(each.name, ": no ONNX form: ", what.substr(0, at), ": ",
                   what.substr(at + kNoForm.size())));
        ++counts.no_form;
      } else {
        report(str(each.name, ": error: ", what));
        ++counts.failed;
      }
    }
  }
  return counts;
}

}  // namespace paddle::inspect
