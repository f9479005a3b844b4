#include "op_schema/entry.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

namespace paddle::op_schema {
namespace {

// Errors of an entry are std::runtime_error here and get their place where the entry is read.

const std::set<std::string> kAttrTypes = {"bool",  "int",    "float", "str",  "word",
                                          "dtype", "dim",    "ints",  "dims", "floats",
                                          "strs",  "number", "any"};
const std::set<std::string> kKeys = {"signature", "doc",
                                     "infer",     "vjp",
                                     "decompose", "view",
                                     "write",     "kernel",
                                     "in_place",  "cost",
                                     "traits",    "layer",
                                     "weights",   "states",
                                     "alias",     "precision",
                                     "version",   "samples",
                                     "overloads", "images",
                                     "dtypes",    "decompose_for_fusion"};
/// Those of plug-ins, whose rules are text.
const std::set<std::string> kPluginKeys = {
    "signature", "doc",     "body",   "sharding",  "vjp",     "dtypes",
    "in_place",  "traits",  "alias",  "precision", "version", "samples",
    "layer",     "weights", "states", "infer",     "gradient"};
const std::vector<std::pair<std::string, std::string>> kTraits = {
    {"elementwise", "kElementwise"},
    {"commutative", "kCommutative"},
    {"float_inputs", "kFloatInputs"},
    {"double_inputs", "kDoubleInputs"},
    {"same_elements", "kSameElements"},
    {"skips_unused_results", "kSkipsUnusedResults"},
    {"strided", "kStrided"},
    {"random", "kRandom"},
    {"reduction", "kReduction"},
    {"effect", "kEffect"},
    {"run_time_shape", "kRunTimeShape"},
    {"creation", "kCreation"},
    {"linear", "kLinear"},
    {"control_flow", "kControlFlow"},
    {"constant_fold", "kConstantFold"},
    {"optimizer_update", "kOptimizerUpdate"},
    {"stop_gradient", "kStopGradient"},
    {"prefers_channels_last", "kPrefersChannelsLast"},
    {"keep_packed", "kKeepPacked"},
    {"layout_transparent", "kLayoutTransparent"},
    {"sums_by_thread", "kSumsByThread"},
    {"accesses_files", "kAccessesFiles"},
    {"accesses_processes", "kAccessesProcesses"},
    {"accesses_network", "kAccessesNetwork"},
    {"accesses_terminal", "kAccessesTerminal"},
    {"accesses_ranks", "kAccessesRanks"}};

std::string trimmed(const std::string& s) {
  const auto begin = s.find_first_not_of(" \n\t");
  if (begin == std::string::npos) return "";
  return s.substr(begin, s.find_last_not_of(" \n\t") - begin + 1);
}

/// Splits at commas outside brackets and quotes.
std::vector<std::string> split_top(const std::string& s) {
  std::vector<std::string> parts;
  std::string current;
  int depth = 0;
  bool quoted = false;
  for (const char c : s) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c == '[' || c == '(')) ++depth;
    if (!quoted && (c == ']' || c == ')')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      parts.push_back(trimmed(current));
      current.clear();
    } else {
      current += c;
    }
  }
  if (!trimmed(current).empty()) parts.push_back(trimmed(current));
  return parts;
}

bool take_suffix(std::string& s, const std::string& suffix) {
  if (s.size() < suffix.size() || s.compare(s.size() - suffix.size(), suffix.size(), suffix) != 0)
    return false;
  s.resize(s.size() - suffix.size());
  return true;
}

Param parse_param(const std::string& text) {
  Param p;
  std::string declaration = text;
  const auto equals = text.find('=');
  if (equals != std::string::npos) {
    p.default_value = trimmed(text.substr(equals + 1));
    declaration = trimmed(text.substr(0, equals));
  }
  const auto colon = declaration.find(':');
  p.name = trimmed(declaration.substr(0, colon));
  std::string type = colon == std::string::npos ? "tensor" : trimmed(declaration.substr(colon + 1));
  if (take_suffix(type, "@host")) p.host = true;
  if (take_suffix(type, "@shape")) p.shape_only = true;
  if (take_suffix(type, "@widened")) p.widened = true;
  if (take_suffix(type, "|tensor")) p.or_tensor = true;
  if (take_suffix(type, "?")) p.optional = true;
  if (type == "tensor" || type == "T" || type == "tensors" || type == "Ts") {
    p.is_operand = true;
    p.list = type.back() == 's';
    p.promotes = type[0] == 'T';
    return p;
  }
  if (type.rfind("word(", 0) == 0) {
    p.words = type.substr(5, type.size() - 6);
    type = "word";
  }
  if (!kAttrTypes.count(type)) throw std::runtime_error("unknown type '" + type + "'");
  p.type = type;
  if (p.optional && p.default_value.empty()) p.default_value = "none";
  return p;
}

