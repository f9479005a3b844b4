// Operators of ai.onnx.ml.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "onnx/operators.h"

namespace paddle::onnx {
namespace {

Values array_feature_extractor(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Tensor out =
      ops::index_select(x, ops::reshape(ops::cast(c.tensor(1), DType::kI64), Shape{-1}), -1);
  return {x.ndim() == 1 ? ops::unsqueeze(out, {0}) : out};
}

Values binarizer(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {ops::cast(ops::greater_than(x, scalar(c.real("threshold", 0), x.dtype())), x.dtype())};
}

Values scaler(NodeCall& c) {
  const Tensor x = ops::cast(c.tensor(0), DType::kF32);
  const auto row = [&](const char* name, double otherwise) {
    const auto values = c.reals(name, {otherwise});
    return ops::cast(Tensor(Array::from(values, {static_cast<int64_t>(values.size())})),
                     DType::kF32);
  };
  return {(x - row("offset", 0)) * row("scale", 1)};
}

Values normalizer(NodeCall& c) {
  const Tensor x = ops::cast(c.tensor(0), DType::kF32);
  const std::string norm = c.word("norm", "MAX");
  const std::vector<int64_t> axis = {-1};
  if (norm == "MAX") return {x / ops::max(ops::abs(x), axis, true)};
  if (norm == "L1") return {x / ops::sum(ops::abs(x), axis, DType::kF32, true)};
  c.check(norm == "L2", "unknown norm '", norm, "'");
  return {x / ops::sqrt(ops::sum(x * x, axis, DType::kF32, true))};
}

// ---- labels
// ----------------------------------------------------------------------------------

/// Keys or values of a LabelEncoder as strings, whatever their type; -0 and 0 are one, so are NaN.
std::string key_text(double v) { return std::isnan(v) ? "nan" : format_double(v == 0 ? 0.0 : v); }

std::vector<std::string> texts_of(const Value& v) {
  if (v.kind() == Value::Kind::kStrings) return v.strings().items;
  const Array& a = v.tensor().array();
  std::vector<std::string> out;
  for (int64_t i = 0; i < a.size(); ++i)
    out.push_back(is_float(a.dtype) ? key_text(a.number(i)) : std::to_string(a.integer(i)));
  return out;
}

/// The list that a node gives as keys_... or values_..., as a vector.
Value listed(const NodeCall& c, const std::string& what) {
  if (const auto* t = c.find(what + "_tensor"); t && !t->tensors.empty())
    return Value::of(t->tensors[0]);
  if (const auto* s = c.find(what + "_strings"))
    return Value::of_strings({static_cast<int64_t>(s->strings.size())}, s->strings);
  if (const auto* i = c.find(what + "_int64s"))
    return Tensor(Array::from(i->ints, {static_cast<int64_t>(i->ints.size())}));
  if (const auto* f = c.find(what + "_floats"))
    return Tensor(Array::from(f->floats, {static_cast<int64_t>(f->floats.size())}));
  c.refuse("it has no ", what);
}

Values label_encoder(NodeCall& c) {
  const Value keys = listed(c, "keys"), values = listed(c, "values");
  const auto texts = texts_of(keys);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < texts.size(); ++i) places.try_emplace(texts[i], i);
  Value x = c.value(0);
  if (x.is_tensor()) x = Value(Tensor(c.known(0)));
  const auto wanted = texts_of(x);
  const Dims shape = concrete(x.shape());
  if (values.kind() == Value::Kind::kStrings) {
    std::string other = c.word("default_string", "_Unused");
    if (const auto* t = c.find("default_tensor");
        t && !t->tensors.empty() && !t->tensors[0].strings.empty())
      other = t->tensors[0].strings[0];
    std::vector<std::string> out;
    for (const std::string& w : wanted) {
      const auto it = places.find(w);
      out.push_back(it == places.end() ? other : values.strings().items.at(it->second));
    }
    return {Value::of_strings(shape, out)};
  }
  const Array table = values.tensor().array().contiguous();
  Array other =
      Array::scalar(is_float(table.dtype) ? c.real("default_float", 0)
                                          : static_cast<double>(c.integer("default_int64", -1)))
          .cast(table.dtype);
  if (const auto* t = c.find("default_tensor"); t && !t->tensors.empty())
    other = t->tensors[0].array.cast(table.dtype);
  Array out = Array::empty(table.dtype, shape);
  const auto item = static_cast<size_t>(item_size(table.dtype));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto it = places.find(wanted[i]);
    const bool found = it != places.end() && static_cast<int64_t>(it->second) < table.size();
    const auto* from = static_cast<const std::byte*>(found ? table.raw() : other.raw());
    std::memcpy(out.storage->data() + i * item, from + (found ? it->second * item : 0), item);
  }
  return {Tensor(out)};
}

// ---- trees
// -----------------------------------------------------------------------------------

/// The trees of a TreeEnsemble as its attributes list them.
struct Trees {
  std::vector<int64_t> features, on_true, on_false, true_leaf, false_leaf, missing, targets, roots;
  std::vector<double> splits, weights;
  std::vector<int64_t> modes;
  std::vector<std::set<double>> members;  ///< per node, of those that ask for membership

