#include "onnx/validity/schema.h"

#include <charconv>
#include <unordered_map>

#include "base/error.h"

namespace paddle::onnx {
namespace {

/// The pieces of a text between separators.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return out;
}

uint64_t number(std::string_view text, int base) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  ensure(error == std::errc() && end == text.data() + text.size(), "schema table: '", text, "'");
  return out;
}

std::vector<FormalParameter> parameters(std::string_view text) {
  std::vector<FormalParameter> out;
  for (std::string_view piece : pieces(text, ' ')) {
    FormalParameter& each = out.emplace_back();
    const char option = piece.back();
    each.optional = option == '?';
    each.variadic = option == '*' || option == '+';
    each.heterogeneous = option == '+';
    if (each.optional || each.variadic) piece.remove_suffix(1);
    if (piece.starts_with('#'))
      each.types = number(piece.substr(1), 16);
    else
      each.variable = piece;
  }
  return out;
}

OperatorSchema schema_of(std::string_view line) {
  std::vector<std::string_view> columns = pieces(line, '|');
  columns.resize(5);
  const std::vector<std::string_view> head = pieces(columns[0], ' ');
  OperatorSchema out;
  out.name = head.at(0);
  out.since = static_cast<int64_t>(number(head.at(1), 10));
  out.least_inputs = number(head.at(2), 10);
  out.least_outputs = number(head.at(3), 10);
  if (columns[1] == "deprecated") {
    out.deprecated = true;
    return out;
  }
  out.inputs = parameters(columns[1]);
  out.outputs = parameters(columns[2]);
  for (const std::string_view each : pieces(columns[3], ' ')) {
    const size_t at = each.find('=');
    out.types[each.substr(0, at)] = number(each.substr(at + 1), 16);
  }
  for (const std::string_view each : pieces(columns[4], ' ')) {
    const size_t at = each.find(':');
    out.attributes.push_back({each.substr(0, at), each.at(at + 1), each.ends_with('!')});
  }
  return out;
}

}  // namespace

std::string text_of_types(TypeSet types) {
  std::string out;
  for (int i = 0; i <= 2 * kDTypeCount; ++i) {
    if ((types >> i & 1) == 0) continue;
    if (!out.empty()) out += " or ";
    if (i == 2 * kDTypeCount)
      out += "another kind";
    else
      out += str(i < kDTypeCount ? "tensor(" : "sequence(",
                 text(static_cast<DType>(i % kDTypeCount)), ")");
  }
  return out;
}

std::span<const OperatorSchema> schemas_of(std::string_view name) {
  static const auto* const kSchemas = [] {
    auto* all = new std::unordered_map<std::string_view, std::vector<OperatorSchema>>;
    for (const std::string_view line : schema_lines()) {
      OperatorSchema schema = schema_of(line);
      (*all)[schema.name].push_back(std::move(schema));
    }
    return all;
  }();
  const auto found = kSchemas->find(name);
  return found == kSchemas->end() ? std::span<const OperatorSchema>{} : found->second;
}

const OperatorSchema* find_schema(std::string_view name, int64_t opset) {
  const OperatorSchema* best = nullptr;
  for (const OperatorSchema& schema : schemas_of(name))
    if (schema.since <= opset) best = &schema;
  return best;
}

}  // namespace paddle::onnx
