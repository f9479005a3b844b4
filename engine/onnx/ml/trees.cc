// TreeEnsembleClassifier and TreeEnsembleRegressor, and TreeEnsemble, which replaces them from
// version 5 on.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/parallel.h"
#include "onnx/graph/evaluator.h"
#include "onnx/ml/classifier.h"
#include "onnx/operator_tables.h"

namespace paddle::onnx {
namespace {

enum class Mode : uint8_t { kLeq, kLess, kGeq, kGreater, kEqual, kUnequal, kMember, kLeaf };
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

/// Trees in one node list. A non-negative child is a node index, a negative one is -1 - leaf index.
struct Forest {
  struct Node {
    int64_t feature = 0;
    double split = 0;
    Mode mode = Mode::kLeq;
    bool missing_true = false;
    int64_t on_true = 0, on_false = 0;
    std::set<double> members;  ///< for kMember
  };
  struct Weight {
    int64_t target = 0;
    double value = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::vector<Weight>> leaves;
  std::vector<int64_t> roots;
  int64_t features = 0;  ///< highest feature index that nodes read, plus 1

  static bool holds(const Node& n, double x) {
    if (std::isnan(x) && n.missing_true) return true;
    switch (n.mode) {
      case Mode::kLeq:
        return x <= n.split;
      case Mode::kLess:
        return x < n.split;
      case Mode::kGeq:
        return x >= n.split;
      case Mode::kGreater:
        return x > n.split;
      case Mode::kEqual:
        return x == n.split;
      case Mode::kUnequal:
        return x != n.split;
      default:
        return n.members.count(x) > 0;
    }
  }
  /// The leaf that a row reaches.
  template <class T>
  const std::vector<Weight>& leaf(int64_t at, const T* row) const {
    for (size_t steps = 0; at >= 0; ++steps) {
      if (steps > nodes.size()) fail(ErrorCode::kModel, "a tree has a cycle");
      const Node& n = nodes[static_cast<size_t>(at)];
      at = holds(n, static_cast<double>(row[n.feature])) ? n.on_true : n.on_false;
    }
    return leaves[static_cast<size_t>(-1 - at)];
  }
  void check(const NodeCall& c, int64_t targets) {
    for (const Node& n : nodes) {
      c.check(n.feature >= 0 && n.feature < int64_t{1} << 40, "a tree uses the feature ",
              n.feature);
      features = std::max(features, n.feature + 1);
    }
    for (const auto& leaf : leaves)
      for (const Weight& w : leaf)
        c.check(w.target >= 0 && w.target < targets, "a leaf names the target ", w.target, " of ",
                targets);
  }
};

/// A list attribute, or the tensor attribute that newer versions use instead.
std::vector<double> numbers(const NodeCall& c, const std::string& name) {
  if (const auto* t = c.find(name + "_as_tensor"); t && !t->tensors.empty()) {
    std::vector<double> out;
    const Array& a = t->tensors[0].array;
    c.check(is_float(a.dtype) && info(a.dtype).has_kernels, name, "_as_tensor is ",
            paddle::text(t->tensors[0].dtype));
    for (int64_t i = 0; i < a.size(); ++i) out.push_back(a.number(i));
    return out;
  }
  return c.floats_attr(name);
}

Mode mode_of(const NodeCall& c, const std::string& name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Mode>(i);
  c.reject("unknown mode '", name, "' of a node");
}

/// Trees of the two older operators; `what` is "class" or "target".
Forest read_forest(const NodeCall& c, const std::string& what, int64_t targets) {
  using Key = std::pair<int64_t, int64_t>;  // tree and node id
  const auto trees = c.ints_attr("nodes_treeids"), ids = c.ints_attr("nodes_nodeids"),
             features = c.ints_attr("nodes_featureids"), on_true = c.ints_attr("nodes_truenodeids"),
             on_false = c.ints_attr("nodes_falsenodeids"),
             missing = c.ints_attr("nodes_missing_value_tracks_true");
  const auto modes = c.strings_attr("nodes_modes");
  const auto splits = numbers(c, "nodes_values");
  const size_t n = ids.size();
  c.check(n > 0, "it has no nodes");
  c.check(trees.size() == n && features.size() == n && on_true.size() == n &&
              on_false.size() == n && modes.size() == n && splits.size() == n &&
              (missing.empty() || missing.size() == n),
          "the lists of nodes differ in length");
  Forest out;
  std::map<Key, int64_t> index_of;
  std::vector<size_t> branches;
  for (size_t i = 0; i < n; ++i) {
    const bool leaf = mode_of(c, modes[i]) == Mode::kLeaf;
    const auto index = leaf ? -1 - static_cast<int64_t>(out.leaves.size())
                            : static_cast<int64_t>(out.nodes.size());
    c.check(index_of.emplace(Key{trees[i], ids[i]}, index).second, "node ", ids[i], " of tree ",
            trees[i], " is defined twice");
    if (leaf) {
      out.leaves.emplace_back();
    } else {
      out.nodes.emplace_back();
      branches.push_back(i);
    }
  }
  std::set<Key> children;
  const auto find = [&](int64_t tree, int64_t node) {
    const auto found = index_of.find({tree, node});
    c.check(found != index_of.end(), "tree ", tree, " has no node ", node);
    children.insert({tree, node});
    return found->second;
  };
  for (size_t b = 0; b < branches.size(); ++b) {
    const size_t i = branches[b];
    Forest::Node& node = out.nodes[b];
    node.feature = features[i];
    node.split = splits[i];
    node.mode = mode_of(c, modes[i]);
    c.check(node.mode != Mode::kMember, "the mode BRANCH_MEMBER belongs to TreeEnsemble");
    node.missing_true = !missing.empty() && missing[i] != 0;
    node.on_true = find(trees[i], on_true[i]);
    node.on_false = find(trees[i], on_false[i]);
  }
  for (size_t i = 0; i < n; ++i)
    if (!children.count({trees[i], ids[i]})) out.roots.push_back(index_of.at({trees[i], ids[i]}));
  const auto leaf_trees = c.ints_attr(what + "_treeids"),
             leaf_nodes = c.ints_attr(what + "_nodeids"), leaf_targets = c.ints_attr(what + "_ids");
  const auto weights = numbers(c, what + "_weights");
  c.check(leaf_trees.size() == weights.size() && leaf_nodes.size() == weights.size() &&
              leaf_targets.size() == weights.size(),
          "the lists of leaves differ in length");
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = index_of.find({leaf_trees[i], leaf_nodes[i]});
    c.check(found != index_of.end(), "tree ", leaf_trees[i], " has no node ", leaf_nodes[i]);
    if (found->second >= 0) continue;  // weights of inner nodes are unused
    auto& leaf = out.leaves[static_cast<size_t>(-1 - found->second)];
    // With a single target, ONNX Runtime takes the first of several weights.
    if (targets > 1 || leaf.empty()) leaf.push_back({leaf_targets[i], weights[i]});
  }
  out.check(c, targets);
  return out;
}

/// Scores of one row, accumulated over trees.
template <class T>
struct Scores {
  std::vector<T> value;
  std::vector<bool> given;

