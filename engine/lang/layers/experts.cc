// `experts`: a mixture of experts. Its options are maps, and which parameters it has depends on
// them, so that it is a call of the language in terms of the operations of
// ops/transformer/experts.yaml and not an operation.

#include "lang/layers/experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "lang/eval/evaluation.h"
#include "lang/layers/initializer_words.h"

namespace paddle::lang {
namespace {

constexpr std::string_view kExperts = "experts";
constexpr int64_t kMaxExperts = 65536;

template <class... Parts>
[[noreturn]] void reject_experts(const Parts&... parts) {
  fail(ErrorCode::kConfig, kExperts, ": ", parts...);
}

/// The options of a map, of which only `names` may be there.
class OptionMap {
 public:
  OptionMap(const Value& value, std::string path, std::vector<std::string> names)
      : path_(std::move(path)) {
    const auto* const map = value.get<Value::Map>();
    if (!map) reject_experts(path_, " must be a map, found ", value.describe());
    for (const auto& [key, entry] : *map->entries) {
      if (std::find(names.begin(), names.end(), key) == names.end())
        reject_experts(path_, ": unknown key '", key, "'", did_you_mean(key, names));
      entries_.emplace_back(key, entry);
    }
  }

  const Value* find(std::string_view key) const {
    for (const auto& [name, value] : entries_)
      if (name == key) return &value;
    return nullptr;
  }
  std::string path_of(std::string_view key) const { return str(path_, ".", key); }

 private:
  std::string path_;
  NamedValues entries_;
};

/// A word: text, or the name of an operation or of no value that is spelled like it.
std::string word_of(const Value& value, const std::string& name,
                    std::initializer_list<std::string_view> words) {
  std::string text;
  if (const auto* given = value.get<std::string>()) text = *given;
  if (const auto* callee = value.get<Callable>()) text = callee->name;
  if (value.is_none()) text = "none";
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  reject_experts(name, " must be ",
                 join(std::vector<std::string>(words.begin(), words.end()), ", "),
                 text.empty() ? str(", found ", value.describe()) : str(", not '", text, "'"));
}

int64_t count_of(const Value& value, const std::string& name, int64_t most) {
  if (!value.is_integer() || value.is<bool>())
    reject_experts(name, " must be an integer, found ", value.describe());
  if (value.integer() < 1 || value.integer() > most)
    reject_experts(name, " must be from 1 to ", most, ", not ", value.integer());
  return value.integer();
}

double positive_number(const Value& value, const std::string& name) {
  if (!value.is_number() || value.is<bool>())
    reject_experts(name, " must be a number, found ", value.describe());
  const double number = value.number();
  if (!(number > 0) || !std::isfinite(number))
    reject_experts(name, " must be positive and finite, not ", number);
  return number;
}

struct ExpertOptions {
  int64_t count = 0, chosen = 0, inner = 0;
  std::string scores = "softmax", normalize = "chosen", activation = "silu_gated";
  double scale = 1;
  int64_t groups = 1, chosen_groups = 1;
  int64_t shared_inner = 0;  ///< 0: no shared expert
  bool shared_gate = false;
  std::optional<double> bias_rate;
  std::optional<Initializer> weight_init;

