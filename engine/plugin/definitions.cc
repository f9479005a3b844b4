#include "plugin/definitions.h"

#include <algorithm>
#include <utility>

#include "ops/core/operand_types.h"

namespace paddle::rules {
void infer_decomposed(InferContext& c);
}

namespace paddle::plugin {
namespace {

AttrType attr_type(const std::string& word) {
  constexpr std::pair<std::string_view, AttrType> kTypes[] = {
      {"bool", AttrType::kBool},     {"int", AttrType::kInt},      {"float", AttrType::kFloat},
      {"str", AttrType::kString},    {"word", AttrType::kWord},    {"dtype", AttrType::kDType},
      {"dim", AttrType::kDim},       {"ints", AttrType::kInts},    {"dims", AttrType::kDims},
      {"floats", AttrType::kFloats}, {"strs", AttrType::kStrings}, {"number", AttrType::kNumber}};
  for (const auto& [name, type] : kTypes)
    if (word == name) return type;
  return AttrType::kAny;
}

PrecisionClass precision_class(const op_schema::Entry& e) {
  if (e.precision.empty()) return PrecisionClass::kFollow;
  constexpr std::pair<std::string_view, PrecisionClass> kClasses[] = {
      {"low", PrecisionClass::kLow},
      {"full", PrecisionClass::kFull},
      {"widening", PrecisionClass::kWidening},
      {"first", PrecisionClass::kFirst}};
  for (const auto& [name, value] : kClasses)
    if (e.precision == name) return value;
  throw Error(
      ErrorCode::kConfig,
      str(e.name, ": precision: expected low, full, widening or first, found '", e.precision, "'"),
      e.place);
}

uint32_t traits_of(const op_schema::Entry& e) {
  uint32_t out = e.takes_complex ? kTakesComplex : 0u;
  for (const auto& [name, trait] : generated::trait_table())
    if (e.has_trait(name)) out |= trait;
  constexpr uint32_t kOfTheEngine =
      kControlFlow | kOptimizerUpdate | kRunTimeShape | kCreation | kRandom | kKeepPacked;
  for (const auto& [name, trait] : generated::trait_table())
    if (out & trait & kOfTheEngine)
      throw Error(ErrorCode::kConfig,
                  str(e.name, ": operations of plug-ins cannot have the trait '", name, "'"),
                  e.place);
  return out;
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && name.size() < 64 && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

const char* Definitions::keep(std::string text) {
  return texts_.emplace_back(std::move(text)).c_str();
}

void Definitions::add_schema(const std::string& text, const std::string& file,
                             const std::string& section,
                             const std::map<std::string, NativeRules>& rules) {
  // Twice: entries by the reader of the engine's own schema, and rules in the model language with
  // the place of each character.
  const config::Node document = config::parse_document(text, file);
  const config::Node* const root = section.empty() ? &document : document.find(section);
  for (const op_schema::Entry& entry : op_schema::read_plugin_entries(text, file, section)) {
    const config::Node* const node = root ? root->find(entry.name) : nullptr;
    ensure(node != nullptr, file, ": ", entry.name, ": not found again");
    const auto reject = [&](const std::string& why) {
      throw Error(ErrorCode::kConfig, entry.name + ": " + why, entry.place);
    };
    if (!is_name(entry.name)) reject("a name has lower-case letters, digits and '_'");
    const std::string name = provider_.name + "." + entry.name;
    if (find_op(name) || places_.contains(name)) reject("the operation exists already");
    places_[name] = entry.place;
    TextRules of_entry = read_text_rules(*node, file);
    if (const auto native = rules.find(entry.name); native != rules.end())
      of_entry.native = &native_.emplace_back(native->second);
    note_codes(entry, *node);
    add(entry, std::move(of_entry), section);
    if (const config::Node* const sharding = node->find("sharding"))
      sharding_.push_back({name, read_sharding_rule(*sharding)});
  }
}

void Definitions::note_codes(const op_schema::Entry& entry, const config::Node& node) {
  std::vector<std::string> names;
  for (const op_schema::Param& p : entry.params) names.push_back(p.name);
  if (const config::Node* const body = node.find("body")) codes_.push_back({*body, names});
  const config::Node* const vjp = node.find("vjp");
  if (!vjp) return;
  names.emplace_back("g");
  for (const op_schema::Result& r : entry.results) {
    names.push_back(r.name);
    names.push_back("g_" + r.name);
  }
  if (vjp->is_sequence())
    for (const config::Node& item : vjp->items) codes_.push_back({item, names});
  else if (!vjp->text.starts_with("none"))
    codes_.push_back({*vjp, names});
}

void Definitions::check_codes(const std::vector<StatedCode>& others) const {
  std::vector<std::string> operations = names();
  for (const Alias& alias : aliases_) operations.emplace_back(alias.alias);
  check_code_names(codes_, operations);
  check_code_names(others, operations);
}

void Definitions::add(const op_schema::Entry& e, TextRules rules, const std::string& section) {
  Parts& parts = parts_.emplace_back();
  parts.rules = std::move(rules);
  int in_place = -1;
  const bool declares =
      std::ranges::any_of(e.params, [](const op_schema::Param& p) { return !p.dtypes.empty(); });
  for (const op_schema::Param& p : e.params) {
    if (!p.is_operand) {
      parts.params.push_back({false, static_cast<int>(parts.attrs.size())});
      parts.attrs.push_back({keep(p.name), attr_type(p.type), p.optional, p.default_value.empty(),
                             p.or_tensor, p.hidden, keep(p.default_value), keep(p.words)});
      continue;
    }
    if (p.name == e.in_place) in_place = static_cast<int>(parts.operands.size());
    parts.params.push_back({true, static_cast<int>(parts.operands.size())});
    parts.operands.push_back({keep(p.name), p.list ? OperandKind::kList : OperandKind::kTensor,
                              p.optional, p.promotes, p.host, p.shape_only, p.widened, p.hidden});
    DTypeSet set = p.dtypes.empty() ? dtype_sets::kReal : 0;
    for (const std::string& word : p.dtypes) set |= dtype_set_of(word);
    parts.dtypes.push_back(set);
  }
  for (const op_schema::Result& r : e.results)
    parts.results.push_back({keep(r.name), r.variadic, r.optional, r.hidden});
  for (const op_schema::Weight& w : e.weights)
    parts.weights.push_back({keep(w.name), keep(w.init), keep(w.sizes), keep(w.state)});
  if (!e.in_place.empty() && in_place < 0)
    throw Error(ErrorCode::kConfig, e.name + ": in_place: names no operand", e.place);
  for (const AttrDef& attr : parts.attrs) {
    if (attr.required) continue;
    try {
      AttrValue::parse(attr.default_text);
    } catch (const Error& error) {
      throw Error(ErrorCode::kConfig, str(e.name, ": ", attr.name, ": ", error.message()), e.place);
    }
  }

  std::string samples;
  for (const std::string& s : e.samples) samples += (samples.empty() ? "" : "\n") + s;
  OpDef def{};
  def.struct_size = sizeof def;
  def.version = static_cast<uint32_t>(e.version);
  def.name = keep(provider_.name + "." + e.name);
  def.family = section == "losses" ? "loss" : provider_.name.c_str();
  def.doc = keep(e.doc);
  def.signature = keep(e.signature);
  def.layer_signature = keep(e.layer);
  def.no_gradient = keep(e.no_gradient);
  def.operands = parts.operands.data();
  def.operand_count = static_cast<uint32_t>(parts.operands.size());
  def.attrs = parts.attrs.data();
  def.attr_count = static_cast<uint32_t>(parts.attrs.size());
  def.results = parts.results.data();
  def.result_count = static_cast<uint32_t>(parts.results.size());
  def.params = parts.params.data();
  def.param_count = static_cast<uint32_t>(parts.params.size());
  def.traits = traits_of(e);
  def.precision = precision_class(e);
  def.in_place = in_place;
  for (const std::string& type : e.types)
    parts.rules.types.push_back(read_type_text(type, parts.operands, parts.attrs, e.place));
  if (std::ranges::any_of(parts.rules.types, has_run_time_dim)) def.traits |= kRunTimeShape;
  parts.rules.surrogate_gradient = e.surrogate_gradient;
  def.infer = e.types.empty() ? paddle::rules::infer_decomposed : infer_by_text;
  def.vjp = parts.rules.gradients.empty() ? nullptr : vjp_by_text;
  def.decompose = e.body.empty() ? nullptr : decompose_by_text;
  def.samples = e.has_samples ? keep(samples) : nullptr;
  def.overloads = "";
  def.images = "";
  def.weights = parts.weights.data();
  def.weight_count = static_cast<uint32_t>(parts.weights.size());
  def.operand_dtypes = declares ? parts.dtypes.data() : nullptr;
  def.provider = &provider_;
  def.context = &parts.rules;
  if (parts.rules.native) {
    const bool has_view = parts.rules.native->rules.view != nullptr;
    add_native_rules(e, parts.rules, def);
    if (has_view) parts.rules.infer_before_view = std::exchange(def.infer, infer_of_view);
  }
  if (!def.decompose) {
    if (e.types.empty() && !(parts.rules.native && parts.rules.native->rules.infer))
      throw Error(ErrorCode::kConfig, e.name + ": has no body, and no types (infer) for a kernel",
                  e.place);
    needs_kernel_.push_back({def.name, e.place});
  }
  for (const std::string& alias : e.aliases) {
    if (!is_name(alias))
      throw Error(
          ErrorCode::kConfig,
          e.name + ": alias: '" + alias + "': a name has lower-case letters, digits and '_'",
          e.place);
    aliases_.push_back({keep(provider_.name + "." + alias), def.name});
  }
  ops_.push_back(def);
}

void Definitions::add_native_rules(const op_schema::Entry& e, const TextRules& rules, OpDef& def) {
  const NativeRules& native = *rules.native;
  const auto once = [&](bool in_c, bool in_text, const char* rule) {
    if (in_c && in_text)
      throw Error(ErrorCode::kConfig, str(e.name, ": ", rule, ": is text, and a function in C"),
                  e.place);
    return in_c;
  };
  if (once(native.rules.infer, !e.types.empty(), "infer")) def.infer = infer_by_c;
  if (once(native.rules.decompose, !e.body.empty(), "body")) def.decompose = decompose_by_c;
  if (once(native.rules.vjp, !e.gradients.empty(), "vjp")) def.vjp = vjp_by_c;
  if (native.rules.cost) def.cost = cost_by_c(native);
  if (native.rules.view) def.view = view_by_c(native);
}

void Definitions::require_kernels(const std::vector<std::string>& with_kernels) const {
  for (const auto& [name, place] : needs_kernel_)
    if (std::ranges::find(with_kernels, name) == with_kernels.end())
      throw Error(ErrorCode::kConfig, name + ": has neither a body nor a kernel for the CPU",
                  place);
}

std::vector<std::string> Definitions::names() const {
  std::vector<std::string> out;
  for (const OpDef& def : ops_) out.emplace_back(def.name);
  return out;
}

}  // namespace paddle::plugin