void parse_signature(Entry& e) {
  const auto arrow = e.signature.find("->");
  const std::string left = trimmed(e.signature.substr(0, arrow));
  if (arrow == std::string::npos || left.size() < 2 || left.front() != '(' || left.back() != ')')
    throw std::runtime_error("signature must read '(…) -> …'");
  for (const std::string& part : split_top(left.substr(1, left.size() - 2)))
    e.params.push_back(parse_param(part));
  for (std::string part : split_top(e.signature.substr(arrow + 2))) {
    Result r;
    r.variadic = take_suffix(part, "...");
    r.optional = take_suffix(part, "?");
    r.hidden = part[0] == '_';
    r.name = r.hidden ? part.substr(1) : part;
    e.results.push_back(r);
  }
}

std::string text_of(const YAML::Node& node, const char* key) {
  return node[key] ? node[key].as<std::string>() : "";
}

std::vector<std::string> list_of(const YAML::Node& node, const char* key) {
  std::vector<std::string> out;
  if (!node[key]) return out;
  if (node[key].IsScalar()) return {node[key].as<std::string>()};
  for (const auto& item : node[key]) out.push_back(item.as<std::string>());
  return out;
}

/// A rule by name: `true` is the entry's own name, `none` means that there is no rule, a missing
/// key `fallback`.
std::string rule_of(const YAML::Node& node, const char* key, const std::string& own_name,
                    const std::string& fallback) {
  const std::string text = text_of(node, key);
  if (text.empty()) return fallback;
  if (text == "none") return "";
  return text == "true" ? own_name : text;
}

/// Reads the names of the rules. An entry with a decomposition takes its shapes and its gradient
/// from there and needs no kernel; any other has rules and a kernel of its own name.
void parse_rules(Entry& e, const YAML::Node& node) {
  e.decompose = rule_of(node, "decompose", e.name, "");
  const bool composed = !e.decompose.empty();
  e.infer = rule_of(node, "infer", e.name, composed ? "decomposed" : e.name);
  e.kernel = rule_of(node, "kernel", e.name, composed ? "" : e.name);
  e.vjp = text_of(node, "vjp");
  if (e.vjp.rfind("none", 0) == 0) {
    e.no_gradient = trimmed(e.vjp.substr(e.vjp.find(':') + 1));
    if (e.vjp.find(':') == std::string::npos || e.no_gradient.empty())
      throw std::runtime_error("vjp: 'none' needs a reason: 'none: reason'");
    e.vjp.clear();
  } else {
    e.vjp = rule_of(node, "vjp", e.name, composed ? "decomposition" : e.name);
  }
}

int line_of(const YAML::Node& node) { return node.Mark().is_null() ? 0 : node.Mark().line + 1; }

std::string rule_text(const YAML::Node& node, const std::string& key) {
  if (!node.IsScalar()) throw std::runtime_error(key + ": expected text");
  std::string out = node.as<std::string>();
  if (trimmed(out).empty()) throw std::runtime_error(key + ": is empty");
  return out;
}

