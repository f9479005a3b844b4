#include "llm/gguf_form.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <regex>

#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
#include "convert/rules.h"
#include "llm/expression.h"

namespace paddle::llm {

namespace {

using config::Node;

/// Names of tensors in GGUF files, for each of which `.weight` and `.bias` may follow.
constexpr const char* kNames[] = {"token_embd",    "token_embd_norm", "token_types",
                                  "position_embd", "output_norm",     "output"};
constexpr const char* kLayerNames[] = {"attn_norm",
                                       "attn_norm_2",
                                       "attn_q",
                                       "attn_k",
                                       "attn_v",
                                       "attn_qkv",
                                       "attn_output",
                                       "attn_q_norm",
                                       "attn_k_norm",
                                       "attn_output_norm",
                                       "layer_output_norm",
                                       "post_attention_norm",
                                       "post_ffw_norm",
                                       "ffn_norm",
                                       "ffn_gate",
                                       "ffn_up",
                                       "ffn_down",
                                       "ffn_gate_inp",
                                       "ffn_gate_inp_shexp",
                                       "ffn_gate_exps",
                                       "ffn_up_exps",
                                       "ffn_down_exps",
                                       "ffn_gate_shexp",
                                       "ffn_up_shexp",
                                       "ffn_down_shexp"};

/// The values of a family's overrides, `params.x=value`.
jinja::Dict params_of(const Family& family) {
  jinja::Dict out;
  for (const std::string& each : family.overrides) {
    const size_t end = each.find('=');
    const std::string name =
        each.substr(std::string_view("params.").size(), end - std::string_view("params.").size());
    std::string value = each.substr(end + 1);
    // Texts have quotes of their own.
    if (value.starts_with("\"'")) value = "\"" + value.substr(2, value.size() - 4) + "\"";
    out.set(name, jinja::from_json(parse_json(value, name)));
  }
  return out;
}

const jinja::Value* param_of(const jinja::Dict& dict, std::string_view name) {
  return dict.find(name);
}

/// A section of a family's file, with its place in errors.
const Node& at(const Node& section, const char* key) {
  const Node* const found = section.find(key);
  if (!found) throw Error(ErrorCode::kConfig, str("expected '", key, "'"), section.location());
  return *found;
}

RowOrder parse_order(const Node& node) {
  const std::string& word = node.as_string();
  if (word == "neighbors") return RowOrder::kNeighbors;
  if (word == "thirds") return RowOrder::kThirds;
  if (word == "groups") return RowOrder::kGroups;
  throw Error(ErrorCode::kConfig, "expected neighbors, thirds or groups, found '" + word + "'",
              node.location());
}

Array reordered_rows(const Array& given, const std::vector<int64_t>& order) {
  const Array from = given.contiguous();
  Array out = Array::empty(from.dtype, from.shape);
  const auto bytes = static_cast<size_t>(storage_bytes(from.dtype, from.size())) / order.size();
  auto* const to = static_cast<uint8_t*>(out.raw());
  const auto* const rows = static_cast<const uint8_t*>(from.raw());
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(to + i * bytes, rows + static_cast<size_t>(order[i]) * bytes, bytes);
  return out;
}

/// Number, name and rest of a family's weight of an expert: "layer.0.mixture.expert.3.gate.weight"
/// for "layer.0.mixture.expert.*.gate.weight".
std::string numbered(const std::string& name, size_t number) {
  const size_t star = name.find('*');
  return str(name.substr(0, star), number, name.substr(star + 1));
}

std::string text_of(const jinja::Value& value) {
  TextBudget budget("describing metadata", uint64_t{16} << 20);
  return value.text(budget);
}

bool same_value(const jinja::Value& a, const jinja::Value& b) {
  if (a.is_number() && b.is_number()) {
    // GGUF keeps floats in 32 bits.
    const auto x = static_cast<float>(a.number()), y = static_cast<float>(b.number());
    return x == y;
  }
  constexpr uint64_t kMaxSteps = 1'000'000;
  TextBudget budget("comparing metadata", 0, kMaxSteps);
  return jinja::equal(a, b, budget);
}

}  // namespace

std::vector<int64_t> row_order(RowOrder order, int64_t rows, int64_t heads, int64_t kv_heads) {
  std::vector<int64_t> out(static_cast<size_t>(rows));
  const int64_t parts = order == RowOrder::kNeighbors ? 2 * heads
                        : order == RowOrder::kThirds  ? 3 * heads
                        : order == RowOrder::kGroups  ? heads + 2 * kv_heads
                                                      : 1;
  if (parts < 1 || rows % parts != 0 ||
      (order == RowOrder::kGroups && (kv_heads < 1 || heads % kv_heads != 0)))
    fail(ErrorCode::kModel, rows, " rows are not those of ", heads, " heads");
  const int64_t size = rows / parts;  // of a half, or a head
  int64_t place = 0;
  const auto take = [&](int64_t part) {
    for (int64_t i = 0; i < size; ++i) out[static_cast<size_t>(place++)] = part * size + i;
  };
  switch (order) {
    case RowOrder::kAsIs:
      take(0);
      break;
    case RowOrder::kNeighbors:
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t i = 0; i < size; ++i)
          for (const int64_t half : {0, 1})
            out[static_cast<size_t>(place++)] = (2 * head + half) * size + i;
      break;
    case RowOrder::kThirds:
      for (int64_t third = 0; third < 3; ++third)
        for (int64_t head = 0; head < heads; ++head) take(3 * head + third);
      break;
    case RowOrder::kGroups: {
      const int64_t queries = heads / kv_heads, group = queries + 2;
      for (int64_t g = 0; g < kv_heads; ++g)
        for (int64_t q = 0; q < queries; ++q) take(g * group + q);
      for (const int64_t other : {queries, queries + 1})
        for (int64_t g = 0; g < kv_heads; ++g) take(g * group + other);
      break;
    }
  }
  return out;
}

