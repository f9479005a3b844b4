// The source file of a family: its rows of the operation table and the functions that call them.

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "text.h"
#include "write.h"

namespace opgen {
namespace {

const char* attr_type(const std::string& t) {
  if (t == "bool") return "kBool";
  if (t == "int") return "kInt";
  if (t == "float") return "kFloat";
  if (t == "str") return "kString";
  if (t == "word") return "kWord";
  if (t == "dtype") return "kDType";
  if (t == "dim") return "kDim";
  if (t == "ints") return "kInts";
  if (t == "dims") return "kDims";
  if (t == "floats") return "kFloats";
  if (t == "strs") return "kStrings";
  return t == "number" ? "kNumber" : "kAny";
}

/// "dtype_sets::kInteger | dtype_sets::of(DType::kF32)".
std::string dtype_set(const Param& p) {
  static const std::map<std::string, std::string> kSets = {{"bool", "kBool"},
                                                           {"integer", "kInteger"},
                                                           {"float", "kFloat"},
                                                           {"complex", "kComplex"},
                                                           {"real", "kReal"},
                                                           {"int8", "of(DType::kI8)"},
                                                           {"int16", "of(DType::kI16)"},
                                                           {"int32", "of(DType::kI32)"},
                                                           {"int64", "of(DType::kI64)"},
                                                           {"uint8", "of(DType::kU8)"},
                                                           {"uint16", "of(DType::kU16)"},
                                                           {"uint32", "of(DType::kU32)"},
                                                           {"uint64", "of(DType::kU64)"},
                                                           {"float16", "of(DType::kF16)"},
                                                           {"bfloat16", "of(DType::kBF16)"},
                                                           {"float32", "of(DType::kF32)"},
                                                           {"float64", "of(DType::kF64)"}};
  if (p.dtypes.empty()) return "dtype_sets::kReal";
  std::string out;
  for (const std::string& word : p.dtypes)
    out += (out.empty() ? "dtype_sets::" : " | dtype_sets::") + kSets.at(word);
  return out;
}

bool declares_dtypes(const Entry& e) {
  return std::ranges::any_of(e.params, [](const Param& p) { return !p.dtypes.empty(); });
}

void write_definition(const Entry& e, std::ostringstream& c) {
  const std::string id = e.identifier();
  int operands = 0, attrs = 0, in_place = -1;
  std::string operand_rows, attr_rows, result_rows, param_rows;
  for (const Param& p : e.params) {
    param_rows += std::string("{") + boolean(p.is_operand) + ", " +
                  std::to_string(p.is_operand ? operands : attrs) + "}, ";
    if (p.is_operand) {
      if (p.name == e.in_place) in_place = operands;
      ++operands;
      operand_rows +=
          "    {" + quoted(p.name) + ", OperandKind::" + (p.list ? "kList" : "kTensor") + ", " +
          boolean(p.optional) + ", " + boolean(p.promotes) + ", " + boolean(p.host) + ", " +
          boolean(p.shape_only) + ", " + boolean(p.widened) + ", " + boolean(p.hidden) + "},\n";
    } else {
      ++attrs;
      attr_rows += "    {" + quoted(p.name) + ", AttrType::" + attr_type(p.type) + ", " +
                   boolean(p.optional) + ", " + boolean(p.default_value.empty()) + ", " +
                   boolean(p.or_tensor) + ", " + boolean(p.hidden) + ", " +
                   quoted(p.default_value) + ", " + quoted(p.words) + "},\n";
    }
  }
  for (const Result& r : e.results)
    result_rows += "    {" + quoted(r.name) + ", " + boolean(r.variadic) + ", " +
                   boolean(r.optional) + ", " + boolean(r.hidden) + "},\n";
  if (!e.in_place.empty() && in_place < 0)
    throw std::runtime_error(e.name + ": in_place names no operand");
  if (operands)
    c << "constexpr OperandDef k_" << id << "_operands[] = {\n" << operand_rows << "};\n";
  if (declares_dtypes(e)) {
    c << "constexpr DTypeSet k_" << id << "_dtypes[] = {";
    for (const Param& p : e.params)
      if (p.is_operand) c << dtype_set(p) << ", ";
    c << "};\n";
  }
  if (attrs) c << "constexpr AttrDef k_" << id << "_attrs[] = {\n" << attr_rows << "};\n";
  c << "constexpr ResultDef k_" << id << "_results[] = {\n" << result_rows << "};\n";
  if (!e.weights.empty()) {
    c << "constexpr WeightDef k_" << id << "_weights[] = {\n";
    for (const Weight& w : e.weights)
      c << "    {" << quoted(w.name) << ", " << quoted(w.init) << ", " << quoted(w.sizes) << ", "
        << quoted(w.state) << "},\n";
    c << "};\n";
  }
  if (!e.params.empty())
    c << "constexpr ParamDef k_" << id << "_params[] = {" << param_rows << "};\n";
}

std::string samples_of(const Entry& e) {
  std::string lines;
  for (const std::string& s : e.samples) {
    if (!lines.empty()) lines += '\n';
    lines += s;
  }
  return e.has_samples ? quoted(std::as_const(lines)) : "nullptr";
}

void write_row(const Entry& e, std::ostringstream& c) {
  const std::string id = e.identifier();
  size_t operands = 0, attrs = 0;
  int in_place = -1;
  for (const Param& p : e.params) {
    if (p.is_operand && p.name == e.in_place) in_place = static_cast<int>(operands);
    ++(p.is_operand ? operands : attrs);
  }
  std::string traits, overloads, images;
  for (const std::string& o : e.overloads) overloads += (overloads.empty() ? "" : "|") + o;
  for (const std::string& i : e.images) images += (images.empty() ? "" : "|") + i;
  for (const auto& [name, enumerator] : trait_names())
    if (e.has_trait(name)) traits += (traits.empty() ? "" : " | ") + enumerator;
  if (e.takes_complex) traits += (traits.empty() ? "" : " | ") + std::string("kTakesComplex");
  const auto rule = [](const char* kind, const std::string& name) {
    return name.empty() || name == "decomposition" ? std::string("nullptr")
                                                   : std::string("rules::") + kind + name;
  };
  const auto table = [&](const char* what, size_t n) {
    return n ? "k_" + id + "_" + what : std::string("nullptr");
  };
  const std::string precision = e.precision == "low"        ? "kLow"
                                : e.precision == "full"     ? "kFull"
                                : e.precision == "widening" ? "kWidening"
                                : e.precision == "first"    ? "kFirst"
                                                            : "kFollow";
  c << "    {sizeof(OpDef), " << e.version << ", " << quoted(e.name) << ", " << quoted(e.family)
    << ", " << quoted(e.doc) << ",\n     " << quoted(e.signature) << ", " << quoted(e.layer) << ", "
    << quoted(e.no_gradient) << ",\n     " << table("operands", operands) << ", " << operands
    << ", " << table("attrs", attrs) << ", " << attrs << ", k_" << id << "_results, "
    << e.results.size() << ", " << table("params", e.params.size()) << ", " << e.params.size()
    << ",\n     " << (traits.empty() ? "0" : traits) << ", PrecisionClass::" << precision << ", "
    << in_place << ",\n     " << rule("infer_", e.infer) << ", " << rule("vjp_", e.vjp) << ", "
    << rule("decompose_", e.decompose) << ", " << rule("view_", e.view) << ", "
    << rule("write_", e.write) << ", " << rule("cost_", e.cost) << ",\n     " << samples_of(e)
    << ", " << quoted(overloads) << ", " << quoted(images) << ", "
    << rule("decompose_for_fusion_", e.decompose_for_fusion) << ", "
    << table("weights", e.weights.size()) << ", " << e.weights.size() << ", "
    << table("dtypes", declares_dtypes(e)) << ", nullptr, nullptr},\n";
}

void write_function(const Entry& e, const std::string& first, size_t index, std::ostringstream& c) {
  std::string operands, attrs, sizes;
  bool lists = false;
  for (const Param& p : e.params) lists = lists || (p.is_operand && p.list);
  size_t visible = 0;
  bool several = false;
  for (const Result& r : e.results) {
    visible += !r.hidden;
    several = several || (!r.hidden && r.variadic);
  }
  c << function_head(e, false) << " {\n  Tensors flat_operands";
  if (!lists) {
    for (const Param& p : e.params)
      if (p.is_operand)
        operands += (operands.empty() ? "" : ", ") + (p.hidden ? "Tensor()" : p.name);
    c << (operands.empty() ? "" : "{" + operands + "}") << ";\n";
  } else {
    c << ";\n";
    for (const Param& p : e.params) {
      if (!p.is_operand) continue;
      if (p.list) {
        c << "  flat_operands.insert(flat_operands.end(), " << p.name << ".begin(), " << p.name
          << ".end());\n";
        sizes += (sizes.empty() ? "" : ", ") + ("static_cast<int32_t>(" + p.name + ".size())");
      } else {
        c << "  flat_operands.push_back(" << (p.hidden ? "Tensor()" : p.name) << ");\n";
      }
    }
  }
  for (const Param& p : e.params) {
    if (p.is_operand) continue;
    const bool none = p.hidden && p.default_value == "none";
    attrs += (attrs.empty() ? "" : ", ") + std::string("AttrValue(") +
             (none       ? ""
              : p.hidden ? cpp_default(p)
                         : p.name) +
             ")";
  }
  const char* caller = (visible == 1 && !several) ? "call_single" : "call_visible";
  c << "  return " << caller << "(op_at(" << first << " + " << index
    << "), std::move(flat_operands), Attrs{{" << attrs << "}, {" << sizes << "}});\n}\n";
}

}  // namespace

std::string family_source(const Family& family) {
  std::ostringstream c;
  c << kNote << "#include \"ops/generated/" << family.name << ".h\"\n\n"
    << "#include \"ops/core/call.h\"\n#include \"ops/core/operand_types.h\"\n#include "
       "\"ops/generated/"
    << family.name << "_rules.h\"\n\nnamespace paddle {\nnamespace {\n\n";
  for (const Entry& e : family.entries) write_definition(e, c);
  const std::string first = family.name + "_first";
  c << "\n}  // namespace\n\nnamespace generated {\nextern const int " << first << ";\n"
    << "std::span<const OpDef> " << family.name << "_table() {\n  static const OpDef table[] = {\n";
  for (const Entry& e : family.entries) write_row(e, c);
  c << "  };\n  return table;\n}\n}  // namespace generated\n\nnamespace ops {\n\n";
  for (size_t i = 0; i < family.entries.size(); ++i)
    write_function(family.entries[i], "generated::" + first, i, c);
  c << "\n}  // namespace ops\n}  // namespace paddle\n";
  return c.str();
}

}  // namespace opgen