  explicit Scores(size_t targets) : value(targets, 0), given(targets, false) {}
  void add(const Forest::Weight& w, Aggregate aggregate) {
    const auto t = static_cast<size_t>(w.target);
    const T x = static_cast<T>(w.value);
    if (!given[t] && (aggregate == Aggregate::kMin || aggregate == Aggregate::kMax))
      value[t] = x;
    else if (aggregate == Aggregate::kMin)
      value[t] = std::min(value[t], x);
    else if (aggregate == Aggregate::kMax)
      value[t] = std::max(value[t], x);
    else
      value[t] += x;
    given[t] = true;
  }
};

/// Calls `finish(row, scores)` for each row of x.
template <class Finish>
void run_forest(const NodeCall& c, const Forest& forest, const Array& x, size_t targets,
                Aggregate aggregate, Finish&& finish) {
  c.check(forest.features <= x.shape[1], "the trees use ", forest.features,
          " features, the input has ", x.shape[1]);
  const auto rows = [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(x.shape[0], 1 + 4096 / static_cast<int64_t>(forest.roots.size() + 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     Scores<T> scores(targets);
                     for (const int64_t root : forest.roots)
                       for (const auto& w : forest.leaf(root, x.data<T>() + r * x.shape[1]))
                         scores.add(w, aggregate);
                     finish(r, scores);
                   }
                 });
  };
  if (x.dtype == DType::kF64)
    rows(TypeTag<double>{});
  else
    rows(TypeTag<float>{});
}

void put_row(Array& out, int64_t row, const std::vector<float>& scores) {
  const auto columns = static_cast<size_t>(out.shape[1]);
  float* to = out.data<float>() + row * out.shape[1];
  for (size_t i = 0; i < columns; ++i) to[i] = i < scores.size() ? scores[i] : 0.0f;
}

Values tree_regressor(NodeCall& c) {
  const int64_t targets = c.int_attr("n_targets", 0);
  c.check(targets > 0 && targets < 1 << 20, "n_targets is ", targets);
  const auto forest =
      c.evaluator().prepared<Forest>(c.node(), [&] { return read_forest(c, "target", targets); });
  const std::string name = c.string_attr("aggregate_function", "SUM");
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  c.check(found != std::end(kNames), "unknown aggregate_function '", name, "'");
  const auto aggregate = static_cast<Aggregate>(found - std::begin(kNames));
  const auto base = numbers(c, "base_values");
  const bool has_base = static_cast<int64_t>(base.size()) == targets;
  const PostTransform transform = post_transform(c);
  const Array x = feature_rows(c, 0, true);
  Array out = score_matrix(DType::kF32, x.shape[0], targets);
  run_forest(c, *forest, x, static_cast<size_t>(targets), aggregate, [&](int64_t r, auto& scores) {
    std::vector<float> row;
    for (size_t t = 0; t < scores.value.size(); ++t) {
      auto y = scores.value[t];
      if (aggregate == Aggregate::kAverage) y /= static_cast<decltype(y)>(forest->roots.size());
      row.push_back(static_cast<float>(has_base ? y + static_cast<decltype(y)>(base[t]) : y));
    }
    apply_post_transform(row, transform);
    put_row(out, r, row);
  });
  return {Tensor(out)};
}

/// Turns accumulated scores into a class and output scores. The specification does not define the
/// binary case with weights for one class only; this follows ONNX Runtime.
class Decision {
 public:
  Decision(const NodeCall& c, size_t classes)
      : classes_(classes), base_(numbers(c, "base_values")), transform_(post_transform(c)) {
    c.check(base_.size() <= classes, "there are ", base_.size(), " base values for ", classes,
            " classes");
    const auto weights = numbers(c, "class_weights");
    const auto ids = c.ints_attr("class_ids");
    positive_ = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    one_sided_ = std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  }
  template <class T>
  size_t decide(Scores<T>& scores, std::vector<float>& row) const {
    SecondClass second = SecondClass::kNone;
    const size_t best = classes_ > 2 ? most(scores) : of_two(scores, second);
    row.assign(scores.value.begin(), scores.value.end());
    apply_post_transform(row, transform_, second);
    return best;
  }