GgufForm::GgufForm(const std::string& folder) : folder_(folder), files_(open_model_files(folder)) {
  const Family family = find_family(files_, "");
  const Node root = config::parse_document(config::read_text_file(family.file), family.file);
  const Node* const sources = root.find("sources");
  const Node* const gguf = sources->find("gguf");
  const Node* const section = sources->find("huggingface")->find("gguf");
  if (!gguf || !section)
    fail(ErrorCode::kModel, files_.config, ": models of type '", files_.type,
         "' are not written as GGUF files");
  const jinja::Dict params = params_of(family);
  jinja::Dict variables = files_.variables;
  variables.set("params", std::make_shared<const jinja::Dict>(params));
  variables.set("context", family.context > 0 ? family.context : files_.context);
  const jinja::Value all = std::make_shared<const jinja::Dict>(std::move(variables));
  if (const auto* size = param_of(params, "vocab_size")) vocab_size_ = size->integer();
  if (const auto* layers = param_of(params, "layers")) layers_ = layers->integer();
  read_section(*section, all);
  const std::string own = family.file.substr(0, family.file.rfind('/'));
  map_tensors(family, join_path(own, at(*gguf, "weights").as_string()));
  change_tensors(*section, all);
  add_frequencies(params);
  add_longrope(params);
  check_params(family, params);
}

