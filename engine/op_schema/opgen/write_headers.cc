// The two headers of a family: <family>.h with the functions and the attributes of its operations,
// <family>_rules.h with the declarations of its rules.

#include <set>
#include <sstream>

#include "text.h"
#include "write.h"

namespace opgen {
namespace {

std::string getter(const Param& p) {
  if (p.type == "bool") return "as_bool";
  if (p.type == "int") return "as_int";
  if (p.type == "float") return "as_double";
  if (p.type == "str" || p.type == "word") return "as_string";
  if (p.type == "dtype") return "as_dtype";
  if (p.type == "dim") return "as_dim";
  if (p.type == "ints") return "as_ints";
  if (p.type == "dims") return "as_dims";
  if (p.type == "floats") return "as_doubles";
  if (p.type == "strs") return "as_strings";
  return "";
}

/// The attributes of the operations as structs.
void add_attrs(const Family& family, std::ostringstream& h) {
  for (const Entry& e : family.entries) {
    std::vector<const Param*> attrs;
    for (const Param& p : e.params)
      if (!p.is_operand) attrs.push_back(&p);
    if (attrs.empty()) continue;
    h << "struct " << e.struct_name() << " {\n";
    for (const Param* p : attrs) h << "  " << cpp_type(*p) << " " << p->name << ";\n";
    h << "  explicit " << e.struct_name() << "(const Attrs& a)\n      : ";
    for (size_t i = 0; i < attrs.size(); ++i) {
      const Param& p = *attrs[i];
      const std::string value = "a[" + std::to_string(i) + "]";
      if (i) h << ",\n        ";
      h << p.name << "(";
      const std::string get = getter(p);
      if (get.empty())
        h << value;
      else if (p.optional)
        h << value << ".is_none() ? " << cpp_type(p) << "() : " << cpp_type(p) << "(" << value
          << "." << get << "())";
      else
        h << value << "." << get << "()";
      h << ")";
    }
    h << " {}\n};\n\n";
  }
}

}  // namespace

std::string family_header(const Family& family) {
  std::ostringstream h;
  h << kNote << "#pragma once\n#include <limits>\n#include <optional>\n#include <string>\n"
    << "#include <vector>\n\n#include \"ops/core/op.h\"\n\nnamespace paddle {\n\n";
  add_attrs(family, h);
  h << "namespace ops {\n\n";
  for (const Entry& e : family.entries)
    h << "/// " << e.doc.substr(0, e.doc.find('\n')) << "\n" << function_head(e, true) << ";\n";
  h << "\n}  // namespace ops\n}  // namespace paddle\n";
  return h.str();
}

std::string rules_header(const Family& family) {
  std::set<std::string> infer, vjp, decompose, fusion, view, write, cost;
  for (const Entry& e : family.entries) {
    infer.insert(e.infer);
    if (!e.vjp.empty() && e.vjp != "decomposition") vjp.insert(e.vjp);
    if (!e.decompose.empty()) decompose.insert(e.decompose);
    if (!e.decompose_for_fusion.empty()) fusion.insert(e.decompose_for_fusion);
    if (!e.view.empty()) view.insert(e.view);
    if (!e.write.empty()) write.insert(e.write);
    if (!e.cost.empty()) cost.insert(e.cost);
  }
  std::ostringstream h;
  h << kNote << "#pragma once\n#include \"ops/core/rules.h\"\n\nnamespace paddle::rules {\n\n";
  for (const auto& n : infer) h << "void infer_" << n << "(InferContext& c);\n";
  for (const auto& n : vjp) h << "Tensors vjp_" << n << "(VjpContext& c);\n";
  for (const auto& n : decompose) h << "Tensors decompose_" << n << "(CallContext& c);\n";
  for (const auto& n : fusion) h << "Tensors decompose_for_fusion_" << n << "(CallContext& c);\n";
  for (const auto& n : view)
    h << "Layout view_" << n
      << "(const Layout& operand, const Attrs& attrs, const Dims& result_shape);\n";
  for (const auto& n : write)
    h << "Tensor write_" << n << "(const Tensor& base, const Tensor& value, const Attrs& attrs);\n";
  for (const auto& n : cost)
    h << "double cost_" << n << "(const Attrs& attrs, const std::vector<Dims>& operands, "
      << "const std::vector<Dims>& results);\n";
  h << "\n}  // namespace paddle::rules\n";
  return h.str();
}

}  // namespace opgen