 private:
  template <class T>
  size_t most(Scores<T>& scores) const {
    std::optional<size_t> best;
    for (size_t k = 0; k < classes_; ++k) {
      if (k < base_.size()) {
        scores.value[k] += static_cast<T>(base_[k]);
        scores.given[k] = true;
      }
      if (scores.given[k] && (!best || scores.value[k] > scores.value[*best])) best = k;
    }
    return best.value_or(0);
  }
  template <class T>
  size_t of_two(Scores<T>& scores, SecondClass& second) const {
    auto& [value, given] = scores;
    if (classes_ == 2 && base_.size() == 2) {
      if (given[1]) {
        value[1] = static_cast<T>(base_[1]) + value[0];
        value[0] = -value[1];
      } else {
        value[1] += static_cast<T>(base_[1]);
        value[0] += static_cast<T>(base_[0]);
      }
    } else {
      if (base_.size() == 1) value[0] += static_cast<T>(base_[0]);
      if (classes_ == 2 && !given[1]) {
        value.pop_back();
        given.pop_back();
      }
      if (base_.empty()) second = SecondClass::kOpposite;
    }
    const bool has_second = value.size() == 2 && given[1];
    const T weight = has_second ? value[1] : given[0] ? value[0] : T(0);
    if (classes_ != 2 || !one_sided_) return weight > 0 ? 1 : 0;
    second = positive_ ? SecondClass::kComplement : SecondClass::kOpposite;
    return weight > (positive_ ? T(0.5) : T(0)) ? 1 : 0;
  }