  bool holds(size_t node, double x) const {
    if (std::isnan(x) && node < missing.size() && missing[node] != 0) return true;
    const double s = splits[node];
    switch (modes[node]) {
      case 0:
        return x <= s;
      case 1:
        return x < s;
      case 2:
        return x >= s;
      case 3:
        return x > s;
      case 4:
        return x == s;
      case 5:
        return x != s;
      default:
        return members[node].count(x) > 0;
    }
  }
  /// The leaf that a row of features comes to.
  size_t leaf(size_t root, const Array& x, int64_t row) const {
    const int64_t columns = x.shape[1];
    size_t node = root;
    for (size_t steps = 0; steps <= splits.size(); ++steps) {
      if (node >= splits.size() || features[node] < 0 || features[node] >= columns)
        fail(ErrorCode::kModel, "a tree names a node or feature that is not there");
      const bool yes = holds(node, x.number(row * columns + features[node]));
      const int64_t next = yes ? on_true[node] : on_false[node];
      if (next < 0) fail(ErrorCode::kModel, "a tree names the node ", next);
      if ((yes ? true_leaf : false_leaf)[node] != 0) return static_cast<size_t>(next);
      node = static_cast<size_t>(next);
    }
    fail(ErrorCode::kModel, "a tree goes round in a circle");
  }
};

std::vector<double> numbers_of(const NodeCall& c, const char* name) {
  std::vector<double> out;
  if (const auto* a = c.find(name); a && !a->tensors.empty())
    for (int64_t i = 0; i < a->tensors[0].array.size(); ++i)
      out.push_back(a->tensors[0].array.number(i));
  return out;
}

Trees trees_of(const NodeCall& c) {
  Trees t;
  t.features = c.integers("nodes_featureids");
  t.on_true = c.integers("nodes_truenodeids");
  t.on_false = c.integers("nodes_falsenodeids");
  t.true_leaf = c.integers("nodes_trueleafs");
  t.false_leaf = c.integers("nodes_falseleafs");
  t.missing = c.integers("nodes_missing_value_tracks_true");
  t.targets = c.integers("leaf_targetids");
  t.roots = c.integers("tree_roots");
  t.splits = numbers_of(c, "nodes_splits");
  t.weights = numbers_of(c, "leaf_weights");
  for (const double m : numbers_of(c, "nodes_modes")) t.modes.push_back(static_cast<int64_t>(m));
  const size_t n = t.splits.size();
  c.check(t.features.size() == n && t.on_true.size() == n && t.on_false.size() == n &&
              t.true_leaf.size() == n && t.false_leaf.size() == n && t.modes.size() == n &&
              t.targets.size() == t.weights.size(),
          "the lists of nodes and leaves differ in length");
  t.members.resize(n);
  const auto members = numbers_of(c, "membership_values");
  size_t at = 0;
  for (size_t i = 0; i < n; ++i)
    if (t.modes[i] == 6)
      for (; at < members.size(); ++at) {
        if (std::isnan(members[at])) {
          ++at;
          break;
        }
        t.members[i].insert(members[at]);
      }
  return t;
}

Values tree_ensemble(NodeCall& c) {
  const Trees trees = trees_of(c);
  const Array x = c.known(0);
  c.check(x.ndim() == 2, "the input must be a matrix");
  const int64_t targets = c.integer("n_targets", 1), rows = x.shape[0];
  c.check(targets > 0 && targets < 1 << 20, "n_targets is out of range");
  c.check(c.integer("post_transform", 0) == 0, "only post_transform 0 is supported");
  const int64_t aggregate = c.integer("aggregate_function", 1);
  const double start = aggregate == 2   ? std::numeric_limits<double>::infinity()
                       : aggregate == 3 ? -std::numeric_limits<double>::infinity()
                                        : 0;
  Array out = Array::empty(DType::kF64, {rows, targets});
  std::fill_n(out.data<double>(), rows * targets, start);
  for (int64_t r = 0; r < rows; ++r)
    for (const int64_t root : trees.roots) {
      const size_t leaf = trees.leaf(static_cast<size_t>(root), x, r);
      c.check(
          leaf < trees.weights.size() && trees.targets[leaf] >= 0 && trees.targets[leaf] < targets,
          "a tree names a leaf or target that is not there");
      double& y = out.data<double>()[r * targets + trees.targets[leaf]];
      const double w = trees.weights[leaf];
      if (aggregate == 2)
        y = std::min(y, w);
      else if (aggregate == 3)
        y = std::max(y, w);
      else
        y += aggregate == 0 ? w / static_cast<double>(trees.roots.size()) : w;
    }
  return {ops::cast(Tensor(out), is_float(x.dtype) ? x.dtype : DType::kF32)};
}

constexpr Operator kOperators[] = {
    {"ArrayFeatureExtractor", 1, array_feature_extractor},
    {"Binarizer", 1, binarizer},
    {"Scaler", 1, scaler},
    {"Normalizer", 1, normalizer},
    {"LabelEncoder", 1, label_encoder},
    {"TreeEnsemble", 5, tree_ensemble},
};

}  // namespace

std::span<const Operator> ml_operators() { return kOperators; }

}  // namespace paddle::onnx