/// Reads the rules of a plug-in's entry: `body`, `infer` with one type per result, and `vjp` with
/// one gradient per operand.
void parse_text_rules(Entry& e, const YAML::Node& node) {
  if (node["body"]) e.body = rule_text(node["body"], "body");
  if (const YAML::Node infer = node["infer"]; infer && infer.IsSequence())
    for (const YAML::Node& item : infer) e.types.push_back(rule_text(item, "infer"));
  else if (infer)
    e.types.push_back(rule_text(infer, "infer"));
  const YAML::Node vjp = node["vjp"];
  if (const YAML::Node gradient = node["gradient"]) {
    if (!gradient.IsMap() || gradient.size() != 1 || text_of(gradient, "of") != "surrogate")
      throw std::runtime_error("gradient: expected {of: surrogate}");
    if (!vjp) throw std::runtime_error("gradient: a gradient of a surrogate needs 'vjp'");
    e.surrogate_gradient = true;
  }
  if (!vjp) return;
  if (vjp.IsScalar() && vjp.as<std::string>().rfind("none", 0) == 0) {
    const std::string text = vjp.as<std::string>();
    const auto colon = text.find(':');
    if (colon != std::string::npos) e.no_gradient = trimmed(text.substr(colon + 1));
    if (e.no_gradient.empty())
      throw std::runtime_error("vjp: 'none' needs a reason: 'none: reason'");
    return;
  }
  if (vjp.IsScalar())
    e.gradients.push_back(rule_text(vjp, "vjp"));
  else if (vjp.IsSequence())
    for (const YAML::Node& item : vjp) e.gradients.push_back(rule_text(item, "vjp"));
  else
    throw std::runtime_error("vjp: expected text, or a list of one text per operand");
}

/// The words of `float|complex`: kinds of dtypes and dtypes.
std::vector<std::string> dtype_words(const std::string& text) {
  static const std::set<std::string> kWords = {
      "bool",  "integer", "float",  "complex", "real",    "int8",     "int16",   "int32",  "int64",
      "uint8", "uint16",  "uint32", "uint64",  "float16", "bfloat16", "float32", "float64"};
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, '|');) {
    if (!kWords.count(word))
      throw std::runtime_error(
          "dtypes: expected kinds (bool, integer, float, complex, real) and "
          "dtypes, joined by '|', found '" +
          word + "'");
    words.push_back(word);
  }
  if (words.empty()) throw std::runtime_error("dtypes: an operand has none");
  return words;
}

/// Reads `dtypes`: `+complex` for every operand and result, or the dtypes by operand; a result is
/// named if it is complex where no operand is.
void parse_dtypes(Entry& e, const YAML::Node& node) {
  if (!node) return;
  const auto set = [&](const std::string& name, const std::vector<std::string>& words) {
    const auto named = [&](const auto& x) { return x.name == name; };
    const auto operand = std::find_if(e.params.begin(), e.params.end(), named);
    const auto result = std::find_if(e.results.begin(), e.results.end(), named);
    if (std::find(words.begin(), words.end(), "complex") != words.end()) e.takes_complex = true;
    if (operand != e.params.end() && operand->is_operand)
      operand->dtypes = words;
    else if (result == e.results.end() || words != std::vector<std::string>{"complex"})
      throw std::runtime_error("dtypes: it has no operand '" + name + "'" +
                               (result == e.results.end() ? "" : "; a result can be complex"));
  };
  if (node.IsMap()) {
    for (const auto& pair : node)
      set(pair.first.as<std::string>(), dtype_words(pair.second.as<std::string>()));
  } else if (node.as<std::string>() == "+complex") {
    e.takes_complex = true;
    for (Param& p : e.params)
      if (p.is_operand) p.dtypes = {"real", "complex"};
  } else {
    throw std::runtime_error("dtypes: expected '+complex' or dtypes by operand, found '" +
                             node.as<std::string>() + "'");
  }
}

/// Reads `weights` or `states`: lines `NAME: INIT [SIZES]`, of a state followed by `<- RESULT`.
void parse_weights(Entry& e, const YAML::Node& node, bool states) {
  for (const auto& pair : node) {
    Weight w;
    w.name = pair.first.as<std::string>();
    std::string text = pair.second.as<std::string>();
    const auto reject = [&](const std::string& why) {
      throw std::runtime_error(w.name + ": '" + text + "': " + why);
    };
    const auto arrow = text.find("<-");
    if (states != (arrow != std::string::npos))
      reject(states ? "a state ends in '<- RESULT'" : "only states end in '<- RESULT'");
    if (states) w.state = trimmed(text.substr(arrow + 2));
    const std::string value = trimmed(text.substr(0, arrow));
    const auto open = value.find('[');
    if (open == std::string::npos || value.back() != ']') reject("expected 'INIT [SIZES]'");
    w.init = trimmed(value.substr(0, open));
    w.sizes = value.substr(open + 1, value.size() - open - 2);
    if (w.init != "zeros" && w.init != "ones" && w.init != "xavier_uniform" &&
        w.init.rfind("constant(", 0) != 0)
      reject("the initializer is zeros, ones, xavier_uniform or constant(ARGUMENT)");
    const auto updates = [&](const Result& r) { return r.name == w.state; };
    if (states && std::none_of(e.results.begin(), e.results.end(), updates))
      reject("it has no result '" + w.state + "'");
    e.weights.push_back(w);
  }
}