  bool gated() const { return activation == "silu_gated"; }
};

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

void read_gate(const Value& value, ExpertOptions& o) {
  const OptionMap gate(value, "gate", {"scores", "normalize", "scale", "groups", "chosen_groups"});
  if (const Value* v = gate.find("scores"))
    o.scores = word_of(*v, "gate.scores", {"softmax", "sigmoid"});
  if (const Value* v = gate.find("normalize"))
    o.normalize = word_of(*v, "gate.normalize", {"none", "chosen", "all"});
  if (const Value* v = gate.find("scale")) o.scale = positive_number(*v, "gate.scale");
  if (const Value* v = gate.find("groups")) o.groups = count_of(*v, "gate.groups", o.count);
  o.chosen_groups = o.groups;
  if (const Value* v = gate.find("chosen_groups"))
    o.chosen_groups = count_of(*v, "gate.chosen_groups", o.groups);
  if (o.count % o.groups != 0)
    reject_experts("gate.groups: ", o.count, " experts are not a multiple of ", o.groups,
                   " groups");
  if (o.chosen > o.count / o.groups * o.chosen_groups)
    reject_experts("chosen is ", o.chosen, ", but gate.chosen_groups leaves ",
                   o.count / o.groups * o.chosen_groups, " experts");
}

ExpertOptions read_options(const std::vector<std::optional<Value>>& bound) {
  enum { kX, kCount, kChosen, kInner, kGate, kShared, kBalance, kCapacity, kActivation, kInit };
  const auto given = [&](size_t i) { return bound[i].has_value(); };
  for (const auto& [i, name] :
       {std::pair{kX, "x"}, {kCount, "count"}, {kChosen, "chosen"}, {kInner, "inner"}})
    if (!given(static_cast<size_t>(i))) reject_experts("'", name, "' is missing");
  ExpertOptions o;
  o.count = count_of(*bound[kCount], "count", kMaxExperts);
  o.chosen = count_of(*bound[kChosen], "chosen", o.count);
  o.inner = count_of(*bound[kInner], "inner", kMaxSize / 2);
  if (given(kGate) && !bound[kGate]->is_none()) read_gate(*bound[kGate], o);
  if (given(kActivation))
    o.activation = word_of(*bound[kActivation], "activation", {"silu_gated", "relu", "gelu"});
  if (given(kCapacity)) word_of(*bound[kCapacity], "capacity", {"none"});
  if (given(kShared) && !bound[kShared]->is_none()) {
    if (bound[kShared]->is_integer()) {
      o.shared_inner = count_of(*bound[kShared], "shared", kMaxSize / 2 / o.inner) * o.inner;
    } else {
      const OptionMap shared(*bound[kShared], "shared", {"inner", "gate"});
      const Value* const inner = shared.find("inner");
      if (!inner) reject_experts("shared.inner is missing");
      o.shared_inner = count_of(*inner, "shared.inner", kMaxSize / 2);
      if (const Value* v = shared.find("gate"))
        o.shared_gate = word_of(*v, "shared.gate", {"none", "sigmoid"}) == "sigmoid";
    }
  }
  if (given(kBalance) && !bound[kBalance]->is_none()) {
    const OptionMap balance(*bound[kBalance], "balance", {"bias"});
    if (const Value* v = balance.find("bias"); v && !v->is_none()) {
      const OptionMap bias(*v, "balance.bias", {"rate"});
      const Value* const rate = bias.find("rate");
      o.bias_rate = rate ? positive_number(*rate, "balance.bias.rate") : 0.001;
    }
  }
  if (given(kInit) && !bound[kInit]->is_none()) o.weight_init = to_initializer(*bound[kInit]);
  return o;
}

/// One call of the layer, whose parameters are under `path`.
class ExpertLayer {
 public:
  ExpertLayer(Evaluation& evaluation, const ExpertOptions& options, std::string path,
              const SourcePosition& where)
      : evaluation_(evaluation), o_(options), path_(std::move(path)), where_(where) {}

  Value run(const Tensor& x) {
    if (x.ndim() < 1 || !is_float(x.dtype()))
      reject_experts("x must be floats [..., width], not ", x.type());
    if (!x.dim(-1).is_constant())
      reject_experts("the width of x is the dim '", x.dim(-1),
                     "', but a parameter's size must be a number");
    width_ = x.dim(-1).value();
    Shape shape = x.shape();
    x_ = reshape(Value(x), {-1, width_});
    choose();
    const Value order = call("expert_order", {index_, integer(o_.count)});
    const Value pairs = (*order.items())[0], counts = (*order.items())[1];
    Value rows = call("expert_rows", {x_, pairs, integer(o_.chosen)});
    const int64_t up = o_.gated() ? 2 * o_.inner : o_.inner;
    rows = call("grouped_matmul",
                {rows, weight("up_weight", {o_.count, width_, up}, width_, up), counts});
    rows = call("grouped_matmul",
                {activated(rows),
                 weight("down_weight", {o_.count, o_.inner, width_}, o_.inner, width_), counts});
    // Weights are float32; the sum has the type of the rows.
    Value out = call("expert_sum", {rows, pairs, cast_like(weights_, rows)});
    if (o_.shared_inner > 0) out = binary("+", out, shared());
    if (o_.bias_rate && evaluation_.options().training) move_bias(counts);
    ValueList sizes;
    for (const Dim& dim : shape) sizes.emplace_back(dim);
    return call("reshape", {out, Value::list(std::move(sizes))});
  }