/// Architecture and metadata.
void GgufForm::read_section(const Node& section, const jinja::Value& variables) {
  if (const Node* require = section.find("require"))
    for (const Node& condition : require->items)
      if (evaluate(condition, variables) != "true")
        fail(ErrorCode::kModel, files_.config, ": models of type '", files_.type,
             "' are written as GGUF files only where ", condition.text);
  const Node& named = at(section, "architecture");
  const std::string name = evaluate(named, variables);
  architecture_ = parse_json(name, named.text).text;
  if (architecture_.empty())
    throw Error(ErrorCode::kConfig, "expected a text, found " + name, named.location());
  metadata_.add_text("general.architecture", architecture_);
  for (const config::Entry& entry : at(section, "metadata").entries) {
    const std::string key = architecture_ + "." + entry.key.text;
    const Json value = parse_json(evaluate(entry.value, variables), entry.value.text);
    switch (value.kind) {
      case Json::Kind::kNull:
        continue;
      case Json::Kind::kString:
        metadata_.add_text(key, value.text);
        break;
      case Json::Kind::kBoolean:
        metadata_.add_boolean(key, value.boolean);
        break;
      case Json::Kind::kNumber:
        metadata_.add_number(key, static_cast<float>(value.number));
        break;
      case Json::Kind::kInteger:
        if (value.integer < 0 || value.integer > UINT32_MAX)
          fail(ErrorCode::kModel, files_.config, ": ", entry.key.text, " is ", value.integer,
               ", which GGUF files do not hold");
        metadata_.add_integer(key, static_cast<uint32_t>(value.integer));
        break;
      default:
        throw Error(ErrorCode::kConfig, "expected a number, a boolean or a text",
                    entry.value.location());
    }
    std::string variable = entry.key.text;
    std::replace(variable.begin(), variable.end(), '.', '_');
    keys_.set(variable, jinja::from_json(value));
  }
}

void GgufForm::add_tensor(const std::string& name, Origin origin, bool theirs_transposed) {
  const auto& stored = files_.weights->tensors();
  const convert::StoredTensor& first = stored[origin.parts.front()];
  origin.transposed = origin.transposed != theirs_transposed;
  Tensor tensor{name, first.dtype, first.shape};
  if (tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) tensor.dtype = DType::kF32;
  for (const size_t part : origin.parts)
    if (stored[part].shape != first.shape)
      fail(ErrorCode::kModel, folder_, ": '", stored[part].name, "' is ", str(stored[part].shape),
           ", '", first.name, "' is ", str(first.shape));
  if (tensor.shape.size() < 2) origin.transposed = false;
  if (origin.transposed) std::reverse(tensor.shape.begin(), tensor.shape.end());
  // As other programs expect it: a matrix of one row is a vector.
  if (tensor.shape.size() == 2 && tensor.shape[0] == 1) tensor.shape.erase(tensor.shape.begin());
  if (tensor.shape.size() < 2) tensor.dtype = DType::kF32;
  if (origin.parts.size() > 1)
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(origin.parts.size()));
  tensors_.push_back(std::move(tensor));
  origins_.push_back(std::move(origin));
}

/// The names of GGUF that become the family's names of the folder's weights.
void GgufForm::map_tensors(const Family& family, const std::string& rules) {
  struct Weight {
    size_t index = 0;
    bool transposed = false, used = false;
  };
  std::map<std::string, Weight> weights;
  convert::Rules theirs = convert::Rules::read(family.rules), gguf = convert::Rules::read(rules);
  const auto& stored = files_.weights->tensors();
  for (size_t i = 0; i < stored.size(); ++i)
    if (const auto outcome = theirs.apply(stored[i].name); !outcome.dropped)
      weights[outcome.name] = {i, outcome.transposed, false};
  const auto take = [&](const std::string& name) {
    const auto outcome = gguf.apply(name);
    const bool experts = outcome.name.find('*') != std::string::npos;
    Origin origin;
    for (size_t number = 0;; ++number) {
      const auto found = weights.find(experts ? numbered(outcome.name, number) : outcome.name);
      if (found == weights.end() || found->second.used) break;
      found->second.used = true;
      origin.transposed = found->second.transposed;
      origin.parts.push_back(found->second.index);
      if (!experts) break;
    }
    if (!origin.parts.empty()) add_tensor(name, std::move(origin), outcome.transposed);
  };
  for (const char* end : {".weight", ".bias"})
    for (const char* name : kNames) take(str(name, end));
  // No layer has less than one weight.
  for (int64_t i = 0; i < std::min(layers_, static_cast<int64_t>(stored.size())); ++i)
    for (const char* name : kLayerNames)
      for (const char* end : {".weight", ".bias"}) take(str("blk.", i, ".", name, end));
  for (const auto& [name, weight] : weights)
    if (!weight.used)
      fail(ErrorCode::kModel, folder_, ": '", stored[weight.index].name,
           "' has no place in a GGUF file of the architecture '", architecture_, "'");
}

