#include "inspect/onnx_suite.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "inspect/compare.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

namespace fs = std::filesystem;
using onnx::Value;
using onnx::Values;

/// The suite's own: numpy.testing.assert_allclose with these, and two units in the last place for
/// bfloat16.
Tolerance tolerance_of(DType dtype) { return {dtype == DType::kBF16 ? 0.015625 : 1e-3, 1e-7}; }

std::vector<std::string> find_cases(const std::vector<std::string>& folders,
                                    const std::string& filter) {
  std::vector<std::string> cases;
  for (const std::string& folder : folders) {
    if (file_exists(folder + "/model.onnx")) {
      cases.push_back(folder);
      continue;
    }
    for (const std::string& name : list_directory(folder, ErrorCode::kUsage))
      if (file_exists(folder + "/" + name + "/model.onnx")) cases.push_back(folder + "/" + name);
  }
  std::erase_if(cases, [&](const std::string& path) {
    return !filter.empty() && !matches_pattern(filter, fs::path(path).filename().string());
  });
  return cases;
}

/// Types without kernels compare as numbers that hold them.
Array comparable(const Array& a) {
  if (info(a.dtype).has_kernels || is_complex(a.dtype)) return a;
  runtime::EagerExecutor eager;
  const InterpreterScope scope(eager);
  return ops::cast(Tensor(a), is_float(a.dtype) ? DType::kF32 : DType::kI32).array();
}

std::string difference(const Value& found, const Value& expected) {
  // An optional that holds a value counts as that value.
  if (expected.kind() == Value::Kind::kOptional && expected.elements().size() == 1 &&
      found.kind() != Value::Kind::kOptional)
    return difference(found, expected.elements()[0]);
  if (found.kind() != expected.kind()) return found.text() + ", expected " + expected.text();
  switch (found.kind()) {
    case Value::Kind::kTensor: {
      const Array f = found.tensor().array(), e = expected.tensor().array();
      if (f.dtype != e.dtype) return text(f.dtype) + ", expected " + text(e.dtype);
      return difference(comparable(f), comparable(e), tolerance_of(f.dtype));
    }
    case Value::Kind::kStrings: {
      const onnx::StringArray &f = found.strings(), &e = expected.strings();
      if (f.shape != e.shape) return str("shape ", f.shape, ", expected ", e.shape);
      for (size_t i = 0; i < f.items.size(); ++i)
        if (f.items[i] != e.items[i])
          return str("string ", i, " is '", f.items[i], "', expected '", e.items[i], "'");
      return "";
    }
    default:
      break;
  }
  if (found.elements().size() != expected.elements().size())
    return found.text() + ", expected " + expected.text();
  for (size_t i = 0; i < found.elements().size(); ++i)
    if (std::string d = difference(found.elements()[i], expected.elements()[i]); !d.empty())
      return str("element ", i, ": ", d);
  return "";
}

Values read_values(const std::string& folder, const char* what,
                   const std::vector<formats::onnx::ValueInfo>& declared) {
  Values out;
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string path = str(folder, "/", what, "_", i, ".pb");
    out.push_back(file_exists(path) ? Value::of(formats::onnx::read_value(path, declared[i].type))
                                    : Value());
  }
  return out;
}

std::string run_case(const std::string& folder, onnx::Mode mode) {
  onnx::Session session(folder + "/model.onnx", {.mode = mode});
  size_t sets = 0;
  for (const std::string& name : list_directory(folder)) {
    if (!name.starts_with("test_data_set_")) continue;
    ++sets;
    const std::string set = folder + "/" + name;
    const Values found = session.run(read_values(set, "input", session.inputs()));
    const Values expected = read_values(set, "output", session.outputs());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].is_none()) continue;
      if (const std::string d = difference(found[i], expected[i]); !d.empty())
        return str("output '", session.outputs()[i].name, "': ", d);
    }
  }
  return sets == 0 ? "has no test_data_set_0" : "";
}

void collect_operators(const std::vector<formats::onnx::Node>& nodes,
                       std::set<std::string>& names) {
  for (const auto& node : nodes) {
    names.insert(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
    for (const auto& a : node.attributes)
      for (const auto& g : a.graphs) collect_operators(g->nodes, names);
  }
}

std::set<std::string> operators_of(const std::string& folder) {
  std::set<std::string> names;
  try {
    collect_operators(formats::onnx::read_model(folder + "/model.onnx").graph.nodes, names);
  } catch (const Error&) {
    names.insert("(unreadable)");
  }
  return names;
}

/// "name: reason" lines; # begins a comment.
void read_known(const std::string& path, std::map<std::string, std::string>& known) {
  for (const std::string& line : split(read_file(path, 1 << 20, ErrorCode::kUsage), '\n')) {
    const std::string_view text = trim(line);
    if (text.empty() || text[0] == '#') continue;
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || trim(text.substr(colon + 1)).empty())
      fail(ErrorCode::kUsage, path, ": '", text, "' gives no reason (expected NAME: REASON)");
    known[std::string(trim(text.substr(0, colon)))] = trim(text.substr(colon + 1));
  }
}

struct Count {
  size_t passed = 0, failed = 0;
};

}  // namespace

SuiteResult run_onnx_suite(const std::vector<std::string>& folders, const SuiteOptions& options,
                           const std::function<void(const std::string&)>& print) {
  const auto cases = find_cases(folders, options.filter);
  if (cases.empty()) fail(ErrorCode::kUsage, "there are no cases (folders with a model.onnx)");
  std::map<std::string, std::string> known;
  for (const std::string& path : options.known) read_known(path, known);
  SuiteResult result;
  std::map<std::string, Count> kinds, operators;
  run_isolated(
      cases.size(), [&](size_t i) { return run_case(cases[i], options.mode); },
      [&](size_t i, const std::string& failure) {
        const fs::path path(cases[i]);
        const std::string name = path.filename().string();
        const std::string kind = path.parent_path().filename().string();
        const bool passed = failure.empty();
        ++(passed ? result.passed : result.failed);
        ++(passed ? kinds[kind].passed : kinds[kind].failed);
        if (options.by_operator)
          for (const std::string& op : operators_of(cases[i]))
            ++(passed ? operators[op].passed : operators[op].failed);
        const auto reason = known.find(name);
        if (passed && reason != known.end()) {
          ++result.unexpected;
          print(name + ": passes; remove it from the list of known failures");
        }
        if (passed) return;
        if (reason == known.end()) ++result.unexpected;
        print(str(reason == known.end() ? "FAILED " : "known failure ", kind, "/", name, ": ",
                  reason == known.end() ? failure : reason->second));
      },
      options.isolation);
  for (const auto& [op, count] : operators)
    if (count.failed > 0)
      print(str(op, ": ", count.passed, " cases passed, ", count.failed, " failed"));
  for (const auto& [kind, count] : kinds)
    print(str(kind, ": ", count.passed, " of ", count.passed + count.failed, " passed"));
  return result;
}

}  // namespace paddle::inspect