 private:
  static Value integer(int64_t value) { return Value(value); }
  Value call(std::string_view op, std::vector<Value> operands, NamedValues named = {}) {
    return evaluation_.operations().op(op, std::move(operands), where_, std::move(named));
  }
  Value binary(std::string_view op, const Value& a, const Value& b) {
    return evaluation_.operations().binary(op, a, b, where_);
  }
  Value reshape(const Value& x, const Dims& shape) {
    ValueList sizes;
    for (const int64_t size : shape) sizes.emplace_back(size);
    return call("reshape", {x, Value::list(std::move(sizes))});
  }
  Value cast(const Value& x, DType dtype) {
    return x.tensor().dtype() == dtype ? x : call("cast", {x, Value(std::string(text(dtype)))});
  }
  Value cast_like(const Value& x, const Value& like) { return cast(x, like.tensor().dtype()); }
  Value sum_last(const Value& x, bool keepdim = true) {
    return call("sum", {x}, {{"axis", integer(-1)}, {"keepdim", Value(keepdim)}});
  }

  /// A matrix, or one for each expert, that starts as those of `linear` do.
  Value weight(const std::string& name, const Dims& shape, int64_t in, int64_t out) {
    const double bound = std::sqrt(6.0 / static_cast<double>(in + out));
    const Initializer init =
        o_.weight_init.value_or(Initializer{Initializer::Kind::kUniform, -bound, bound, {}});
    return Value(
        evaluation_.variables().parameter(path_ + "." + name, shape, DType::kF32, init, where_));
  }

  /// The experts of each token and their weights, in float32. Gradients go through the weights.
  void choose() {
    const Value router = weight("router_weight", {width_, o_.count}, width_, o_.count);
    const DType full = x_.tensor().dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
    const Value logits = call("matmul", {cast(x_, full), cast(router, full)});
    const Value scores =
        o_.scores == "softmax" ? call("softmax", {logits, integer(-1)}) : call("sigmoid", {logits});
    Value preference = scores;
    if (o_.bias_rate) {
      bias_path_ = path_ + ".bias";
      bias_ = evaluation_.variables().state(bias_path_, {o_.count}, DType::kF32,
                                            Initializer::constant(0), StateScope::kModel, where_);
      preference = binary("+", preference, cast(Value(bias_.tensor()), full));
    }
    if (o_.chosen_groups < o_.groups) preference = within_groups(preference);
    const Value best = call("topk", {preference, integer(o_.chosen), integer(-1)});
    index_ = (*best.items())[1];
    const auto of_chosen = [&](const Value& values) {
      return call("gather_along", {values, index_, integer(1)});
    };
    if (o_.normalize == "all") {
      weights_ = call("softmax", {of_chosen(logits), integer(-1)});
    } else {
      weights_ = of_chosen(scores);
      if (o_.normalize == "chosen" && (o_.chosen > 1 || o_.scores == "sigmoid"))
        weights_ = binary("/", weights_, binary("+", sum_last(weights_), Value(1e-20)));
    }
    if (o_.scale != 1) weights_ = binary("*", weights_, Value(o_.scale));
  }