  size_t classes_;
  std::vector<double> base_;
  PostTransform transform_;
  bool positive_ = true, one_sided_ = false;
};

Values tree_classifier(NodeCall& c) {
  const Labels labels = Labels::of(c, "classlabels_strings", "classlabels_int64s");
  const size_t classes = labels.size();
  c.check(classes > 0 && classes < 1 << 20, "there are ", classes, " classes");
  const auto forest = c.evaluator().prepared<Forest>(
      c.node(), [&] { return read_forest(c, "class", static_cast<int64_t>(classes)); });
  const Decision decision(c, classes);
  const Array x = feature_rows(c, 0, true);
  const auto rows = static_cast<size_t>(x.shape[0]);
  Array out = score_matrix(DType::kF32, x.shape[0], static_cast<int64_t>(classes));
  std::vector<size_t> chosen(rows);
  run_forest(c, *forest, x, classes, Aggregate::kSum, [&](int64_t r, auto& scores) {
    std::vector<float> row;
    chosen[static_cast<size_t>(r)] = decision.decide(scores, row);
    put_row(out, r, row);
  });
  return {(classes == 1 ? labels.binary() : labels).at(chosen), Tensor(out)};
}

// --- TreeEnsemble ---

Forest ensemble_of(const NodeCall& c, int64_t targets) {
  const auto tensor = [&](const char* name) {
    std::vector<double> out;
    if (const auto* a = c.find(name); a && !a->tensors.empty())
      for (int64_t i = 0; i < a->tensors[0].array.size(); ++i)
        out.push_back(a->tensors[0].array.number(i));
    return out;
  };
  const auto features = c.ints_attr("nodes_featureids"), on_true = c.ints_attr("nodes_truenodeids"),
             on_false = c.ints_attr("nodes_falsenodeids"),
             true_leaf = c.ints_attr("nodes_trueleafs"),
             false_leaf = c.ints_attr("nodes_falseleafs"),
             missing = c.ints_attr("nodes_missing_value_tracks_true"),
             leaf_targets = c.ints_attr("leaf_targetids"), roots = c.ints_attr("tree_roots");
  const auto splits = tensor("nodes_splits"), weights = tensor("leaf_weights"),
             modes = tensor("nodes_modes"), members = tensor("membership_values");
  const size_t n = splits.size();
  c.check(features.size() == n && on_true.size() == n && on_false.size() == n &&
              true_leaf.size() == n && false_leaf.size() == n && modes.size() == n &&
              (missing.empty() || missing.size() == n) && leaf_targets.size() == weights.size(),
          "the lists of nodes and leaves differ in length");
  Forest out;
  for (size_t i = 0; i < weights.size(); ++i) out.leaves.push_back({{leaf_targets[i], weights[i]}});
  const auto child_index = [&](int64_t index, bool leaf) {
    c.check(index >= 0 && index < static_cast<int64_t>(leaf ? weights.size() : n),
            "a tree names the ", leaf ? "leaf " : "node ", index);
    return leaf ? -1 - index : index;
  };
  size_t member = 0;
  for (size_t i = 0; i < n; ++i) {
    c.check(modes[i] >= 0 && modes[i] <= 6, "unknown mode ", modes[i], " of a node");
    Forest::Node node;
    node.feature = features[i];
    node.split = splits[i];
    node.mode = static_cast<Mode>(static_cast<int>(modes[i]));
    node.missing_true = !missing.empty() && missing[i] != 0;
    node.on_true = child_index(on_true[i], true_leaf[i] != 0);
    node.on_false = child_index(on_false[i], false_leaf[i] != 0);
    if (node.mode == Mode::kMember)  // sets are concatenated and terminated by NaN
      for (; member < members.size(); ++member) {
        if (std::isnan(members[member])) {
          ++member;
          break;
        }
        node.members.insert(members[member]);
      }
    out.nodes.push_back(std::move(node));
  }
  for (const int64_t root : roots) out.roots.push_back(child_index(root, false));
  out.check(c, targets);
  return out;
}

Values tree_ensemble(NodeCall& c) {
  const int64_t targets = c.int_attr("n_targets", 1);
  c.check(targets > 0 && targets < 1 << 20, "n_targets is ", targets);
  const auto forest =
      c.evaluator().prepared<Forest>(c.node(), [&] { return ensemble_of(c, targets); });
  const int64_t wanted = c.int_attr("post_transform", 0), how = c.int_attr("aggregate_function", 1);
  c.check(wanted >= 0 && wanted <= 4, "unknown post_transform ", wanted);
  c.check(how >= 0 && how <= 3, "unknown aggregate_function ", how);
  constexpr PostTransform kTransforms[] = {PostTransform::kNone, PostTransform::kSoftmax,
                                           PostTransform::kLogistic, PostTransform::kSoftmaxZero,
                                           PostTransform::kProbit};
  const PostTransform transform = kTransforms[wanted];
  const auto aggregate = static_cast<Aggregate>(how);
  const DType dtype = c.value(0).dtype();
  const Array x = feature_rows(c, 0, true);
  Array out = score_matrix(DType::kF64, x.shape[0], targets);
  run_forest(c, *forest, x, static_cast<size_t>(targets), aggregate, [&](int64_t r, auto& scores) {
    double* to = out.data<double>() + r * targets;
    for (size_t t = 0; t < scores.value.size(); ++t) {
      to[t] = static_cast<double>(scores.value[t]);
      if (aggregate == Aggregate::kAverage) to[t] /= static_cast<double>(forest->roots.size());
      if (!scores.given[t] && aggregate == Aggregate::kMin)
        to[t] = std::numeric_limits<double>::infinity();
      if (!scores.given[t] && aggregate == Aggregate::kMax)
        to[t] = -std::numeric_limits<double>::infinity();
    }
    if (transform == PostTransform::kNone) return;
    std::vector<float> row(to, to + targets);
    apply_post_transform(row, transform);
    std::copy(row.begin(), row.end(), to);
  });
  return {Tensor(out.cast(is_float(dtype) ? dtype : DType::kF32))};
}

}  // namespace

OperatorTable ml_trees_operators() {
  static constexpr Operator operators[] = {
      {"TreeEnsemble", 5, tree_ensemble},
      {"TreeEnsembleClassifier", 1, tree_classifier},
      {"TreeEnsembleRegressor", 1, tree_regressor},
  };
  return operators;
}

}  // namespace paddle::onnx