/// Applies the differences between the weights of folders and of GGUF files.
void GgufForm::change_tensors(const Node& section, const jinja::Value& variables) {
  const Node* transforms = section.find("transforms");
  if (!transforms) transforms = section.find("changes");  // an older name
  if (!transforms) return;
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors_) names.push_back(tensor.name);
  for (const Node& transform : transforms->items) {
    const Node* const when = transform.find("when");
    if (when && evaluate(*when, variables) != "true") continue;
    const std::regex match(at(transform, "match").as_string());
    const auto number = [&](const char* key) {
      const Node* const node = transform.find(key);
      return node ? integer_of(*node, evaluate(*node, variables)) : int64_t{0};
    };
    const int64_t heads = number("heads"), kv_heads = number("kv_heads");
    const Node *const order = transform.find("rows"), *const added = transform.find("add"),
                      *const renamed = transform.find("rename");
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!std::regex_search(names[i], match)) continue;
      if (renamed) tensors_[i].name = std::regex_replace(names[i], match, renamed->as_string());
      if (order) {
        origins_[i].order = parse_order(*order);
        origins_[i].heads = heads;
        origins_[i].kv_heads = kv_heads;
      }
      if (!added) continue;
      origins_[i].added = static_cast<float>(added->as_double());
      tensors_[i].dtype = DType::kF32;
    }
  }
}

/// Llama 3's scaling of frequencies, which GGUF files have as divisors: 1 for high frequencies, the
/// factor for low ones, and a transition.
void GgufForm::add_frequencies(const jinja::Dict& params) {
  const auto* const type = param_of(params, "rope_type");
  const auto* const head = param_of(params, "head_dim");
  if (!type || text_of(*type) != "llama3" || !head) return;
  const auto number = [&](const char* name) { return param_of(params, name)->number(); };
  const int64_t size = head->integer();
  std::vector<float> divisors;
  for (int64_t i = 0; i + 1 < size; i += 2) {
    const double frequency =
        std::pow(number("rope_base"), -static_cast<double>(i) / static_cast<double>(size));
    const double turns = frequency * number("rope_context") / (2 * std::numbers::pi);
    const double kept = std::clamp(
        (turns - number("rope_low")) / (number("rope_high") - number("rope_low")), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / (kept + (1 - kept) / number("rope_factor"))));
  }
  add_divisors("rope_freqs.weight", divisors);
  has_frequencies_ = true;
}

void GgufForm::add_divisors(const std::string& name, const std::vector<float>& divisors) {
  const auto count = static_cast<int64_t>(divisors.size());
  tensors_.push_back({name, DType::kF32, {count}});
  Origin origin;
  origin.value = Array::from<float>(divisors, {count});
  origins_.push_back(std::move(origin));
}

/// LongRoPE's divisors of frequencies for short and long texts, and the factor of cosines and
/// sines, which GGUF files have as a number.
void GgufForm::add_longrope(const jinja::Dict& params) {
  const auto* const longer = param_of(params, "rope_long");
  if (!longer || !longer->truth()) return;
  const int64_t count = param_of(params, "rotary_width")->integer() / 2;
  for (const char* const length : {"short", "long"}) {
    const jinja::Value& given = *param_of(params, str("rope_", length));
    std::vector<float> divisors;
    if (given.is_list())
      for (const jinja::Value& each : given.items().values)
        if (each.is_number()) divisors.push_back(static_cast<float>(each.number()));
    if (static_cast<int64_t>(divisors.size()) != count)
      fail(ErrorCode::kModel, files_.config, ": ", length, "_factor of LongRoPE has ",
           divisors.size(), " numbers, expected ", count);
    add_divisors(str("rope_factors_", length, ".weight"), divisors);
  }
  const auto number = [&](const char* name) { return param_of(params, name)->number(); };
  const double given = number("rope_attention"), growth = number("rope_factor");
  const double factor = given > 0 ? given
                        : growth > 1
                            ? std::sqrt(1 + std::log(growth) / std::log(number("rope_context")))
                            : 1;
  metadata_.add_number(architecture_ + ".rope.scaling.attn_factor", static_cast<float>(factor));
  keys_.set("rope_scaling_attn_factor", factor);
  has_longrope_ = true;
}