void parse_traits(Entry& e, const YAML::Node& node) {
  for (const std::string& trait : list_of(node, "traits")) {
    const auto named = [&](const auto& known) { return known.first == trait; };
    if (std::none_of(kTraits.begin(), kTraits.end(), named))
      throw std::runtime_error("unknown trait '" + trait + "'");
    e.traits.push_back(trait);
    if (trait == "random") {
      Param state;
      state.name = "rng";
      state.is_operand = state.optional = state.hidden = true;
      e.params.push_back(state);
      Param stream;
      stream.name = "stream";
      stream.type = "int";
      stream.default_value = "0";
      stream.hidden = true;
      e.params.push_back(stream);
      // The part of the whole result that a rank computes: per dim, outermost first, its size, the
      // size of the whole dim and where the part starts. None: all of it.
      Param window;
      window.name = "window";
      window.type = "ints";
      window.optional = true;
      window.default_value = "none";
      window.hidden = true;
      e.params.push_back(window);
    }
  }
}

Entry parse_entry(const std::string& name, const YAML::Node& node, bool plugin) {
  Entry e;
  e.name = name;
  if (!node.IsMap()) throw std::runtime_error("expected keys such as 'signature'");
  for (const auto& pair : node)
    if (const std::string key = pair.first.as<std::string>();
        !(plugin ? kPluginKeys : kKeys).count(key))
      throw std::runtime_error("unknown key '" + key + "'");
  e.signature = text_of(node, "signature");
  e.doc = text_of(node, "doc");
  e.cost = text_of(node, "cost");
  e.view = text_of(node, "view");
  e.write = text_of(node, "write");
  e.in_place = text_of(node, "in_place");
  e.layer = text_of(node, "layer");
  e.precision = text_of(node, "precision");
  e.aliases = list_of(node, "alias");
  e.samples = list_of(node, "samples");
  e.overloads = list_of(node, "overloads");
  e.images = list_of(node, "images");
  e.decompose_for_fusion = text_of(node, "decompose_for_fusion");
  e.has_samples = static_cast<bool>(node["samples"]);
  if (node["version"]) e.version = node["version"].as<int>();
  if (plugin)
    parse_text_rules(e, node);
  else
    parse_rules(e, node);
  parse_signature(e);
  parse_dtypes(e, node["dtypes"]);
  parse_weights(e, node["weights"], false);
  parse_weights(e, node["states"], true);
  parse_traits(e, node);
  return e;
}

/// Runs `read` and gives its errors their place: that of the text if yaml-cpp knows it, else the
/// line of the entry.
template <class F>
auto with_place(const std::string& file, int line, const std::string& prefix, F read) {
  try {
    return read();
  } catch (const Error&) {
    throw;
  } catch (const YAML::Exception& error) {
    const bool placed = !error.mark.is_null();
    const bool is_conversion =
        dynamic_cast<const YAML::RepresentationException*>(&error) != nullptr;
    throw Error(ErrorCode::kConfig,
                prefix + (is_conversion ? "expected a text, found a list or a map" : error.msg),
                {file, placed ? error.mark.line + 1 : line, 0});
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kConfig, prefix + error.what(), {file, line, 0});
  }
}

std::vector<Entry> parse_entries(const YAML::Node& root, const std::string& file,
                                 const std::string& family, bool plugin) {
  std::vector<Entry> out;
  for (const auto& pair : root) {
    const int line = pair.first.Mark().line + 1;
    const std::string name =
        with_place(file, line, "", [&] { return pair.first.as<std::string>(); });
    out.push_back(with_place(file, line, name + ": ",
                             [&] { return parse_entry(name, pair.second, plugin); }));
    out.back().place = {file, line, 0};
    out.back().family = family;
  }
  return out;
}

}  // namespace

std::string Entry::identifier() const {
  static const std::set<std::string> kTaken = {"std",    "bool",    "double", "float", "int",
                                               "xor",    "and",     "or",     "not",   "new",
                                               "switch", "default", "signed"};
  std::string out = name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return kTaken.count(out) ? out + "_" : out;
}