  /// The preference, minus infinity for experts outside of each token's best groups. The score of a
  /// group is the sum of its two best experts'.
  Value within_groups(const Value& preference) {
    const int64_t each = o_.count / o_.groups;
    const Value grouped = reshape(preference, {-1, o_.groups, each});
    const Value two = call("topk", {grouped, integer(std::min<int64_t>(2, each)), integer(-1)});
    const Value score = sum_last((*two.items())[0], false);
    const Value best = call("topk", {score, integer(o_.chosen_groups), integer(-1)});
    const Value groups =
        call("arange", {integer(0), integer(o_.groups), integer(1)}, {{"dtype", Value("int64")}});
    // [tokens, 1, groups] == [tokens, chosen groups, 1]
    const Value is = evaluation_.operations().compare(
        "==", call("unsqueeze", {groups, Value::list({integer(0), integer(1)})}),
        call("unsqueeze", {(*best.items())[1], Value::list({integer(-1)})}), where_);
    const Value inside = call("any", {is}, {{"axis", integer(1)}});
    const Value kept = call("where", {call("unsqueeze", {inside, Value::list({integer(-1)})}),
                                      grouped, Value(-std::numeric_limits<double>::infinity())});
    return reshape(kept, {-1, o_.count});
  }

  Value activated(const Value& rows) {
    if (o_.gated()) return call("swiglu", {rows});
    return call(o_.activation, {rows});
  }

  /// The expert for all tokens.
  Value shared() {
    const int64_t inner = o_.shared_inner, up = o_.gated() ? 2 * inner : inner;
    const Value hidden =
        activated(call("matmul", {x_, weight("shared_up_weight", {width_, up}, width_, up)}));
    const Value out =
        call("matmul", {hidden, weight("shared_down_weight", {inner, width_}, inner, width_)});
    if (!o_.shared_gate) return out;
    const Value gate = weight("shared_gate_weight", {width_, 1}, width_, 1);
    return binary("*", call("sigmoid", {call("matmul", {x_, gate})}), out);
  }

  /// Raises the bias of experts with fewer tokens than the mean and lowers that of the others.
  void move_bias(const Value& counts) {
    const Value load = cast(counts, DType::kF32);
    const Value missing = binary("-", call("mean", {load}), load);
    const Value moved = binary("+", Value(bias_.tensor()),
                               binary("*", call("sign", {missing}), Value(*o_.bias_rate)));
    const Value centered = binary("-", moved, call("mean", {moved}));
    evaluation_.variables().update_state(bias_path_, centered.tensor(), where_);
  }

  Evaluation& evaluation_;
  const ExpertOptions& o_;
  std::string path_, bias_path_;
  const SourcePosition& where_;
  int64_t width_ = 0;
  Value x_, index_, weights_, bias_;
};

}  // namespace

bool is_experts_word(std::string_view word) {
  // The others are names of operations, or `none`.
  constexpr std::array<std::string_view, 3> kWords = {"chosen", "all", "silu_gated"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

Value Evaluation::call_experts(Arguments arguments, const Site& site, Frame& frame) {
  static const std::vector<std::string> kNames = {"x",          "count",      "chosen",  "inner",
                                                  "gate",       "shared",     "balance", "capacity",
                                                  "activation", "weight_init"};
  const std::string path = variables_.layer_path(std::string(kExperts), arguments, site, frame);
  const LayerScope layer(*this, path);
  return with_location_scope(site.where, [&]() -> Value {
    return with_argument_location(arguments.places, [&]() -> Value {
      const std::vector<std::optional<Value>> bound = arguments.bind(kExperts, kNames);
      const ExpertOptions options = read_options(bound);
      const Tensor x = operations_.to_tensor(*bound[0], site.where, kExperts);
      variables_.forget_used();
      const Value out = ExpertLayer(*this, options, path, site.where).run(x);
      if (this->options().observer && !is_abstract())
        record({path,
                std::string(kExperts),
                false,
                0,
                site.where,
                {x.type()},
                {out.tensor().type()},
                variables_.used()});
      return out;
    });
  });
}

}  // namespace paddle::lang
