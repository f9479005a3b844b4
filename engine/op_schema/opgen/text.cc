#include "text.h"

namespace opgen {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

const char* boolean(bool b) { return b ? "true" : "false"; }

std::string cpp_type(const Param& p) {
  std::string t;
  if (p.type == "bool")
    t = "bool";
  else if (p.type == "int")
    t = "int64_t";
  else if (p.type == "float")
    t = "double";
  else if (p.type == "str" || p.type == "word")
    t = "std::string";
  else if (p.type == "dtype")
    t = "DType";
  else if (p.type == "dim")
    t = "Dim";
  else if (p.type == "ints")
    t = "std::vector<int64_t>";
  else if (p.type == "dims")
    t = "Shape";
  else if (p.type == "floats")
    t = "std::vector<double>";
  else if (p.type == "strs")
    t = "std::vector<std::string>";
  else
    return "AttrValue";
  return p.optional ? "std::optional<" + t + ">" : t;
}

/// A C++ expression for a default as the schema writes it.
std::string cpp_default(const Param& p) {
  const std::string& d = p.default_value;
  if (d == "none" || d.empty()) return "{}";
  if (p.type == "str" || p.type == "word") return quoted(d.substr(1, d.size() - 2));
  if (p.type == "dtype") return "*parse_dtype(" + quoted(d) + ")";
  if (p.type == "ints" || p.type == "dims" || p.type == "floats") {
    if (d[0] == '[') return "{" + d.substr(1, d.size() - 2) + "}";
    return "{" + d + "}";
  }
  if (p.type == "strs" && d == "[]") return "{}";
  if (p.type == "number" || p.type == "any") return "AttrValue::parse(" + quoted(d) + ")";
  if (d == "inf") return "std::numeric_limits<double>::infinity()";
  if (d == "-inf") return "-std::numeric_limits<double>::infinity()";
  return d;
}

std::string function_head(const Entry& e, bool with_defaults) {
  size_t visible = 0, results = 0;
  bool several = false;
  for (const Result& r : e.results) {
    if (r.hidden) continue;
    ++results;
    several = several || r.variadic;
  }
  for (const Param& p : e.params) visible += !p.hidden;
  // Defaults may only stand at the end.
  size_t first_default = visible;
  for (size_t i = visible; i-- > 0 && e.params[i].has_default();) first_default = i;
  std::string out = (results == 1 && !several) ? "Tensor " : "Tensors ";
  out += e.identifier() + "(";
  for (size_t i = 0; i < visible; ++i) {
    const Param& p = e.params[i];
    if (i) out += ", ";
    if (p.is_operand) {
      out += p.list ? "const Tensors& " : "const Tensor& ";
    } else {
      const std::string type = cpp_type(p);
      const bool by_value =
          type == "bool" || type == "int64_t" || type == "double" || type == "DType";
      out += by_value ? type + " " : "const " + type + "& ";
    }
    out += p.name;
    if (with_defaults && i >= first_default)
      out += " = " + (p.is_operand ? std::string("{}") : cpp_default(p));
  }
  return out + ")";
}

}  // namespace opgen