std::string Entry::struct_name() const {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return out + "Attrs";
}

bool Entry::has_trait(std::string_view wanted) const {
  return std::find(traits.begin(), traits.end(), wanted) != traits.end();
}

const std::vector<std::pair<std::string, std::string>>& trait_names() { return kTraits; }

Parameters read_parameters(const std::string& file) {
  Parameters out;
  const YAML::Node root = with_place(file, 0, "", [&] { return YAML::LoadFile(file); });
  for (const auto& pair : root["synonyms"]) {
    const std::string name = pair.first.as<std::string>();
    for (const std::string& declared : list_of(root["synonyms"], name.c_str()))
      out.synonyms.emplace_back(name, declared);
  }
  out.ignored = list_of(root, "ignored");
  if (out.synonyms.empty() || out.ignored.empty())
    throw Error(ErrorCode::kConfig, "expected 'synonyms' and 'ignored'", {file});
  return out;
}

void read_schema(const std::string& file, std::vector<Family>& families) {
  const YAML::Node root = with_place(file, 0, "", [&] { return YAML::LoadFile(file); });
  const std::string name_of_family = std::filesystem::path(file).parent_path().filename().string();
  auto family = std::find_if(families.begin(), families.end(),
                             [&](const Family& f) { return f.name == name_of_family; });
  if (family == families.end()) family = families.insert(families.end(), {name_of_family, {}});
  for (Entry& entry : parse_entries(root, file, name_of_family, false))
    family->entries.push_back(std::move(entry));
}

std::vector<Entry> read_plugin_entries(const std::string& text, const std::string& file,
                                       const std::string& section) {
  const YAML::Node root = with_place(file, 0, "", [&] {
    const YAML::Node whole = YAML::Load(text);
    return section.empty() ? whole : whole[section];
  });
  if (!root.IsMap())
    throw Error(ErrorCode::kConfig, "expected operations by name", {file, line_of(root), 0});
  std::vector<Entry> entries = parse_entries(root, file, "", true);
  std::set<std::string> names;
  for (const Entry& e : entries) {
    const auto reject = [&](const std::string& why) {
      throw Error(ErrorCode::kConfig, e.name + ": " + why, e.place);
    };
    if (!names.insert(e.name).second) reject("declared twice");
    if (e.doc.empty()) reject("has no doc");
    if (!e.types.empty() && e.types.size() != e.results.size())
      reject("infer: has " + std::to_string(e.types.size()) + " types for " +
             std::to_string(e.results.size()) + " results");
    size_t operands = 0;
    for (const Param& p : e.params) operands += p.is_operand && !p.hidden;
    if (!e.gradients.empty() && e.gradients.size() != operands)
      reject("vjp: has " + std::to_string(e.gradients.size()) + " gradients for " +
             std::to_string(operands) + " operands");
  }
  return entries;
}

namespace {

void check_entry(const Entry& e, const std::set<std::string>& all, std::set<std::string>& names) {
  const auto reject = [&](const std::string& why) {
    throw Error(ErrorCode::kConfig, e.name + ": " + why, e.place);
  };
  if (!names.insert(e.name).second) reject("declared twice");
  for (const std::string& o : e.overloads)
    if (!all.count(o)) reject("unknown overload '" + o + "'");
  for (const std::string& image : e.images) {
    const auto named = [&](const auto& x) { return x.name == image; };
    if (std::none_of(e.params.begin(), e.params.end(), named) &&
        std::none_of(e.results.begin(), e.results.end(), named))
      reject("images: it has no parameter or result '" + image + "'");
  }
  if (e.doc.empty()) reject("has no doc");
  if (e.infer.empty()) reject("needs an inference rule");
  if (e.kernel.empty() && e.decompose.empty() && !e.has_trait("control_flow"))
    reject("has neither kernel nor decomposition");
  if (e.vjp == "decomposition" && e.decompose.empty()) reject("has no decomposition");
}

}  // namespace

void check(const std::vector<Family>& families) {
  std::set<std::string> names, all;
  for (const Family& family : families)
    for (const Entry& e : family.entries) all.insert(e.name);
  for (const Family& family : families)
    for (const Entry& e : family.entries) check_entry(e, all, names);
}

}  // namespace paddle::op_schema