/// The params that a GGUF file gives must be those of the folder, where its weights do not differ.
void GgufForm::check_params(const Family& family, const jinja::Dict& params) const {
  ModelFiles written;
  written.kind = "gguf";
  written.config = folder_;
  written.type = architecture_;
  written.context = files_.context;
  for (const auto& [key, value] : keys_.entries) {
    written.variables.set(key, value);
    written.keys.push_back(key.string());
  }
  std::vector<jinja::Value> names;
  for (const Tensor& tensor : tensors_) names.emplace_back(tensor.name);
  written.variables.set("tensors", jinja::Value::list(std::move(names)));
  written.variables.set("architecture", architecture_);
  written.variables.set("tokens", vocab_size_);
  written.variables.set("token_types", int64_t{2});
  const jinja::Dict theirs = params_of(find_family(written, family.file));
  const bool reordered = std::any_of(origins_.begin(), origins_.end(), [](const Origin& each) {
    return each.order != RowOrder::kAsIs;
  });
  const auto* const type = param_of(params, "rope_type");
  const auto* const experts = param_of(params, "experts");
  const bool dense = experts && !experts->truth();
  const bool plain_rope = type && text_of(*type) == "default";
  for (const auto& [key, value] : params.entries) {
    const std::string& name = key.string();
    const jinja::Value* const other = param_of(theirs, name);
    const bool follows =
        (reordered && (name == "interleaved" || name == "grouped")) ||
        (plain_rope && name == "rope_context") || (has_frequencies_ && name.starts_with("rope_")) ||
        (has_longrope_ && name.starts_with("rope_") && name != "rope_base" &&
         name != "rope_context") ||
        (dense && (name == "experts_per_token" || name == "expert_intermediate_size" ||
                   name == "norm_topk_prob"));
    if (!other || follows || same_value(value, *other)) continue;
    fail(ErrorCode::kModel, files_.config, ": the model has ", name, "=", text_of(value),
         ", which a GGUF file of the architecture '", architecture_, "' cannot say (it has ",
         text_of(*other), ")");
  }
  if (type && text_of(*type) == "llama3" && !param_of(theirs, "rope_factors"))
    fail(ErrorCode::kModel, files_.config,
         ": the model scales its frequencies (rope_type llama3), "
         "which a GGUF file of the architecture '",
         architecture_, "' cannot say");
}

Array GgufForm::part(const Origin& origin, size_t index) const {
  Array value = files_.weights->read(origin.parts[index]);
  if (origin.transposed) {
    std::reverse(value.shape.begin(), value.shape.end());
    std::reverse(value.strides.begin(), value.strides.end());
  }
  value = value.contiguous();
  if (origin.order == RowOrder::kAsIs) return value;
  return reordered_rows(value,
                        row_order(origin.order, value.shape[0], origin.heads, origin.kv_heads));
}

Array GgufForm::read(size_t index) const {
  const Tensor& tensor = tensors_.at(index);
  const Origin& origin = origins_.at(index);
  if (origin.parts.empty()) return origin.value;
  Array out;
  if (origin.parts.size() == 1) {
    out = part(origin, 0).cast(tensor.dtype).contiguous();
  } else {
    out = Array::empty(tensor.dtype, tensor.shape);
    const auto bytes =
        static_cast<size_t>(storage_bytes(out.dtype, out.size())) / origin.parts.size();
    for (size_t i = 0; i < origin.parts.size(); ++i)
      std::memcpy(static_cast<uint8_t*>(out.raw()) + i * bytes,
                  part(origin, i).cast(tensor.dtype).contiguous().raw(), bytes);
  }
  out.shape = tensor.shape;
  out.strides = contiguous_strides(out.shape);
  if (origin.added == 0) return out;
  Array sums = Array::empty(DType::kF32, tensor.shape);
  for (int64_t i = 0; i < out.size(); ++i)
    sums.data<float>()[i] = out.data<float>()[i] + origin.added;
  return sums;
}

}  // namespace paddle::llm
